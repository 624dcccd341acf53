"""Replay of decisions on a start list, in the order of the FindMeIfYouCan code: pure algebra of sets.

The automatic stage with its overrides (``get_images_to_near_and_remove``), the first manual stage
(``remove_and_split_manual_inspection``), then the accepted candidates; sections 1.3, 1.4 and 1.6 of the specification.
The order of decisions inside a stage, and repeats, change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from curation.decisions.decision import Action, Decision, Stage
from curation.errors import DecisionError

_SHOWN = 3
_Ids = set[str]


@dataclass(frozen=True, slots=True)
class Ineffective:
    """Decisions of one kind that could not act, each image once, sorted, and why they could not."""

    stage: Stage
    action: Action
    why: str
    images: tuple[str, ...]

    def text(self) -> str:
        """Return this as one sentence with the first few ids."""
        more = ", …" if len(self.images) > _SHOWN else ""
        first = ", ".join(self.images[:_SHOWN])
        return f"{len(self.images)} images of {self.stage} {self.action} {self.why}: {first}{more}."


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a start list becomes. All ids are sorted.

    Attributes
    ----------
    near, far : tuple of str
        Start images by split, those added not among them.
    removed : tuple of str
        Start images that are in neither.
    added_near, added_far : tuple of str
        Accepted candidates, also those that stand in the start list.
    notes : tuple of str
        `ineffective` in words.
    ineffective : tuple of Ineffective
        Decisions that found no image to act on, or that another overrides.
    shared : tuple of str
        Images that end in near and in far.
    """

    near: tuple[str, ...]
    far: tuple[str, ...]
    removed: tuple[str, ...]
    added_near: tuple[str, ...]
    added_far: tuple[str, ...]
    notes: tuple[str, ...]
    ineffective: tuple[Ineffective, ...] = ()
    shared: tuple[str, ...] = ()


def replay(
    start: Iterable[str],
    *,
    remove: Collection[str],
    near: Collection[str],
    decisions: Iterable[Decision],
    where: str = "",
) -> Replayed:
    """Return the near and the far split of a start list after the automatic stage and all decisions.

    Parameters
    ----------
    start : iterable of str
        Ids of the start list B.
    remove, near : collection of str
        Images of B that show a category to remove, and one that is near; removal wins.
    decisions : iterable of Decision
        Those that speak of this list, resolved (`curation.decisions.resolution.resolve`).
    where : str
        What is replayed, for messages.

    Notes
    -----
    With the recorded sets of `auto_override`, R = (remove ∪ removed) − kept near and
    N = ((near ∪ kept near) − removed) − R; then far = B − R − N. Of the manual stage, removals act on far alone, then
    far images move to near, then near images to far.

    Raises
    ------
    DecisionError
        An image that is to be near is not in the start list (a ``KeyError`` in the authors' code).
    """
    listed = set(start)
    of = _by_action(decisions)
    kept, dropped = of["auto_override", "keep_near"], of["auto_override", "remove"]
    removed = (set(remove) | dropped) - kept
    near_now = ((set(near) | kept) - dropped) - removed
    _check_inside(near_now - listed, where)
    far_now = listed - removed - near_now
    told = [
        _told("auto_override", "remove", "are not in the start list", dropped - listed),
        _told("auto_override", "keep_near", "are also removed by an override, and stay far", kept & dropped),
    ]
    told += _manual_stage(near_now, far_now, listed, of)
    added_near, added_far = of["candidate", "add_near"], of["candidate", "add_far"]
    told += [
        _told("candidate", "add_near", "stand in the start list", added_near & listed),
        _told("candidate", "add_far", "stand in the start list", added_far & listed),
        _told("candidate", "add_near", "are added to far too", added_near & added_far),
    ]
    ineffective = tuple(one for one in told if one.images)
    return Replayed(
        near=_sorted(near_now),
        far=_sorted(far_now),
        removed=_sorted(listed - near_now - far_now),
        added_near=_sorted(added_near),
        added_far=_sorted(added_far),
        notes=tuple(one.text() for one in ineffective),
        ineffective=ineffective,
        shared=_sorted((near_now | added_near) & (far_now | added_far)),
    )


def _manual_stage(near: _Ids, far: _Ids, listed: _Ids, of: _Actions) -> list[Ineffective]:
    """Change near and far in place: far −= remove; then far to near; then near to far."""
    drop, to_near, to_far = (of["manual", action] for action in ("remove", "to_near", "to_far"))
    told = _not_found("remove", drop, far, "far", {"near": near, "neither": listed}, listed)
    far -= drop
    told += _not_found("to_near", to_near, far, "far", {"near": near, "neither": listed}, listed)
    moved = far & to_near
    near |= moved
    far -= moved
    told += _not_found("to_far", to_far, near, "near", {"far": far, "neither": listed}, listed)
    moved = near & to_far
    far |= moved
    near -= moved
    return told


def _not_found(
    action: Action, asked: _Ids, acts_on: _Ids, list_name: str, others: dict[str, _Ids], listed: _Ids
) -> list[Ineffective]:
    """Return the images that a decision did not find in the list it acts on, by where they stand instead."""
    absent = asked - acts_on
    told = []
    for name, ids in others.items():
        found = absent & ids
        why = f"are not in {list_name} but in {name}" if name != "neither" else "were removed before"
        told.append(_told("manual", action, why, found))
        absent -= found
    return [*told, _told("manual", action, "are not in the start list", absent - listed)]


class _Actions(dict[tuple[str, str], _Ids]):
    """Images by stage and action, an empty set where there are none."""

    def __missing__(self, key: tuple[str, str]) -> _Ids:
        return set()


def _by_action(decisions: Iterable[Decision]) -> _Actions:
    found = _Actions()
    for one in decisions:
        found.setdefault((one.stage, one.action), set()).add(one.image_id)
    return found


def _check_inside(outside: _Ids, where: str) -> None:
    if outside:
        first = ", ".join(sorted(outside)[:_SHOWN])
        raise DecisionError(
            "Images that are to be near are not in the start list",
            where=where,
            expected="every image of keep_near among those that the start rule and list let in",
            found=f"{len(outside)}: {first}",
            hint="is it the start list that the decisions were made on?",
        )


def _told(stage: Stage, action: Action, why: str, images: _Ids) -> Ineffective:
    return Ineffective(stage, action, why, _sorted(images))


def _sorted(images: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(images))
