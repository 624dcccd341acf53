"""Recorded decisions on images in the form of a manifest, and their replay on a start list.

Recorded decisions are a parameter of a manifest: image, decision and reason only. `replay`
applies them in the order of the code of FindMeIfYouCan, as set operations: the automatic stage with its overrides
(``get_images_to_near_and_remove``), the first manual stage (``remove_and_split_manual_inspection``), then the accepted
candidates. The order of decisions inside a stage, and repeats, change nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from curation.core.errors import DecisionConflictError, DecisionError, ProtocolError
from curation.core.wording import examples
from curation.manifest.header import DIGEST
from curation.review.decisions.application import Ineffective
from curation.review.decisions.decision import Action, Decision, Stage, check_decision
from curation.review.decisions.files import read_decisions
from curation.review.decisions.resolution import recorded_form, resolve

_RESOLVE = "curation review summary {} --rule {} --out RESOLVED.jsonl, and build with that file"
_Group = tuple[str, str, str, str, tuple[str, ...]]


def read_recorded(text: str, *, allow_conflicts: bool = False) -> str:
    """Return recorded decisions in the form of a manifest, or ``""``, or the digest that pins them.

    The form is JSON: rows ``[dataset, stage, action, reason, [image, …]]``, sorted, images sorted and once. Reviewers
    and dates stay in the decisions file.

    Parameters
    ----------
    text : str
        A file (see `curation.review.decisions.files.read_decisions`), the form itself, or ``sha256:…`` of it, by
        which a declared manifest identifies the decisions that complete it.
    allow_conflicts : bool
        Replay all decisions of a file that contradict each other, as the authors' code does. Those in the authors'
        format are always replayed, and reported (`contradictions`): their published lists contain one contradiction.

    Raises
    ------
    MissingFileError
        No such file.
    DecisionError, DecisionConflictError, ProtocolError
        It has no decisions, its last line is cut off, or decisions contradict each other without `allow_conflicts`.
    """
    if not text or re.fullmatch(DIGEST, text):
        return text
    if text.startswith("["):
        return recorded_form(_parsed(text))
    file = read_decisions(Path(text))
    if file.torn:
        raise DecisionError(
            "The last line of the decisions is cut off",
            where=file.name,
            found=ascii(file.torn),
            hint=_RESOLVE.format(shlex.quote(text), "error"),
        )
    allowed = allow_conflicts or file.format == "selection"
    try:
        resolution = resolve(file.decisions, rule="error", allow_conflicts=allowed)
    except DecisionConflictError as error:
        majority = _RESOLVE.format(shlex.quote(text), "majority")
        error.hint = f"{majority}; or curation build … --on-error conflicts=keep replays them all"
        raise
    return recorded_form(resolution.decisions)


def read_decisions_file(path: Path, allow_conflicts: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's decisions as `read_recorded` does, and their `contradictions`."""
    # A name such as sha256:… or [] would be read as the decisions themselves.
    text = read_recorded(str(path.absolute()), allow_conflicts=allow_conflicts)
    return text, contradictions(text)


def contradictions(text: str) -> tuple[str, ...]:
    """Return the images with contradictory decisions in the same stage, as text, from decisions in recorded form."""
    return tuple(
        f"{case.image_id} ({case.dataset}, {case.stage}): {' and '.join(action for action, _ in case.votes)}"
        for case in resolve(decisions_in(text), allow_conflicts=True).conflicts
    )


def is_pinned_only(text: str) -> bool:
    """Return whether decisions are named by digest only and are not available."""
    return bool(re.fullmatch(DIGEST, text))


def decisions_in(text: str) -> list[Decision]:
    """Return the decisions of a text in recorded form; empty for an empty text or a digest."""
    return _parsed(text) if text and not is_pinned_only(text) else []


def _parsed(text: str) -> list[Decision]:
    try:
        groups = msgspec.convert(json.loads(text), type=tuple[_Group, ...])
        decisions = [
            msgspec.convert(
                {"image_id": image, "dataset": dataset, "stage": stage, "action": action, "reason": reason},
                type=Decision,
            )
            for dataset, stage, action, reason, images in groups
            for image in images
        ]
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            "The decisions are not in the form that a manifest holds",
            where="--set decisions",
            expected="[[dataset, stage, action, reason, [image, …]], …]",
            found=str(error)[:200],
            hint="--decisions FILE reads a file",
        ) from None
    for decision in decisions:
        check_decision(decision, where="--set decisions")
    return decisions


@dataclass(frozen=True, slots=True)
class Replayed:
    """The splits of a start list after the replay. All ids are sorted.

    Attributes
    ----------
    near, far : tuple of str
        Start images by split, without added images.
    removed : tuple of str
        Start images in neither split.
    added_near, added_far : tuple of str
        Accepted candidates, including those in the start list.
    ineffective : tuple of Ineffective
        Decisions without an image to act on, or that another decision overrides.
    shared : tuple of str
        Images that end in both near and far.
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
        Images of B that show a category to remove, or a near one; removal wins.
    decisions : iterable of Decision
        Those on this list, resolved (`curation.review.decisions.resolution.resolve`).
    where : str
        The subject of the replay, for messages.

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
    images_by_action: dict[tuple[Stage, Action], set[str]] = defaultdict(set)
    for row in decisions:
        images_by_action[row.stage, row.action].add(row.image_id)
    ineffective: list[Ineffective] = []

    def report(stage: Stage, action: Action, why: str, images: Collection[str]) -> None:
        if images:
            ineffective.append(Ineffective(stage, action, why, tuple(sorted(images))))

    kept_near, dropped = images_by_action["auto_override", "keep_near"], images_by_action["auto_override", "remove"]
    removed = (set(remove) | dropped) - kept_near
    is_near = ((set(near) | kept_near) - dropped) - removed
    if outside := is_near - listed:
        raise DecisionError(
            "Images that are to be near are not in the start list",
            where=where,
            expected="every image of keep_near in the start list",
            found=f"{len(outside)}: {examples(sorted(outside))}",
            hint="is it the start list that the decisions were made on?",
        )
    report("auto_override", "remove", "are not in the start list", dropped - listed)
    report("auto_override", "keep_near", "are also removed by an override, and stay far", kept_near & dropped)
    split = {"near": is_near, "far": listed - removed - is_near, "removed": listed & removed}
    steps: tuple[tuple[Action, str, str, str], ...] = (
        ("remove", "far", "near", "removed"),
        ("to_near", "far", "near", "near"),
        ("to_far", "near", "far", "far"),
    )
    for action, origin, other, target in steps:
        images = images_by_action["manual", action]
        report("manual", action, f"are not in {origin} but in {other}", images & split[other])
        report("manual", action, "were removed before", images & split["removed"])
        report("manual", action, "are not in the start list", images - listed)
        moved = images & split[origin]
        split[origin] -= moved
        split[target] |= moved
    added_near, added_far = images_by_action["candidate", "add_near"], images_by_action["candidate", "add_far"]
    report("candidate", "add_near", "stand in the start list", added_near & listed)
    report("candidate", "add_far", "stand in the start list", added_far & listed)
    report("candidate", "add_near", "are added to far too", added_near & added_far)
    shared = (split["near"] | added_near) & (split["far"] | added_far)
    return Replayed(
        near=tuple(sorted(split["near"])),
        far=tuple(sorted(split["far"])),
        removed=tuple(sorted(split["removed"])),
        added_near=tuple(sorted(added_near)),
        added_far=tuple(sorted(added_far)),
        ineffective=tuple(ineffective),
        shared=tuple(sorted(shared)),
    )
