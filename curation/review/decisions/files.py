"""Read and write decisions: JSON Lines, CSV, the authors' selection as YAML or JSON, and the append-only log.

The authors' lists of image ids (``manual_selection`` of FindMeIfYouCan) become decisions without reviewer and date.
Ids in YAML are read as written, with or without quotes; a usual YAML reader turns ``0010e235`` into a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from curation.core.append_log import append_lines, log_lines, parsed_line, require_json_lines
from curation.core.errors import CurationError, DecisionError, UsageError
from curation.core.ids import coco_native, native_of
from curation.core.json_text import decode_json
from curation.core.reading import InputFile, utf8_text
from curation.core.tables import as_csv, cell_text, csv_rows, printable
from curation.core.writing import write_bytes
from curation.review.decisions.decision import (
    STAGES,
    Action,
    Decision,
    Stage,
    check_decision,
    namespace_of_pool,
    row_of,
)
from curation.sources.datasets import family, namespace_of

MAX_BYTES = 256 << 20
FIELDS = Decision.__struct_fields__
REQUIRED = FIELDS[:4]
_DAMAGED_NUMBER = re.compile(r"(?:[a-z0-9_]+:)?[+-]?\d+(?:(?:[.,]\d+)?[eE][+-]\d+|[.,]0+)")


@dataclass(frozen=True, slots=True)
class CodeCount:
    """The number of rows with a code, and the action of the code; ``skip`` means no decision."""

    code: str
    action: str
    rows: int


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """The decisions of a file in file order, and how it was read.

    Attributes
    ----------
    name, sha256 : str
        Name of the file, and digest of its bytes.
    format : {"jsonl", "csv", "selection", "table"}
        ``selection`` is the authors' manual_selection file, ``table`` any other table with a map of its columns.
    rows : int
    torn : str
        Beginning of a truncated last line, which was left out; ``""`` for none. A kill or a full disk truncates lines.
    codes : tuple of CodeCount
        Codes of a table, the most frequent first; each row has one of them.
    repeated : tuple of str
        Sorted images with several rows in a table.
    """

    decisions: tuple[Decision, ...]
    name: str
    sha256: str
    format: str
    rows: int
    torn: str = ""
    codes: tuple[CodeCount, ...] = ()
    repeated: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Return notes on what was left out."""
        return [f"{self.name}: the last line is cut off and was left out: {self.torn!a}"] if self.torn else []


def read_decisions(path: Path) -> DecisionFile:
    """Return the decisions of a ``.jsonl`` or ``.csv`` file, or of the authors' selection as ``.yaml`` or ``.json``.

    Raises
    ------
    MissingFileError
        No such file.
    DecisionError
        The file has another format, is too large, or has a malformed line, which the message names.
    """
    file = InputFile(path, kind="decisions file", most=MAX_BYTES, error=DecisionError)
    name, torn = path.name, ""
    match Path(name.lower().removesuffix(".gz")).suffix:
        case ".jsonl":
            kind, (decisions, torn) = "jsonl", parse_jsonl(file.data, name)
        case ".csv":
            kind, decisions = "csv", parse_csv(file.data, name)
        case ".yaml" | ".yml" | ".json":
            kind, decisions = "selection", parse_selection(file.data, name)
        case _:
            raise _wrong_suffix(path, ".jsonl, .csv, or the authors' selection as .yaml or .json")
    return DecisionFile(tuple(decisions), name, file.sha256, kind, len(decisions), torn)


def read_decision_files(
    paths: Sequence[Path], read: Callable[[Path], DecisionFile] = read_decisions
) -> list[DecisionFile]:
    """Return the decisions of some files; refuse a repeated file, and one with nothing but a truncated line."""
    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("The same file is named twice", where=", ".join(map(str, paths))[:300])
    files = [read(path) for path in paths]
    for file in files:
        if file.torn and not file.decisions:
            raise DecisionError("No complete record in the file", where=file.name, found=ascii(file.torn))
    return files


def parse_jsonl(data: bytes, name: str) -> tuple[list[Decision], str]:
    """Return the decisions of JSON Lines, and the beginning of a truncated last line, ``""`` for none.

    A last line is truncated if it begins like a JSON object and does not end. Blank lines are ignored.

    Raises
    ------
    DecisionError
        A line is too long, not a JSON object, or not a decision.
    """
    lines, torn = log_lines(data.removeprefix(b"\xef\xbb\xbf"))
    located = [(f"{name}, line {number}", text) for number, text in lines]
    return [checked_decision(parsed_line(text, DecisionError, where), where) for where, text in located], torn


def parse_csv(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of a CSV file whose first row names its columns.

    Raises
    ------
    DecisionError
        It is not CSV in UTF-8, has unknown, repeated or missing columns, or a row is not a decision.
    """
    columns, rows = read_table(data, name)
    if len(set(columns)) < len(columns) or not {*REQUIRED} <= {*columns} <= {*FIELDS}:
        raise DecisionError(
            "The columns are not those of a decisions file",
            where=f"{name}, row 1",
            expected=", ".join(FIELDS),
            found=printable(", ".join(columns), "?")[:200],
            hint="curation review summary FILE --key image_id=COLUMN,action=COLUMN --codes CODE=ACTION,… reads any "
            "other table",
        )
    decisions = []
    for number, cells in rows:
        where, fields = f"{name}, row {number}", dict(zip(columns, cells, strict=True))
        refuse_number(fields["image_id"], "image_id", where)
        decisions.append(checked_decision(fields, where))
    return decisions


def read_table(data: bytes, name: str, separator: str = ",") -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the cells of the first row of a table, and the number and cells of each further row with content.

    Raises
    ------
    DecisionError
        The table is not CSV in UTF-8, or a row has another number of cells than the first.
    """
    rows = csv_rows(data, DecisionError, "The table is not CSV", where=name, delimiter=separator, strict=True)
    (_, head), *others = [(number, row) for number, row in enumerate(rows, 1) if row] or [(1, [])]
    for number, cells in others:
        if len(cells) != len(head):
            message, where = "A row has another number of cells than the first", f"{name}, row {number}"
            raise DecisionError(message, where=where, expected=str(len(head)), found=str(len(cells)))
    return head, [(number, [cell_text(cell) for cell in cells]) for number, cells in others]


def refuse_number(image: str, column: str, where: str) -> None:
    """Raise `DecisionError` if a spreadsheet has turned an image id into a number."""
    if _DAMAGED_NUMBER.fullmatch(image):
        raise DecisionError(
            "A spreadsheet has turned an image id into a number",
            where=f"{where}: {column}",
            expected="the id as a text; 0010e235 is not a number",
            found=repr(image),
            hint=f"write the file again with the column {column} formatted as text",
        )


def checked_decision(fields: Any, where: str) -> Decision:
    """Return a decision from its fields; its data set completes an id without a namespace (``13159`` of ``coco``).

    Raises
    ------
    DecisionError
        A field is unknown, missing, of another type, or malformed.
    """
    try:
        decision = msgspec.convert(fields, type=Decision)
    except msgspec.ValidationError as error:
        allowed = {"stage": STAGES, "action": get_args(Action)}.get(str(error).rpartition("$.")[2].rstrip("`"))
        raise DecisionError(
            "Malformed decision",
            where=where,
            expected=", ".join(allowed or (f"texts {', '.join(REQUIRED)}; optional {', '.join(FIELDS[4:])}",)),
            found=printable(str(error), "?")[:200],
        ) from None
    if (image := decision.image_id) and ":" not in image:
        with suppress(CurationError):
            namespace = namespace_of_pool(decision.dataset)
            decision = msgspec.structs.replace(decision, image_id=f"{namespace}:{native_of(image, namespace)}")
    check_decision(decision, where=where)
    return decision


def write_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Write decisions as JSON Lines or CSV, by the suffix, in the order given (see `curation.core.writing.replacing`).

    Raises
    ------
    DecisionError
        The suffix is another, or a decision is malformed.
    """
    rows = list(decisions)
    for number, row in enumerate(rows, start=1):
        check_decision(row, where=f"decision {number}")
    match path.suffix.lower():
        case ".jsonl":
            write_bytes(path, json_lines(rows))
        case ".csv":
            data = as_csv(FIELDS, (tuple(row_of(row).values()) for row in rows)).encode()
            write_bytes(path, data)
        case _:
            raise _wrong_suffix(path, ".jsonl or .csv")


class DecisionLog:
    """An append-only file of decisions, which stays readable after a kill at any moment.

    Several processes may append to one log; each locks it while it writes. A line that a kill truncated was never
    confirmed, and is removed before the next write.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl``; created with the first decision.
    """

    def __init__(self, path: Path) -> None:
        require_json_lines(path, DecisionError, "decisions log")
        self.path = path

    def extend(self, decisions: Sequence[Decision]) -> int:
        """Append decisions with one write and one sync, and return the number of bytes on the disk.

        Raises
        ------
        DecisionError
            A decision is malformed; nothing is written.
        MissingFileError
            The file is not writable.
        """
        for row in decisions:
            check_decision(row, where=f"{self.path.name}: new decision")
        data = json_lines(decisions)
        if data:
            append_lines(self.path, data, kind="decisions log")
        return len(data)


def json_lines(decisions: Iterable[Decision]) -> bytes:
    """Return decisions as JSON Lines."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in decisions)


def _wrong_suffix(path: Path, expected: str) -> DecisionError:
    message = "Unsupported decisions-file extension"
    return DecisionError(message, where=str(path), expected=expected, found=repr(path.suffix[:20]))


MAX_TREE_BYTES = 16 << 20
CANDIDATES = "FROM_CANDIDATES"
LISTS: dict[str, tuple[Stage, Action]] = {
    "KEEP_TO_NEAR_IDS": ("auto_override", "keep_near"),
    "REMOVE_IDS": ("auto_override", "remove"),
    "UNFILTERED_IMAGES_TO_REMOVE": ("manual", "remove"),
    "UNFILTERED_IMAGES_TO_NEAR": ("manual", "to_near"),
    "UNFILTERED_IMAGES_TO_FAR": ("manual", "to_far"),
}
"""Stage and action of the top keys of the file. `CANDIDATES` is another top key; its keys ``…_near`` are near."""
Ids = list[str | int]
Selection = dict[str, dict[str, Ids | dict[str, Ids]]]
_DEEPEST = 6
_ID_FORMS = {"coco": "[1-9][0-9]{0,11}|0", "openimages": "[0-9a-f]{16}"}


def parse_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file in file order; an id that is listed twice gives two.

    Raises
    ------
    DecisionError
        The file has another layout (see `parse_tree`), or an id does not belong to its data set.
    """
    layout = f"{CANDIDATES}, {', '.join(LISTS)}: each by data set, then ids, or ids by reason"
    try:
        lists = msgspec.convert(parse_tree(data, name), type=Selection)
    except msgspec.ValidationError as error:
        message, excerpt = "The file does not have the authors' layout", ascii(str(error))[:200]
        raise DecisionError(message, where=name, expected=layout, found=excerpt) from None
    if unknown := lists.keys() - {CANDIDATES, *LISTS}:
        excerpt = ascii(min(unknown))[:80]
        raise DecisionError("Unknown list in the file", where=name, expected=layout, found=excerpt)
    decisions = []
    for key, by_dataset in lists.items():
        for dataset, listed in by_dataset.items():
            stage, action, pool = *LISTS.get(key, ("candidate", "add_far")), dataset
            if key == CANDIDATES and dataset.endswith("_near"):
                action, pool = "add_near", dataset.removesuffix("_near")
            for reason, ids in listed.items() if isinstance(listed, dict) else [("", listed)]:
                for written in ids:
                    where = f"{name}: {key}.{dataset}"
                    image = _image_id(written, pool, where)
                    decision = Decision(image_id=image, dataset=pool, stage=stage, action=action, reason=reason)
                    check_decision(decision, where=where)
                    decisions.append(decision)
    return decisions


def _image_id(written: str | int, dataset: str, where: str) -> str:
    try:
        namespace = namespace_of(dataset)
    except CurationError as error:
        excerpt = ascii(dataset)[:60]
        raise DecisionError("Unknown data set of a list", where=where, expected=error.expected, found=excerpt) from None
    is_coco = family(dataset) == "coco"
    form = _ID_FORMS.get(family(dataset), ".*")
    if not (isinstance(written, str) or is_coco) or not re.fullmatch(form, str(written)):
        expected = f"a plain whole number: {form}" if is_coco else f"a text in quotes: {form}"
        message = f"Not an image id of {dataset}"
        raise DecisionError(message, where=where, expected=expected, found=ascii(written)[:60])
    return f"{namespace}:{coco_native(int(written)) if is_coco else written}"


def parse_tree(data: bytes, name: str) -> Any:
    """Return a YAML or JSON file of lists of texts as plain data.

    Raises
    ------
    DecisionError
        The file is neither, empty, too large or too deep; it uses anchors, aliases, tags or several documents; or a key
        is repeated or not a text.
    """
    if len(data) > MAX_TREE_BYTES:
        message = "The file is too large to be a list of images"
        raise DecisionError(message, where=name, expected=f"at most {MAX_TREE_BYTES} bytes", found=str(len(data)))
    if Path(name.lower().removesuffix(".gz")).suffix == ".json":
        return decode_json(data, Any, DecisionError, "The file is not JSON", where=name)
    import yaml

    text = utf8_text(data, name, DecisionError, "The file is not UTF-8")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_tricks(text, name, loader)
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise DecisionError("The file is not YAML", where=where, found=ascii(getattr(error, "problem", ""))) from None
    if root is None:
        raise DecisionError("The file is empty", where=name, expected="lists of texts under keys")
    return _plain(root, name)


def _refuse_tricks(text: str, name: str, loader: Any) -> None:
    """Refuse whatever could make a small file large, deep or of another type, before any node is made."""
    import yaml

    depth = documents = 0
    events: Iterable[Any] = yaml.parse(text, Loader=loader)
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        is_anchored = isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None)
        if is_anchored or getattr(event, "tag", None) not in (None, "!") or depth > _DEEPEST or documents > 1:
            raise DecisionError(
                "The file uses anchors or tags, holds several documents, or is nested too deep",
                where=f"{name}, line {event.start_mark.line + 1}",
                expected="plain lists of ids by list, data set and reason",
            )


def _plain(node: Any, name: str) -> Any:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, name) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        children = {key.value: _plain(value, name) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        if len(children) < len(node.value):
            where = f"{name}, line {node.start_mark.line + 1}"
            raise DecisionError("Duplicate key, or a key that is not a text", where=where)
        return children
    return node.value
