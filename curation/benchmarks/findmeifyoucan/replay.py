"""Replay of decisions on a start list, in the order of the FindMeIfYouCan code: pure algebra of sets.

The automatic stage with its overrides (``get_images_to_near_and_remove``), the first manual stage
(``remove_and_split_manual_inspection``), then the accepted candidates; sections 1.3, 1.4 and 1.6 of the specification.
The order of decisions inside a stage, and repeats, change nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from curation.core.errors import DecisionError
from curation.core.wording import examples
from curation.review.decisions.application import Ineffective
from curation.review.decisions.decision import Action, Decision, Stage


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
    ineffective: tuple[Ineffective, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return `ineffective` in words."""
        return tuple(row.text() for row in self.ineffective)


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
        Those that speak of this list, resolved (`curation.review.decisions.resolution.resolve`).
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
    asked: dict[tuple[Stage, Action], set[str]] = defaultdict(set)
    for row in decisions:
        asked[row.stage, row.action].add(row.image_id)
    found: list[Ineffective] = []

    def tell(stage: Stage, action: Action, why: str, images: Collection[str]) -> None:
        if images:
            found.append(Ineffective(stage, action, why, tuple(sorted(images))))

    kept, dropped = asked["auto_override", "keep_near"], asked["auto_override", "remove"]
    removed = (set(remove) | dropped) - kept
    is_near = ((set(near) | kept) - dropped) - removed
    if outside := is_near - listed:
        raise DecisionError(
            "Images that are to be near are not in the start list",
            where=where,
            expected="every image of keep_near among those that the start rule and list let in",
            found=f"{len(outside)}: {examples(sorted(outside))}",
            hint="is it the start list that the decisions were made on?",
        )
    tell("auto_override", "remove", "are not in the start list", dropped - listed)
    tell("auto_override", "keep_near", "are also removed by an override, and stay far", kept & dropped)
    now = {"near": is_near, "far": listed - removed - is_near, "removed": listed & removed}
    steps: tuple[tuple[Action, str, str, str], ...] = (
        ("remove", "far", "near", "removed"),
        ("to_near", "far", "near", "near"),
        ("to_far", "near", "far", "far"),
    )
    for action, origin, other, target in steps:
        images = asked["manual", action]
        tell("manual", action, f"are not in {origin} but in {other}", images & now[other])
        tell("manual", action, "were removed before", images & now["removed"])
        tell("manual", action, "are not in the start list", images - listed)
        moved = images & now[origin]
        now[origin] -= moved
        now[target] |= moved
    added_near, added_far = asked["candidate", "add_near"], asked["candidate", "add_far"]
    tell("candidate", "add_near", "stand in the start list", added_near & listed)
    tell("candidate", "add_far", "stand in the start list", added_far & listed)
    tell("candidate", "add_near", "are added to far too", added_near & added_far)
    shared = (now["near"] | added_near) & (now["far"] | added_far)
    lists = (now["near"], now["far"], now["removed"], added_near, added_far)
    near_now, far_now, removed_now, *added = (tuple(sorted(ids)) for ids in lists)
    return Replayed(near_now, far_now, removed_now, added[0], added[1], tuple(found), tuple(sorted(shared)))
