"""Comparison of two manifests as sets and roles, and the version step that their differences require.

The first rule that applies decides:

major
    a part or class is removed; or the list, the order (if it has a meaning), the role or the label view of an existing
    part, or the role or index of an existing class differs.
minor
    a part, class or alias is new, or a declared part has a list now.
patch
    anything else differs: texts, figures, source files, parameters without effect on a list.
none
    the digests are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from curation.core.wording import short_repr
from curation.manifest.header import ClassEntry, Header, PartEntry, version_numbers
from curation.manifest.manifest import Manifest

Named = TypeVar("Named", PartEntry, ClassEntry)
Verdict = Literal["none", "patch", "minor", "major"]
_LONGEST = 200
"""Characters of a change that are shown."""
_COMPARED_ALONE = {"sha256", "images", "role", "view", "order"}
_STEPS: tuple[Verdict, ...] = ("none", "patch", "minor", "major")


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """A difference between two manifests, and the version step it requires.

    Attributes
    ----------
    ids : PartChange or None
        How the ids of a part differ, if they do.
    """

    __repr__ = short_repr

    step: Verdict
    subject: str
    what: str
    ids: PartChange | None = None


@dataclass(frozen=True, slots=True)
class PartChange:
    """How the list of a part changed.

    Attributes
    ----------
    added, removed : tuple of str
        Ids, sorted; an id is listed once for each added or removed line.
    moved_to : dict of str to int
        Number of removed ids that were added to another part, by that part.
    reordered : bool
        Whether the ids are the same in another order, in a part whose order has a meaning.
    """

    __repr__ = short_repr

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved_to: dict[str, int]
    reordered: bool


@dataclass(frozen=True, slots=True)
class ManifestDiff:
    """What differs between an older and a newer manifest.

    Attributes
    ----------
    verdict : {"none", "patch", "minor", "major"}
        The largest step among the changes.
    stated_step : {"none", "patch", "minor", "major"} or None
        The step between the two version numbers; None if the names differ or the version decreased.
    """

    __repr__ = short_repr

    parts: tuple[PartChange, ...]
    changes: tuple[ManifestChange, ...]
    verdict: Verdict
    stated_step: Verdict | None

    @property
    def reason(self) -> str:
        """Description of the first change that led to the verdict."""
        return next((f"{row.subject}: {row.what}" for row in self.changes if row.step == self.verdict), "equal digests")


def diff_manifests(old: Manifest, new: Manifest) -> ManifestDiff:
    """Return how `new` differs from `old`, and whether that is a major, minor or patch step, or none."""
    parts = tuple(_part_changes(old, new))
    changes = [
        *_compare_parts(old, new, {part.name: part for part in parts}),
        *_compare_classes(old.header, new.header),
        *_compare_header(old.header, new.header),
    ]
    if not changes and old.digest != new.digest:
        changes.append(ManifestChange("patch", "header", "differs"))
    verdict = _STEPS[max((_STEPS.index(change.step) for change in changes), default=0)]
    return ManifestDiff(
        parts=parts, changes=tuple(changes), verdict=verdict, stated_step=_stated_step(old.header, new.header)
    )


def _part_changes(old: Manifest, new: Manifest) -> Iterable[PartChange]:
    before = {name: Counter(ids) for name, ids in old.lists.items()}
    after = {name: Counter(ids) for name, ids in new.lists.items()}
    gained = {name: (ids - before.get(name, Counter())).keys() for name, ids in after.items()}
    for name in sorted(before.keys() & after.keys()):
        removed = before[name] - after[name]
        moved = {other: len(removed.keys() & ids) for other, ids in sorted(gained.items()) if other != name}
        yield PartChange(
            name=name,
            added=tuple(sorted((after[name] - before[name]).elements())),
            removed=tuple(sorted(removed.elements())),
            moved_to={other: count for other, count in moved.items() if count},
            reordered=before.get(name) == after.get(name) and old.lists[name] != new.lists[name],
        )


def _matched(old: Iterable[Named], new: Iterable[Named]) -> Iterator[tuple[str, Named | None, Named | None]]:
    """Yield name, old and new record: first removed records, then new ones, then those in both."""
    before, after = ({entry.name: entry for entry in some} for some in (old, new))
    for names in (before.keys() - after.keys(), after.keys() - before.keys(), before.keys() & after.keys()):
        yield from ((name, before.get(name), after.get(name)) for name in sorted(names))


def _compare_parts(old: Manifest, new: Manifest, lists: Mapping[str, PartChange]) -> Iterator[ManifestChange]:
    for name, before, after in _matched(old.header.parts, new.header.parts):
        subject = f"part {name}"
        if after is None:
            yield ManifestChange("major", subject, "is removed")
        elif before is None:
            yield ManifestChange("minor", subject, "is new")
        else:
            yield from _compare_entries(subject, before, after, at_hand=name in lists)
    for name, part in lists.items():
        summary = f"{len(part.added)} ids added, {len(part.removed)} removed"
        if part.added or part.removed or part.reordered:
            yield ManifestChange(
                "major", f"part {name}", "the order of its ids differs" if part.reordered else summary, part
            )


def _compare_entries(subject: str, before: PartEntry, after: PartEntry, *, at_hand: bool) -> Iterator[ManifestChange]:
    if before.sha256 is None and after.sha256 is not None:
        yield ManifestChange("minor", subject, "its list, which was only declared, is new")
    elif before.sha256 is not None and after.sha256 is None:
        yield ManifestChange("major", subject, "its list is removed")
    elif before.sha256 != after.sha256 and not at_hand:
        yield ManifestChange("major", subject, "its list differs by digest (a list is not available)")
    for field, wording in (("role", "role {} became {}"), ("order", "order {} became {}")):
        if (was := getattr(before, field)) != (now := getattr(after, field)):
            yield ManifestChange("major", subject, wording.format(was, now))
    if before.view != after.view:
        changes = _changes(msgspec.to_builtins(before.view), msgspec.to_builtins(after.view))
        yield ManifestChange("major", subject, f"label view: {changes}")
    states = [msgspec.to_builtins(part) for part in (before, after)]
    fields = [_values({name: state[name] for name in state.keys() - _COMPARED_ALONE}) for state in states]
    if before.sha256 is not None and (changes := _changes(*fields)):
        yield ManifestChange("patch", subject, changes)


def _compare_classes(old: Header, new: Header) -> Iterator[ManifestChange]:
    for name, before, after in _matched(old.classes, new.classes):
        subject = f"class {name}"
        if before is None or after is None:
            yield (
                ManifestChange("minor", subject, f"is new ({after.role})")
                if after
                else ManifestChange("major", subject, "is removed")
            )
            continue
        if (before.role, before.index) != (after.role, after.index):
            yield ManifestChange("major", subject, f"{before.role} {before.index} became {after.role} {after.index}")
        if lost := set(before.aliases) - set(after.aliases):
            yield ManifestChange("major", subject, f"lost the alias {min(lost)!r}")
        elif before.aliases != after.aliases:
            yield ManifestChange("minor", subject, "has new aliases")


def _compare_header(old: Header, new: Header) -> Iterator[ManifestChange]:
    """Yield the differences between headers, except those of parts and classes."""
    if old.tasks != new.tasks:
        yield ManifestChange("major", "tasks", "the classes that a task introduces, or their order, differ")
    before, after = _header_values(old), _header_values(new)
    for name in sorted(before):
        if summary := _changes(before[name], after[name]):
            yield ManifestChange("patch", name, summary)
    if [entry.name for entry in old.classes] != [entry.name for entry in new.classes]:
        yield ManifestChange("patch", "classes", "the list of classes differs")


def _header_values(header: Header) -> dict[str, dict[str, Any]]:
    data = msgspec.to_builtins(header)
    data["sources"] = {entry["name"]: entry for entry in data["sources"]}
    return {name: _values(data[name]) for name in data.keys() - {"parts", "classes", "tasks"}}


def _values(value: Any, name: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by their names, joined by dots."""
    if not isinstance(value, dict):
        return {name: value}
    nested = (_values(inner, f"{name}.{key}" if name else key) for key, inner in value.items())
    return {key: inner for values in nested for key, inner in values.items()}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return which values differ: ``ratio '0.5' became '0.6'``; only the name of a long value."""
    texts = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was != now:
            became = f"{was!r} became {now!r}"
            texts.append(f"{name} {became if len(became) <= _LONGEST else 'differs'}".strip())
    return "; ".join(texts)


def _stated_step(old: Header, new: Header) -> Verdict | None:
    before, after = version_numbers(old.version), version_numbers(new.version)
    if old.name != new.name or after < before:
        return None
    changed = [was != now for was, now in zip(before, after, strict=True)]
    return _STEPS[3 - changed.index(True)] if any(changed) else "none"
