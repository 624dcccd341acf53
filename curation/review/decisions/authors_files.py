"""The selection of images of the FindMeIfYouCan authors, as YAML or JSON.

The lists of image ids of ``manual_selection`` become decisions without reviewer and date (section 1.5 of the protocol's
specification). In YAML an id without quotes can turn into a number (``0010e235`` is 0), so the tag of every id is
looked at before its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from curation.core.errors import CurationError, DecisionError
from curation.core.ids import coco_native
from curation.core.json_text import decode_json
from curation.core.reading import utf8_text
from curation.review.decisions.decision import Action, Decision, Stage, check_decision
from curation.sources.datasets import family, namespace_of

MAX_TREE_BYTES = 16 << 20
CANDIDATES = "FROM_CANDIDATES"
LISTS: dict[str, tuple[Stage, Action]] = {
    "KEEP_TO_NEAR_IDS": ("auto_override", "keep_near"),
    "REMOVE_IDS": ("auto_override", "remove"),
    "UNFILTERED_IMAGES_TO_REMOVE": ("manual", "remove"),
    "UNFILTERED_IMAGES_TO_NEAR": ("manual", "to_near"),
    "UNFILTERED_IMAGES_TO_FAR": ("manual", "to_far"),
}
"""What the top keys of the file mean; beside them stands `CANDIDATES`, whose keys end in ``_near`` or mean far."""
Ids = list[str | int]
Selection = dict[str, dict[str, Ids | dict[str, Ids]]]
_DEEPEST = 6
_NEVER_TEXT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
"""A number for readers of YAML 1.2 where it has no quotes, a text for ours, which reads YAML 1.1."""
_ID_FORMS = {"coco": "[1-9][0-9]{0,11}|0", "openimages": "[0-9a-f]{16}"}


def parse_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file in file order; ids listed twice stand twice.

    Raises
    ------
    DecisionError
        It is not such a file (see `parse_tree`), or an id is unquoted and would be read as a number where texts are
        expected. The message names the line of YAML, or the place in JSON.
    """
    layout = f"{CANDIDATES}, {', '.join(LISTS)}: each by data set, then ids, or ids by reason"
    try:
        lists = msgspec.convert(parse_tree(data, name), type=Selection)
    except msgspec.ValidationError as error:
        what, found = "The file does not have the authors' layout", ascii(str(error))[:200]
        raise DecisionError(what, where=name, expected=layout, found=found) from None
    if unknown := lists.keys() - {CANDIDATES, *LISTS}:
        found = ascii(min(unknown))[:80]
        raise DecisionError("Unknown list in the file", where=name, expected=layout, found=found)
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
        found = ascii(dataset)[:60]
        raise DecisionError("Unknown data set of a list", where=where, expected=error.expected, found=found) from None
    is_coco = family(dataset) == "coco"
    form = _ID_FORMS.get(family(dataset), ".*")
    if not (isinstance(written, str) or is_coco) or not re.fullmatch(form, str(written)):
        expected = f"a plain whole number: {form}" if is_coco else f"a text in quotes: {form}"
        what = f"Not an image id of {dataset}"
        raise DecisionError(what, where=where, expected=expected, found=ascii(written)[:60])
    return f"{namespace}:{coco_native(int(written)) if is_coco else written}"


def parse_tree(data: bytes, name: str) -> Any:
    """Return a YAML or JSON file of lists of texts as plain data.

    Raises
    ------
    DecisionError
        It is neither, empty, too large or too deep; it uses anchors, aliases, tags or several documents; a key is
        repeated or not a text; or a scalar without quotes is neither a text nor a plain whole number in every YAML.
    """
    if len(data) > MAX_TREE_BYTES:
        what = "The file is too large to be a list of images"
        raise DecisionError(what, where=name, expected=f"at most {MAX_TREE_BYTES} bytes", found=str(len(data)))
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

    where = f"{name}, line {node.start_mark.line + 1}"
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, name) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        found = {key.value: _plain(value, name) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        if len(found) < len(node.value):
            raise DecisionError("Duplicate key, or a key that is not a text", where=where)
        return found
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "int" and re.fullmatch("[1-9][0-9]*|0", text):
        return int(text[:30])
    if kind == "str" and (node.style or not _NEVER_TEXT.fullmatch(text)):
        return text
    raise DecisionError(
        f"A value would be read as a number or another value ({kind})",
        where=where,
        expected="a text in quotes",
        found=ascii(text)[:60],
        hint=f'write "{text[:20]}"' if text.isalnum() else None,
    )
