"""Nested lists of texts that a user writes as YAML or JSON, each scalar with its kind and its place in the file.

Only plain mappings, lists and scalars pass: no anchors, aliases, tags or second document, nothing deep or large.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.errors import DecisionError

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
            raise DecisionError(
                "The file uses anchors or aliases", where=where, expected="plain lists of ids"
            )
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
        return _keyed(
            [(key, _from_json(one, f"{where}: {key[:60]}", depth - 1)) for key, one in value], where
        )
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
            raise DecisionError(
                "A key stands twice or is no line of text", where=where, found=ascii(key)[:80]
            )
        seen.add(key)
    return Keyed(tuple(pairs), where)


def _problem(error: Exception) -> str:
    text = str(getattr(error, "problem", None) or error)
    return "".join(c if c.isprintable() else " " for c in text)[:200]
