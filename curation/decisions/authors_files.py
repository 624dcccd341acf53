"""The files of the FindMeIfYouCan authors, as YAML or JSON: their selection of images, and their lists of categories.

The lists of image ids of ``manual_selection`` become decisions without reviewer and date (section 1.5 of the protocol's
specification). In YAML an id without quotes can turn into a number (``0010e235`` is 0), so the tag of every id is
looked at before its value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.decisions.decision import Action, Decision, Stage, check_decision
from curation.errors import CurationError, DecisionError
from curation.ids import coco_native
from curation.sources.datasets import family, namespace_of
from curation.storage import read_bytes
from curation.text_table import printable

if TYPE_CHECKING:
    import yaml

MAX_TREE_BYTES = 16 << 20
TEXT, INTEGER = "text", "integer"
_DEEPEST = 6
_LONGEST_KEY = 200
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
"""A number for readers of YAML 1.2 where it has no quotes, a text for ours, which reads YAML 1.1."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar: its text as written, what it is (``text``, ``integer``, another word), and where it stands."""

    text: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Keyed:
    """A mapping in file order, with where it stands."""

    items: tuple[tuple[str, Any], ...]
    where: str


def parse_yaml_tree(data: bytes, name: str) -> Any:
    """Return a YAML file as `Keyed`, lists and `Leaf`; the place of each is its line.

    Raises
    ------
    DecisionError
        It is not UTF-8 or not YAML, empty, too large or too deep; it uses anchors, aliases, tags or several documents;
        a key stands twice or is no line of text.
    """
    import yaml

    _check_size(data, name)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = data.decode("utf-8-sig")
        _check_events(yaml.parse(text, Loader=loader), name)
        root = yaml.compose(text, Loader=loader)
    except UnicodeDecodeError as error:
        raise DecisionError("The file is not UTF-8", where=name, found=str(error)[:200]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise DecisionError("The file is not YAML", where=where, found=_problem(error)) from None
    return _from_node(root, name)


def parse_json_tree(data: bytes, name: str) -> Any:
    """Return a JSON file as `Keyed`, lists and `Leaf`; the place of each is its path (see `parse_yaml_tree`)."""
    _check_size(data, name)
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise DecisionError("The file is not JSON", where=name, found=str(error)[:200]) from None
    return _from_json(content, name, _DEEPEST)


def _check_size(data: bytes, name: str) -> None:
    if len(data) > MAX_TREE_BYTES:
        raise DecisionError(
            "The file is too large to be a list of images or categories",
            where=name,
            expected=f"at most {MAX_TREE_BYTES} bytes",
            found=str(len(data)),
        )


def _check_events(events: Iterator[Any], name: str) -> None:
    """Refuse whatever could make a small file large, deep or of another type, before any node is made."""
    import yaml

    depth = documents = 0
    for event in events:
        where = f"{name}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise DecisionError("The file uses anchors or aliases", where=where, expected="plain lists of ids")
        if getattr(event, "tag", None) not in (None, "!"):
            raise DecisionError(
                "The file uses tags", where=where, expected="plain lists of ids", found=ascii(event.tag)[:80]
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > _DEEPEST or documents > 1:
            raise DecisionError(
                "The file is nested too deep or holds several documents",
                where=where,
                expected="lists of ids by list, data set and reason",
            )


def _from_node(node: yaml.Node | None, name: str) -> Any:
    import yaml

    line = 1 if node is None else node.start_mark.line + 1
    where = f"{name}, line {line}"
    if isinstance(node, yaml.MappingNode):
        pairs = [(key.value, _from_node(value, name)) for key, value in node.value if _is_key(key, name)]
        return _keyed(pairs, where)
    if isinstance(node, yaml.SequenceNode):
        return [_from_node(one, name) for one in node.value]
    if isinstance(node, yaml.ScalarNode):
        tag = node.tag.rpartition(":")[2]
        kind = {"str": TEXT, "int": INTEGER}.get(tag, tag)
        if kind == TEXT and not node.style and _EXPONENT.fullmatch(node.value):
            kind = "float"
        return Leaf(node.value, kind, where)
    raise DecisionError("The file is empty", where=name, expected="lists of texts under keys")


def _is_key(key: yaml.Node, name: str) -> bool:
    import yaml

    if isinstance(key, yaml.ScalarNode):
        return True
    raise DecisionError(
        "A key is no text",
        where=f"{name}, line {key.start_mark.line + 1}",
        expected="lists of texts under keys",
    )


class _Pairs(tuple[tuple[str, Any], ...]):
    """A JSON object as its pairs, so that a key that stands twice is seen."""


def _from_json(value: Any, where: str, depth: int) -> Any:
    if depth == 0:
        raise DecisionError("The file is nested too deep", where=where, expected="lists of texts under keys")
    if isinstance(value, _Pairs):
        return _keyed([(key, _from_json(one, f"{where}: {key[:60]}", depth - 1)) for key, one in value], where)
    if isinstance(value, list):
        return [_from_json(one, f"{where}[{index}]", depth - 1) for index, one in enumerate(value)]
    if isinstance(value, str):
        return Leaf(value, TEXT, where)
    kind = INTEGER if type(value) is int else "null" if value is None else type(value).__name__
    # A whole number of thousands of digits has no text that Python gives willingly.
    text = str(value) if kind != INTEGER or abs(value) < 10**18 else "a number of many digits"
    return Leaf(text, kind, where)


def _keyed(pairs: Sequence[tuple[str, Any]], where: str) -> Keyed:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen or not key or len(key) > _LONGEST_KEY or not key.isprintable():
            raise DecisionError("A key stands twice or is no line of text", where=where, found=ascii(key)[:80])
        seen.add(key)
    return Keyed(tuple(pairs), where)


def _problem(error: Exception) -> str:
    text = str(getattr(error, "problem", None) or error)
    return printable(text, " ")[:200]


_COCO_NUMBER = re.compile(r"[1-9][0-9]{0,11}|0")
_OPEN_IMAGES_ID = re.compile(r"[0-9a-f]{16}")

CANDIDATES = "FROM_CANDIDATES"
LISTS: dict[str, tuple[Stage, Action]] = {
    "KEEP_TO_NEAR_IDS": ("auto_override", "keep_near"),
    "REMOVE_IDS": ("auto_override", "remove"),
    "UNFILTERED_IMAGES_TO_REMOVE": ("manual", "remove"),
    "UNFILTERED_IMAGES_TO_NEAR": ("manual", "to_near"),
    "UNFILTERED_IMAGES_TO_FAR": ("manual", "to_far"),
}
"""What the top keys of the file mean; beside them stands `CANDIDATES`, whose keys end in ``_near`` or mean far."""


def parse_yaml_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file in file order; ids listed twice stand twice.

    Raises
    ------
    DecisionError
        It is not such a file (see `parse_yaml_tree`), or an id is unquoted and would be read as a number where texts
        are expected. The message names the line.
    """
    return _decisions(parse_yaml_tree(data, name), name)


def parse_json_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file written as JSON (see `parse_yaml_selection`)."""
    return _decisions(parse_json_tree(data, name), name)


def _decisions(root: Any, name: str) -> list[Decision]:
    found: list[Decision] = []
    for key, by_dataset in _mapping(root, name):
        if key != CANDIDATES and key not in LISTS:
            raise DecisionError(
                "The file has a list that is unknown here",
                where=getattr(by_dataset, "where", name),
                expected=", ".join((CANDIDATES, *LISTS)),
                found=ascii(key)[:80],
            )
        for dataset, value in _mapping(by_dataset, f"{name}: {key}"):
            found += _of_list(key, dataset, value, f"{name}: {key}.{dataset}")
    return found


def _of_list(key: str, dataset: str, value: Any, where: str) -> Iterator[Decision]:
    stage: Stage
    action: Action
    if key == CANDIDATES:
        stage, action = "candidate", "add_near" if dataset.endswith("_near") else "add_far"
        dataset = dataset.removesuffix("_near")
    else:
        stage, action = LISTS[key]
    by_reason = list(value.items) if isinstance(value, Keyed) else [("", value)]
    for reason, leaves in by_reason:
        if not isinstance(leaves, list):
            raise DecisionError("Ids are missing", where=where, expected="a list of image ids")
        for leaf in leaves:
            one = Decision(
                image_id=_image_id(leaf, dataset, where),
                dataset=dataset,
                stage=stage,
                action=action,
                reason=reason,
            )
            check_decision(one, where=leaf.where)
            yield one


def _mapping(value: Any, where: str) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, Keyed):
        return value.items
    raise DecisionError("The file is no selection of images", where=where, expected=_layout())


def _image_id(leaf: Any, dataset: str, where: str) -> str:
    if not isinstance(leaf, Leaf):
        raise DecisionError("An image id is no text", where=where, found=type(leaf).__name__)
    try:
        namespace = namespace_of(dataset)
    except CurationError as error:
        raise DecisionError(
            "A list has no data set", where=where, expected=error.expected, found=dataset[:60]
        ) from None
    if family(dataset) == "coco":
        return f"{namespace}:{_coco_id(leaf)}"
    if leaf.kind != TEXT:
        raise DecisionError(
            f"An image id would be read as a number or another value ({leaf.kind})",
            where=leaf.where,
            expected=f"ids of {dataset} in quotes",
            found=ascii(leaf.text)[:60],
            hint=f'write "{leaf.text[:20]}"' if leaf.text.isalnum() else None,
        )
    if dataset == "openimages" and not _OPEN_IMAGES_ID.fullmatch(leaf.text):
        raise DecisionError(
            "An image id is none of Open Images",
            where=leaf.where,
            expected="16 hexadecimal digits",
            found=ascii(leaf.text)[:60],
        )
    return f"{namespace}:{leaf.text}"


def _coco_id(leaf: Leaf) -> str:
    # 010 is eight in YAML 1.1, and 1_000 a thousand: only what reads the same everywhere passes.
    if leaf.kind in (TEXT, INTEGER) and _COCO_NUMBER.fullmatch(leaf.text):
        return coco_native(int(leaf.text))
    raise DecisionError(
        "An image id is no number of COCO",
        where=leaf.where,
        expected="a plain whole number, without leading zeros, of at most 12 digits",
        found=f"{ascii(leaf.text)[:60]} ({leaf.kind})",
    )


def _layout() -> str:
    return f"{CANDIDATES}, {', '.join(LISTS)}: each by data set, then ids, or ids by reason"


NEAR, REMOVED = "CATS_TO_NEAR_OOD", "CATS_TO_REMOVE"
_ID_SUFFIX = "_CLASSES"
_LAYOUT = f"VOC{_ID_SUFFIX} or BDD{_ID_SUFFIX}, {REMOVED}, {NEAR}: each by data set, then names"


@dataclass(frozen=True, slots=True)
class CategoryLists:
    """Category names by data set: those of ID classes, those that remove an image, those that make it near."""

    id_names: Mapping[str, tuple[str, ...]]
    removed: Mapping[str, tuple[str, ...]]
    near: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CategoryFinding:
    """One category that stands where it should not.

    Attributes
    ----------
    problem : {"id_class_is_near", "removed_and_near"}
        An ID class in the near list: such images show what the detector knows. Or a category in both lists: removal
        wins, so that it is near only where an override keeps the image.
    """

    dataset: str
    name: str
    problem: str

    def text(self) -> str:
        """Return this as one sentence."""
        if self.problem == "id_class_is_near":
            return f"{self.dataset}: the near list names {self.name!r}, an ID class."
        return f"{self.dataset}: {self.name!r} is to be removed and near; removal wins."


def read_category_lists(path: Path) -> CategoryLists:
    """Return the category lists of a ``.yaml`` or ``.json`` file of the authors; other keys are passed over.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError
        It is no such file.
    """
    data = read_bytes(path, kind="file of category lists")
    is_json = path.suffix.lower() == ".json"
    root = (parse_json_tree if is_json else parse_yaml_tree)(data, path.name)
    if not isinstance(root, Keyed):
        raise _malformed(path.name)
    lists = dict(root.items)
    id_keys = [key for key in lists if key.endswith(_ID_SUFFIX)]
    if len(id_keys) != 1:
        raise _malformed(path.name, f"{len(id_keys)} lists of ID classes")
    return CategoryLists(
        id_names=_names(lists[id_keys[0]], path.name),
        removed=_names(lists.get(REMOVED), path.name),
        near=_names(lists.get(NEAR), path.name),
    )


def check_categories(lists: CategoryLists) -> tuple[CategoryFinding, ...]:
    """Return what is odd about category lists, sorted by data set and name; case does not count."""
    found = []
    for dataset, near in lists.near.items():
        known, removed = (_folded(one.get(dataset, ())) for one in (lists.id_names, lists.removed))
        for name in near:
            if name.casefold() in known:
                found.append(CategoryFinding(dataset, name, "id_class_is_near"))
            if name.casefold() in removed:
                found.append(CategoryFinding(dataset, name, "removed_and_near"))
    return tuple(sorted(found, key=lambda one: (one.problem, one.dataset, one.name)))


def _folded(names: Collection[str]) -> set[str]:
    return {name.casefold() for name in names}


def _names(value: Any, name: str) -> dict[str, tuple[str, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Keyed):
        raise _malformed(name)
    return {dataset: _texts(several, name) for dataset, several in value.items}


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _malformed(name)
    for one in value:
        if not isinstance(one, Leaf) or one.kind != TEXT or not one.text.isprintable():
            raise _malformed(getattr(one, "where", name), "a category that is no line of text")
    return tuple(one.text for one in value)


def _malformed(where: str, found: str | None = None) -> DecisionError:
    return DecisionError("The file holds no category lists", where=where, expected=_LAYOUT, found=found)
