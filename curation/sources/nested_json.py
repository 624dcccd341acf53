"""JSON that lists images: arrays, objects of arrays at any depth, arrays of objects, pairs, COCO JSON, or classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import msgspec
import numpy as np

from curation.core.errors import AnnotationFormatError, DamagedFileError
from curation.core.json_text import refuse_repeated_keys
from curation.sources.entries import (
    LONGEST_LINE,
    MOST_CLASS_NAMES,
    SHOWN,
    WNID,
    EmptyListError,
    OddLine,
    PublishedList,
    name_classes,
)
from curation.sources.records import names_images, read_json_lines, read_objects
from curation.sources.stems import FILE_NAME

_GROUPS = 50
_PART_NAME = re.compile(r"(?:.*[._/-])?(?:train|val|valid|validation|test)(?:[._/-].*|ing|[0-9]*)", re.IGNORECASE)
_SPLIT_NAME = re.compile(r"train|val|test|split|known|\bi?ood\b|\bid\b|all", re.IGNORECASE)
_DEEPEST = 32
_LARGEST_WALKED = 256 << 20
_MOST_LISTS = 4096
_FORMS = (
    "an array of texts, of objects that name images or of pairs, an object of such arrays at any depth, COCO JSON, "
    "one object a line, known_classes and unknown_classes, or an object of texts"
)


class _Image(msgspec.Struct, frozen=True):
    id: int | str = ""
    file_name: str = ""


class _Coco(msgspec.Struct, frozen=True):
    images: list[_Image]
    annotations: msgspec.Raw = msgspec.Raw(b"[]")

    @property
    def annotated(self) -> bool:
        """Whether there is an annotation."""
        return bytes(self.annotations)[:1] == b"[" and bytes(self.annotations)[1:].strip() != b"]"


def read_json(data: bytes, where: str, suffix: str = "") -> dict[str, Any]:
    """Return what a JSON text holds.

    Raises
    ------
    EmptyListError
        It lists nothing.
    DamagedFileError
        It is no JSON.
    AnnotationFormatError
        It is of no known form.
    """
    line, _, others = data[:_LARGEST_WALKED].lstrip().partition(b"\n")
    if (
        line[:1] == b"{"
        and line.rstrip()[-1:] == b"}"
        and (suffix in (".jsonl", ".odgt") or others.lstrip(b" \r\n\t")[:1] == b"{")
    ):
        return read_json_lines(data, where)
    try:
        return _known(data, where)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) and len(data) <= _LARGEST_WALKED:
            refuse_repeated_keys(data, where, AnnotationFormatError)
            try:
                read = _walked(msgspec.json.decode(data), where)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                read = None
            if read is not None:
                return read
        kind = AnnotationFormatError if isinstance(error, msgspec.ValidationError) else DamagedFileError
        raise kind("The JSON is of no known form", where=where, expected=_FORMS, found=str(error)[:200]) from None


def _known(data: bytes, where: str) -> dict[str, Any]:
    if data[:LONGEST_LINE].lstrip()[:1] == b"[":
        return _from_array(msgspec.json.decode(data, type=list[str | int]), where)
    keys = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    refuse_repeated_keys(data, where, AnnotationFormatError)
    if "images" in keys and bytes(keys["images"])[:1] == b"[" and keys.keys() & {"annotations", "categories"}:
        coco = msgspec.json.decode(data, type=_Coco)
        return _from_coco(coco.images, where) | {"annotated": coco.annotated}
    if keys.keys() >= {"known_classes", "unknown_classes"}:
        roles = {role: msgspec.json.decode(keys[f"{role}_classes"]) for role in ("known", "unknown")}
        return {"form": "class roles", "classes": dict(_roles(roles, "", where))}
    if all(bytes(value)[:1] == b"[" for value in keys.values()) and keys:
        return _from_arrays(msgspec.json.decode(data, type=dict[str, list[str | int]]), where)
    named = msgspec.json.decode(data, type=dict[str, str | dict[str, str]])
    renamed = {
        key: value
        for outer, given in named.items()
        for key, value in ([(outer, given)] if isinstance(given, str) else [(f"{outer}/{k}", given[k]) for k in given])
    }
    return {"form": "map", "renamed": renamed}


def _walked(given: Any, where: str) -> dict[str, Any] | None:
    """Return the lists that stand at any depth, named by the keys on the way; None where there is none."""
    found = list[dict[str, Any]]()
    for keys, value in _arrays(given, ()):
        name = "/".join(keys)
        if isinstance(value, Mapping):
            read = _from_arrays(value, where)
        elif _are_pairs(value):
            pairs = _listed("", [text for pair in value for text in pair], where)
            lines = np.repeat(np.arange(1, len(value) + 1, dtype=np.int32), [*map(len, value)])[pairs.lines - 1]
            read = {"form": "pairs", "lists": (replace(pairs, lines=lines, pairs=True),)}
        elif isinstance(value[0], Mapping):
            read = read_objects(value, where)
        else:
            read = _from_array(value, where)
        lists = tuple(replace(part, name="/".join(filter(None, (name, part.name)))) for part in read.get("lists", ()))
        classes = {"/".join(filter(None, (name, key))): names for key, names in read.get("classes", {}).items()}
        found.append(read | {"lists": lists, "classes": classes})
    lists = tuple(listed for read in found for listed in read["lists"])
    if len(lists) > _MOST_LISTS:
        raise AnnotationFormatError(
            "The JSON holds too many lists", where=where, expected=f"at most {_MOST_LISTS:,}", found=f"{len(lists):,}"
        )
    if lists:
        forms = {read["form"] for read in found if read["lists"]}
        notes = tuple(note for read in found for note in read.get("notes", ()))
        return {"form": forms.pop() if len(forms) == 1 else "json lists", "lists": lists, "notes": notes}
    classes = {key: names for read in found for key, names in read["classes"].items()}
    return {"form": "class roles", "classes": classes} if classes else None


def _arrays(given: Any, keys: tuple[str, ...], *, numbers: bool = True) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield arrays of entries and objects of such; of numbers alone only where no array stands around them."""
    if len(keys) > _DEEPEST:
        raise RecursionError
    kinds = str | int if numbers else str
    if isinstance(given, dict):
        filled = {key: value for key, value in given.items() if value or not isinstance(value, list)}
        if filled and all(_is_array(value, kinds) for value in filled.values()):
            yield keys, filled
        else:
            for key, value in given.items():
                yield from _arrays(value, (*keys, key), numbers=numbers)
    elif isinstance(given, list) and given:
        if rows := _rows(given):
            yield keys, rows
        elif _is_array(given, kinds) or _are_pairs(given) or names_images(given):
            yield keys, given
        elif isinstance(given[0], dict | list):
            for position, value in enumerate(given):
                yield from _arrays(value, (*keys, str(position)), numbers=False)


def _rows(given: Sequence[Any]) -> list[dict[str, Any]]:
    """Return rows ``["cat/1.jpg", 0, "cat"]``, of which some cells are files, as objects; nothing for others."""
    if not all(isinstance(row, list) and len(row) == len(given[0]) for row in given):
        return []
    files = [all(FILE_NAME.search(str(cell)) for cell in own) for own in zip(*given, strict=True)]
    if len({*files}) < 2:
        return []
    kinds = ["file_name" if is_file else "label" for is_file in files]
    keys = [kind if kinds.index(kind) == at else f"column {at + 1}" for at, kind in enumerate(kinds)]
    return [dict(zip(keys, row, strict=True)) for row in given]


def _is_array(given: Any, kinds: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(value, kinds) for value in given)


def _are_pairs(given: Sequence[Any]) -> bool:
    return all(_is_array(pair, str) and len(pair) > 1 for pair in given)


def _from_array(given: Sequence[str | int], where: str) -> dict[str, Any]:
    if not given:
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    texts = [text for text in given if isinstance(text, str)]
    if len(texts) == len(given) <= MOST_CLASS_NAMES and name_classes(texts):
        return {"form": "class names", "classes": {"": tuple(texts)}}
    return {"form": "json array", "lists": (_listed("", given, where),)}


def _from_coco(images: Sequence[_Image], where: str) -> dict[str, Any]:
    listed = _listed("", [image.file_name or image.id for image in images], where)
    ids = len({image.id for image in images})
    notes = (f"image ids repeat: {len(images):,} images have {ids:,} ids",) if ids < len(images) else ()
    return {"form": "coco json", "lists": (listed,), "notes": notes}


def _from_arrays(given: Mapping[str, Sequence[str | int]], where: str) -> dict[str, Any]:
    """Read an object of arrays: one list in classes where its keys are classes, else one list a key."""
    wnids = all(WNID.fullmatch(key) for key in given)
    if wnids or (len(given) > _GROUPS and not all(_SPLIT_NAME.search(key) for key in given)):
        groups = np.repeat(np.arange(len(given), dtype=np.int32), [*map(len, given.values())])
        flat = _listed("", [text for own in given.values() for text in own], where)
        return {"form": "json groups", "lists": (replace(flat, groups=tuple(given), group_of=groups[flat.lines - 1]),)}
    if columns := _columns(given):
        rows = _rows([*map(list, zip(*map(given.__getitem__, columns), strict=True))])
        classes = {key: tuple(map(str, given[key])) for key in given if key not in columns}
        return read_objects(rows, where) | {"classes": classes}
    lists = tuple(_listed(key, given[key], where) for key in given if given[key])
    if not lists:
        raise EmptyListError("The lists are empty", where=where, expected="at least one entry")
    parts = all(_PART_NAME.fullmatch(key) for key in given)
    if {"known", "unknown"} <= given.keys() or (
        not parts and all(name_classes([str(text) for text in given[listed.name]]) for listed in lists)
    ):
        return {"form": "class roles", "classes": {key: tuple(map(str, given[key])) for key in given}}
    empty = ", ".join(key for key in given if not given[key])
    return {"form": "json lists", "lists": lists, "notes": (f"empty: {ascii(empty)[1:-1][:200]}",) if empty else ()}


def _columns(given: Mapping[str, Sequence[str | int]]) -> tuple[str, str] | None:
    """Return the keys of files and of their labels, where arrays are columns: ``image_names``, ``image_labels``."""
    files = [key for key, own in given.items() if own and all(FILE_NAME.search(str(text)) for text in own)]
    labels = [key for key, own in given.items() if own and "label" in key and all(isinstance(n, int) for n in own)]
    both = [(name, label) for name in files for label in labels if len(given[name]) == len(given[label])]
    return both[0] if len(files) == len(labels) == len(both) == 1 else None


def _listed(name: str, given: Sequence[str | int], where: str) -> PublishedList:
    """Return entries of JSON as a list; one that is empty or not printable is left out and told."""
    texts = [str(value).strip() for value in given]
    fits = np.array([0 < len(text) <= LONGEST_LINE and text.isprintable() for text in texts], np.bool_)
    good = np.flatnonzero(fits).astype(np.int32)
    odd = [
        OddLine(row + 1, "it is empty, too long or not printable", ascii(texts[row])[:60])
        for row in np.flatnonzero(~fits).tolist()
    ]
    if not texts:
        raise EmptyListError("The list is empty", where=where, expected="texts that name images")
    if not len(good):
        raise AnnotationFormatError(
            "No text names an image", where=where, expected="printable texts", found=f"{odd[0].reason}: {odd[0].text}"
        )
    return PublishedList(
        name, "".join(f"{text}\n" for text in compress(texts, fits)).encode(), good + 1, odd=len(odd),
        odd_lines=tuple(odd[:SHOWN]), integers=any(isinstance(value, int) for value in given),
    )  # fmt: skip


def _roles(given: Any, role: str, where: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the classes of each role; unknown ones may be nested by difficulty."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _roles(value, f"{role}/{key}" if role else key, where)
    elif isinstance(given, list) and all(isinstance(name, str | int) for name in given):
        yield role, tuple(map(str, given))
    else:
        raise AnnotationFormatError(
            "The classes of a role are not an array", where=where, expected="names or numbers of classes",
            found=f"{role}: {ascii(given)[:80]}",
        )  # fmt: skip
