"""Two manifests compared as sets and roles, and the version step that the difference deserves.

The rule, the first that applies:

major
    a part or class is gone; a list, its order where order carries meaning, a part's role, a class's role or index, a
    label view of what existed before, or the boxes that reviewers added, are others.
minor
    a part, class or alias is new, or a declared part has got its list.
patch
    anything else differs: words, figures, source files, parameters that changed no list.
none
    the digests are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from curation.manifest.header import ClassEntry, Header, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.soundness import header_as_data, version_numbers
from curation.short_repr import short_repr

Verdict = Literal["none", "patch", "minor", "major"]
_LONGEST = 80
"""Characters of a value that are shown."""
_STEPS: tuple[Verdict, ...] = ("none", "patch", "minor", "major")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: what it is, and the version step it deserves.

    Attributes
    ----------
    ids : PartChange or None
        Where the ids of a part differ, how.
    """

    step: Verdict
    subject: str
    what: str
    ids: PartChange | None = None


@dataclass(frozen=True, slots=True)
class PartChange:
    """How the list of one part changed.

    Attributes
    ----------
    added, removed : tuple of str
        Ids, sorted; an id whose repeats became more or fewer stands once for each line.
    moved_to : dict of str to int
        Of the removed ids, how many another part has gained, by that part.
    reordered : bool
        Same ids in another order, in a part whose order carries meaning.
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
        The step between the two version numbers; None where the names differ or the version went back.
    """

    __repr__ = short_repr

    parts: tuple[PartChange, ...]
    changes: tuple[Change, ...]
    verdict: Verdict
    stated_step: Verdict | None

    @property
    def reason(self) -> str:
        """The first change that led to the verdict, in words."""
        return next(
            (f"{one.subject}: {one.what}" for one in self.changes if one.step == self.verdict),
            "equal digests",
        )


def diff_manifests(old: Manifest, new: Manifest) -> ManifestDiff:
    """Return how `new` differs from `old`, and whether that is a major, minor or patch step, or none."""
    parts = tuple(_part_changes(old, new))
    changes = [
        *_compare_parts(old, new, parts),
        *_compare_classes(old.header.classes, new.header.classes),
        *_compare_tasks(old.header, new.header),
        *_compare_overlays(old.header, new.header),
        *_compare_words(old.header, new.header),
    ]
    if not changes and old.digest != new.digest:
        changes.append(Change("patch", "header", "differs"))
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


def _compare_parts(old: Manifest, new: Manifest, parts: tuple[PartChange, ...]) -> Iterable[Change]:
    before = {part.name: part for part in old.header.parts}
    after = {part.name: part for part in new.header.parts}
    for name in sorted(before.keys() - after.keys()):
        yield Change("major", f"part {name}", "is gone")
    for name in sorted(after.keys() - before.keys()):
        yield Change("minor", f"part {name}", "is new")
    for name in sorted(before.keys() & after.keys()):
        yield from _compare_entries(before[name], after[name])
        pinned = {before[name].sha256, after[name].sha256}
        if not (name in old.lists and name in new.lists) and None not in pinned and len(pinned) == 2:
            yield Change("major", f"part {name}", "its list is another; not available, only its digest")
    for part in parts:
        if part.added or part.removed:
            what = f"{len(part.added)} ids added, {len(part.removed)} removed"
            yield Change("major", f"part {part.name}", what, part)
        elif part.reordered:
            yield Change("major", f"part {part.name}", "the order of its ids is another", part)


def _compare_tasks(old: Header, new: Header) -> Iterable[Change]:
    if old.tasks != new.tasks:
        yield Change("major", "tasks", "the classes that a task introduces, or their order, are others")


def _compare_overlays(old: Header, new: Header) -> Iterable[Change]:
    """Boxes of reviewers are truth: a score against others is another score."""
    if old.overlay == new.overlay:
        return
    told = ["none" if one is None else one.told for one in (old.overlay, new.overlay)]
    same = old.overlay is not None and new.overlay is not None and old.overlay.sha256 == new.overlay.sha256
    yield Change("patch" if same else "major", "overlay", f"{told[0]} became {told[1]}")


def _compare_entries(before: PartEntry, after: PartEntry) -> Iterable[Change]:
    subject = f"part {before.name}"
    if before.sha256 is None and after.sha256 is not None:
        yield Change("minor", subject, "a declared part has got its list")
    if before.sha256 is not None and after.sha256 is None:
        yield Change("major", subject, "its list is gone")
    if before.role != after.role:
        yield Change("major", subject, f"role {before.role} became {after.role}")
    if before.view != after.view:
        yield Change("major", subject, f"label view: {_fields_changed(before.view, after.view)}")
    if before.order != after.order:
        yield Change("major", subject, f"order {before.order} became {after.order}")
    listed = ("sha256", "images", "role", "view", "order")
    words = [name for name in PartEntry.__struct_fields__ if name not in listed]
    if before.sha256 is not None and any(getattr(before, name) != getattr(after, name) for name in words):
        yield Change("patch", subject, f"{_fields_changed(before, after, words)}")


def _compare_classes(old: tuple[ClassEntry, ...], new: tuple[ClassEntry, ...]) -> Iterable[Change]:
    before = {entry.name: entry for entry in old}
    after = {entry.name: entry for entry in new}
    for name in sorted(before.keys() - after.keys()):
        yield Change("major", f"class {name}", "is gone")
    for name in sorted(after.keys() - before.keys()):
        yield Change("minor", f"class {name}", f"is new ({after[name].role})")
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name], after[name]
        if (one.role, one.index) != (other.role, other.index):
            what = f"{one.role} {one.index} became {other.role} {other.index}"
            yield Change("major", f"class {name}", what)
        if lost := set(one.aliases) - set(other.aliases):
            yield Change("major", f"class {name}", f"lost the alias {min(lost)!r}")
        elif one.aliases != other.aliases:
            yield Change("minor", f"class {name}", "has new aliases")


def _compare_words(old: Header, new: Header) -> Iterable[Change]:
    """Return the differences that touch no list, role or view."""
    before, after = header_as_data(old), header_as_data(new)
    for name in sorted(before):
        if name in ("parts", "classes", "overlay") or before.get(name) == after.get(name):
            continue
        if name == "rule":
            yield Change("patch", "rule", _fields_changed(old.rule, new.rule))
        elif name == "sources":
            yield Change("patch", "sources", _sources_changed(old, new))
        elif isinstance(before[name], str) and isinstance(after.get(name), str):
            yield Change("patch", name, _became(before[name], after[name]))
        else:
            yield Change("patch", name, "differs")
    if [entry.name for entry in old.classes] != [entry.name for entry in new.classes]:
        yield Change("patch", "classes", "the list of classes is another")


def _sources_changed(old: Header, new: Header) -> str:
    before = {entry.name: entry for entry in old.sources}
    after = {entry.name: entry for entry in new.sources}
    words = [f"{name} is gone" for name in sorted(before.keys() - after.keys())]
    words += [f"{name} is new" for name in sorted(after.keys() - before.keys())]
    shared = sorted(before.keys() & after.keys())
    words += [f"{name}: {_fields_changed(before[name], after[name])}" for name in shared if before[name] != after[name]]
    return "; ".join(words) or "in another order"


def _fields_changed(old: msgspec.Struct, new: msgspec.Struct, names: Iterable[str] | None = None) -> str:
    fields = old.__struct_fields__ if names is None else names
    changed = []
    for name in fields:
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, Mapping) and isinstance(after, Mapping) and before != after:
            keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
            changed += [f"{name}.{key} {_became(before.get(key), after.get(key))}" for key in keys]
        elif isinstance(before, str) and before != after:
            changed.append(f"{name} {_became(before, after)}")
        elif before != after:
            changed.append(f"{name} differs")
    return "; ".join(changed)


def _became(before: object, after: object) -> str:
    """Return ``'old' became 'new'``; of long values the place where they first differ."""
    old, new = repr(before), repr(after)
    if max(len(old), len(new)) > _LONGEST:
        pairs = enumerate(zip(old, new, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
        start = max(0, same - _LONGEST // 3)
        old, new = (
            ("…" if start else "") + text[start : start + _LONGEST] + ("…" if text[start + _LONGEST :] else "")
            for text in (old, new)
        )
    return f"{old} became {new}"


def _stated_step(old: Header, new: Header) -> Verdict | None:
    before, after = version_numbers(old.version), version_numbers(new.version)
    if old.name != new.name or after < before:
        return None
    changed = [one != other for one, other in zip(before, after, strict=True)]
    return _STEPS[3 - changed.index(True)] if any(changed) else "none"
