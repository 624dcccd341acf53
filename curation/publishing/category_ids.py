"""Which category ids a COCO export writes: those of the dataset itself, or the manifest's indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from curation.errors import ExportError
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.manifest.roles import UNKNOWN_ID
from curation.manifest.views import class_positions
from curation.publishing.content import UNKNOWN_NAME, Content
from curation.sources.source import Source

CategoryIds = Literal["auto", "dataset", "manifest"]
UnknownId = int | Literal["manifest", "next"]

_LARGEST_ID = 2**31 - 1
_OTHER = "--category-ids manifest numbers the classes by their index in the manifest, 0, 1, ... with tasks"


@dataclass(frozen=True, slots=True)
class Numbering:
    """The category id of every class of an export.

    Attributes
    ----------
    origin : {"dataset", "manifest"}
    numbers : mapping of int to int
        From the index of each class to its id.
    unknown : int
        The id of ``unknown``, that of no class.
    reason : str
        Why the manifest's indices were taken where nobody asked for them; else empty.
    """

    origin: str
    numbers: Mapping[int, int]
    unknown: int
    reason: str = ""

    @property
    def note(self) -> str:
        """What to tell beside the export."""
        whose = "the dataset's own" if self.origin == "dataset" else "the manifest's indices"
        because = f", because {self.reason}" if self.reason else ""
        return f"Category ids are {whose}{because}; `unknown` is {self.unknown}."


def category_ids(
    manifest: Manifest,
    content: Content,
    sources: Mapping[str, Source],
    asked: CategoryIds = "auto",
    unknown: UnknownId = "manifest",
) -> Numbering:
    """Return the category ids of an export.

    Parameters
    ----------
    asked : {"auto", "dataset", "manifest"}
        ``auto`` takes the dataset's own ids, so that a detector trained on its files is read right. Where the parts of
        the manifest come from several datasets that number classes differently (or whose files are not all given), or
        from files that number no classes (VOC XML), there is no such numbering, and the manifest's indices are taken.
    unknown : int, "manifest" or "next"
        The id of ``unknown``. ``manifest``: -1, which no dataset uses; beside indices of a manifest with tasks the
        number of classes. ``next``: after the last class.

    Raises
    ------
    ExportError
        The dataset's own ids were asked for and there are none, or its files disagree; or the id of unknown is that of
        a class.
    """
    if isinstance(unknown, int) and not -_LARGEST_ID <= unknown <= _LARGEST_ID:
        raise ExportError(
            "The category id of unknown is out of range",
            where="--unknown-id",
            expected=f"-{_LARGEST_ID} to {_LARGEST_ID}: readers of COCO files keep ids in 32 bits",
            found=str(unknown)[:40],
        )
    indices = {entry.index: entry.name for entry in manifest.header.classes if entry.index >= 0}
    reason = _why_not(manifest.header, content, sources)
    if asked == "dataset" and reason:
        raise ExportError(
            "The dataset has no category ids of its own", where="--category-ids", found=reason, hint=_OTHER
        )
    if asked == "manifest" or reason:
        last = max((entry.index for entry in content.classes), default=0)
        chosen = _chosen(unknown, content.unknown_id, last + 1)
        _require_free(content, chosen, indices)
        told = reason if asked == "auto" else ""
        return Numbering("manifest", {index: index for index in indices}, chosen, told)
    numbers = _own_numbers(manifest.header, content, sources)
    taken = {
        number: name
        for slot in content.slots
        for number, name in zip(sources[slot].categories.numbers, sources[slot].categories.names, strict=True)
        if name != UNKNOWN_NAME
    }
    chosen = _chosen(unknown, UNKNOWN_ID, max(taken, default=0) + 1)
    _require_free(content, chosen, taken)
    return Numbering("dataset", numbers, chosen)


def disagreeing_ids(sources: Mapping[str, Source]) -> list[str]:
    """Return a sentence for each dataset whose files give classes different ids: a detector is read by one of them."""
    told: dict[str, str] = {}
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for slot, source in sources.items():
        if not source.has_category_ids:
            continue
        for name, number in zip(source.categories.names, source.categories.numbers, strict=True):
            earlier, other = first.setdefault((source.dataset, name), (slot, number))
            if number != other:
                told.setdefault(
                    source.dataset,
                    f"class {name[:80]!r} has the category id {other} in source {earlier} and {number} in {slot}: "
                    "export with --category-ids manifest, so that one id means one class in all parts",
                )
    return list(told.values())


def _chosen(unknown: UnknownId, usual: int, following: int) -> int:
    if isinstance(unknown, int):
        return unknown
    return following if unknown == "next" else usual


def _why_not(header: Header, content: Content, sources: Mapping[str, Source]) -> str:
    """Return why the sources have no numbering in common, or an empty text."""
    # Asked of the whole manifest and not of the parts of this export: a class has one id in the files of all parts.
    named = {entry.name: entry.dataset for entry in header.sources}
    slots = list(dict.fromkeys(slot for part in header.parts for slot in part.sources))
    datasets = sorted({named[slot] for slot in slots})
    if len(datasets) > 1 and (reason := _not_alike(header, slots, sources)):
        return f"its parts come from several datasets ({', '.join(datasets)}), {reason}"
    without = [slot for slot in content.slots if not sources[slot].has_category_ids]
    return f"the files of {without[0]} number no classes" if without else ""


def _not_alike(header: Header, slots: Sequence[str], sources: Mapping[str, Source]) -> str:
    """Return why the files of several datasets are not known to number their classes alike; empty where they do.

    Training and test files of one's own that number their images alike bear two names, and have one list of categories.
    """
    if missing := [slot for slot in slots if slot not in sources]:
        return f"and {missing[0]} is not given (--source {missing[0]}=PATH)"
    number_of: dict[int | str, int] = {}
    class_of: dict[int, int | str] = {}
    for slot in slots:
        source = sources[slot]
        if not source.has_category_ids:
            return f"and the files of {slot} number no classes"
        positions = class_positions(header.classes, source).tolist()
        for name, position, number in zip(
            source.categories.names, positions, source.categories.numbers, strict=True
        ):
            key = position if position >= 0 else name
            if number_of.setdefault(key, number) != number or class_of.setdefault(number, key) != key:
                return "and they number their classes differently"
    return ""


def _own_numbers(header: Header, content: Content, sources: Mapping[str, Source]) -> dict[int, int]:
    """Return the dataset's id of each class of an export, by the class's index."""
    found: dict[int, tuple[int, str]] = {}
    for slot in content.slots:
        numbers = sources[slot].categories.numbers
        for place, position in enumerate(class_positions(header.classes, sources[slot]).tolist()):
            if position < 0:
                continue
            entry = header.classes[position]
            number, earlier = found.setdefault(entry.index, (numbers[place], slot))
            if number != numbers[place] and entry.index >= 0:
                raise ExportError(
                    f"Class {entry.name[:80]!r} has two category ids",
                    where=slot if slot == earlier else f"{earlier} and {slot}",
                    found=f"{number} and {numbers[place]}",
                    hint=_OTHER,
                )
    missing = [entry.name for entry in content.classes if entry.index not in found]
    if missing:
        raise ExportError(
            f"The source has no category of {len(missing)} classes, so they have no id of the dataset's own",
            where=", ".join(content.slots),
            found=", ".join(missing)[:300],
            hint=f"list them among the file's categories; or {_OTHER}",
        )
    return {index: number for index, (number, _) in found.items() if index >= 0}


def _require_free(content: Content, unknown: int, taken: Mapping[int, str]) -> None:
    if content.has_unknown and unknown in taken:
        raise ExportError(
            "The category id of unknown is that of a class",
            where="--unknown-id",
            expected=f"-1, or a number outside {min(taken)} to {max(taken)}",
            found=f"{unknown}, which is {taken[unknown]}",
        )
