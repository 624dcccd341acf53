"""Recorded decisions as one parameter of a manifest: which image, which verdict, for which reason; no more."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from curation.benchmarks.findmeifyoucan.pairs import Pool
from curation.decisions.decision import Decision, check_decision
from curation.decisions.files import read_decisions
from curation.decisions.resolution import recorded_form, resolve
from curation.errors import DecisionConflictError, DecisionError, ProtocolError
from curation.manifest.manifest import DIGEST

_RESOLVE = "curation decisions {} --rule {} --out RESOLVED.jsonl, and build with that file"
_Group = tuple[str, str, str, str, tuple[str, ...]]


def read_recorded(text: str, *, allow_conflicts: bool = False) -> str:
    """Return recorded decisions in the form that a manifest holds, or ``""``, or the digest that pins them.

    The form is JSON: rows ``[dataset, stage, action, reason, [image, …]]``, sorted, images sorted and once. Reviewers
    and dates stay in the decisions file.

    Parameters
    ----------
    text : str
        A file (see `curation.decisions.files.read_decisions`), the form itself, or ``sha256:…`` of it, with which a
        declared manifest says which decisions complete it.
    allow_conflicts : bool
        Take all verdicts of a file that contradict each other, as the authors' code does. Those of the authors' own
        format are always taken, and told (`contradictions`): their published lists contradict each other once.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError, DecisionConflictError, ProtocolError
        It holds no decisions, its last line is cut off, or verdicts contradict each other and may not.
    """
    if not text or re.fullmatch(DIGEST, text):
        return text
    if text.startswith("["):
        return recorded_form(_parsed(text))
    file = read_decisions(Path(text))
    if file.report.torn:
        raise DecisionError(
            "The last line of the decisions is cut off",
            where=file.report.name,
            found=ascii(file.report.torn),
            hint=_RESOLVE.format(file.report.name, "error"),
        )
    allowed = allow_conflicts or file.report.format == "selection"
    try:
        resolution = resolve(file.decisions, rule="error", allow_conflicts=allowed)
    except DecisionConflictError as error:
        mended = _RESOLVE.format(file.report.name, "majority")
        error.hint = f"{mended}; or curation build … --allow-conflicts replays them all"
        raise
    return recorded_form(resolution.decisions)


def read_decisions_file(path: Path, allow_conflicts: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's decisions as `read_recorded` does, and what `contradictions` tells of them."""
    # A name such as sha256:… or [] would be taken for the decisions themselves.
    text = read_recorded(str(path.absolute()), allow_conflicts=allow_conflicts)
    return text, contradictions(text)


def contradictions(text: str) -> tuple[str, ...]:
    """Return in words the images on which verdicts of one stage differ, in the form of `recorded_form`."""
    if not text or is_pinned_only(text):
        return ()
    return tuple(
        f"{one.image_id} ({one.dataset}, {one.stage}): {' and '.join(action for action, _ in one.votes)}"
        for one in resolve(_parsed(text), allow_conflicts=True).conflicts
    )


def is_pinned_only(text: str) -> bool:
    """Return whether decisions are named by their digest and not available."""
    return bool(re.fullmatch(DIGEST, text))


def decisions_of(text: str, pool: Pool) -> tuple[Decision, ...]:
    """Return the decisions that speak of a pool, or of one of its splits, and that the pool takes into account."""
    return tuple(one for one in _speaking(text, pool) if _is_heard(one, pool))


def disregarded(text: str, pool: Pool) -> int:
    """Return the number of decisions that speak of a pool and that it does not take into account."""
    return sum(not _is_heard(one, pool) for one in _speaking(text, pool))


def unheard_datasets(text: str, pools: Sequence[Pool]) -> dict[str, int]:
    """Return the number of decisions by data set that speak of none of some pools."""
    heard = {name for pool in pools for name in (pool.name, *pool.parts)}
    counts: dict[str, int] = {}
    if text and not is_pinned_only(text):
        for one in _parsed(text):
            if one.dataset not in heard:
                counts[one.dataset] = counts.get(one.dataset, 0) + 1
    return dict(sorted(counts.items()))


def _speaking(text: str, pool: Pool) -> list[Decision]:
    if not text or is_pinned_only(text):
        return []
    return [one for one in _parsed(text) if one.dataset in (pool.name, *pool.parts)]


def _is_heard(one: Decision, pool: Pool) -> bool:
    is_removal = (one.stage, one.action) == ("manual", "remove")
    return not pool.reasons or (is_removal and one.reason in pool.reasons)


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
    for one in decisions:
        check_decision(one, where="--set decisions")
    return decisions
