"""AS, annotation specificity: each purpose has its labels. Train: the task's; finetune, val: the known; test: all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from curation.audit.judgement import VIEWS, ListInTask, cases, forbidden_labels, missing_lists, unlocated
from curation.audit.labels import Labels, ruled_labels
from curation.audit.rule import Check, Finding, undecidable
from curation.audit.target import AuditTarget
from curation.sources.source import Bools, Int64s
from curation.wording import counted


def views_fit_their_purpose(target: AuditTarget) -> Iterator[Finding]:
    """AS1: train views hold no class of earlier tasks; what was written out is the raw boxes, unmoved, rightly named.

    Labels of classes that are not known yet in train, finetune and val views are reported by CO2 and AS2.
    """
    for case in cases(target, "train"):
        yield from forbidden_labels(case, np.append(target.introduced_in < case.task, [False, False]))
    for case in cases(target, "train", "finetune", "val"):
        if case.file is not None:
            yield from _written_view(case)
    for case in cases(target, "test"):
        yield from _test_view(case)


def _test_view(case: ListInTask) -> list[Finding]:
    if not case.is_stated:
        return [undecidable(case.about, VIEWS)]
    if not case.one.available:
        return missing_lists([case.one])
    if case.file is None and (text := _lossy(case)):
        affected = 0 if case.unseen_boxes("") else int(_differences(_expected(case), _labels(case))[0].sum())
        return [Finding("fail", case.about, affected, text)]
    located = unlocated(case.target, case.one)
    if missing := case.unseen_boxes(case.about):
        return missing if len(case.target.held(case.one)) else located
    found = _compared(case, case.about, _expected(case), _labels(case))
    return found + case.uncovered_finding + located


def _labels(case: ListInTask) -> Labels:
    labels = case.labels
    assert labels is not None  # noqa: S101
    return labels


def _written_view(case: ListInTask) -> list[Finding]:
    """Compare a label file of a train, finetune or val list with the raw boxes of the classes that it may label.

    A box whose place holds a label that CO2, AS2 or the first half of AS1 forbids is reported there.
    """
    target, one, task = case.target, case.one, case.task
    about = f"{case.about}: raw boxes"
    if missing := case.unseen_boxes(about):
        return missing
    introduced = target.introduced_in
    allowed = np.append(introduced == task if one.role == "train" else introduced <= task, [False, False])
    ruled = ruled_labels(target, one, task) if one.view_declared else None
    raw, labels = ruled or case.raw, _labels(case)
    elsewhere = labels.where(~allowed[labels.label])
    mine = allowed[raw.label] & ~raw.at_places_of(elsewhere)
    found = _compared(case, about, raw.where(mine), labels.where(allowed[labels.label]), flagged=bool(ruled))
    return found + unlocated(target, one)


def _lossy(case: ListInTask) -> str:
    """Return how a declared view breaks the principle whatever the boxes, ``""`` where it does not."""
    view = case.one.view
    assert view is not None  # noqa: S101
    labels = case.emitted()
    known = case.target.introduced_in <= case.task
    if (known & ~labels[:-2]).any():
        return "the declared view does not keep the known classes"
    if labels[:-2][~known].any():
        return "the declared view keeps the names of classes of later tasks"
    if (~known).any() and not labels[case.target.unknown_label]:
        return "the declared view drops the classes of later tasks"
    return "the declared view drops crowd or difficult boxes" if "drop" in (view.crowd, view.difficult) else ""


def _expected(case: ListInTask) -> Labels:
    raw = case.raw
    known = np.append(case.target.introduced_in <= case.task, [False, False])
    return replace(raw, label=np.where(known[raw.label], raw.label, np.int32(case.target.unknown_label)))


def _compared(case: ListInTask, about: str, expected: Labels, labels: Labels, *, flagged: bool = True) -> list[Finding]:
    """Return whether labels are the expected boxes, on the images of which both sides are known.

    Parameters
    ----------
    flagged : bool
        Whether crowd and difficult boxes must be there too: of training and validation labels it depends on a view
        that nobody declared.
    """
    known = case.target.where(case.target.held(case.one))
    known[case.uncovered] = False
    if not known.any():
        return []
    expected, labels = expected.where(known[expected.image]), labels.where(known[labels.image])
    lost, gained = _differences(expected, labels)
    if not flagged:
        lost &= ~(expected.crowd | expected.difficult)
    if not (lost.any() or gained.any()):
        text = f"{counted(len(expected), 'raw box', 'raw boxes')}, each once in {labels.origin}"
        return [Finding("pass", about, text=text)]
    images = np.unique(np.concatenate([expected.image[lost], labels.image[gained]]))
    renamed = int((lost & expected.at_places_of(labels.where(gained))).sum())
    again = gained & np.isin(labels.keys(), expected.keys())
    boxes = ("box", "boxes")
    told = [
        (int(lost.sum()), ("raw box", "raw boxes"), f"missing from {labels.origin}"),
        (int((gained & ~again).sum()), boxes, f"of {labels.origin} without a raw box of that label"),
        (int(again.sum()), boxes, f"more in {labels.origin} than among the raw boxes"),
    ]
    parts = [f"{counted(number, *words)} {rest}" for number, words, rest in told if number]
    text = "; ".join([*parts, *([f"{renamed:,} of them under the name of another class"] if renamed else [])])
    return [case.of("fail", images, text, max(int(lost.sum()), int(gained.sum())), about)]


def _differences(expected: Labels, found: Labels) -> tuple[Bools, Bools]:
    """Return which boxes of each side have no partner of the same image, label and place on the other."""
    ours, theirs, size = _numbered(expected.keys(), found.keys())
    return _surplus(ours, theirs, size), _surplus(theirs, ours, size)


def _numbered(ours: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]) -> tuple[Int64s, Int64s, int]:
    """Return both sides with equal keys as equal small numbers, and how many different ones there are."""
    distinct, number = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    return number[: len(ours)], number[len(ours) :], len(distinct)


def _surplus(ours: Int64s, theirs: Int64s, size: int) -> Bools:
    """Return which entries of `ours` go beyond the number of equal entries in `theirs`."""
    order = np.argsort(ours, kind="stable")
    ranked = ours[order]
    starts = np.searchsorted(ranked, ranked, side="left")
    place = np.arange(len(ours)) - starts
    beyond = np.zeros(len(ours), np.bool_)
    beyond[order] = place >= np.bincount(theirs, minlength=size)[ranked]
    return beyond


def validation_knows_no_unknown(case: ListInTask) -> list[Finding]:
    """AS2: no label of a val view is ``unknown`` (ORE fitted its energy model on such labels)."""
    return forbidden_labels(case, np.append(np.zeros(len(case.target.classes), np.bool_), [True, False]))


def flags_survive(case: ListInTask) -> list[Finding]:
    """AS3: boxes flagged crowd or difficult in the raw file carry the flag in every view that keeps them."""
    if not case.is_stated:
        return [undecidable(case.about, VIEWS)]
    if unseen := case.unseen_boxes(case.about):
        return unseen
    raw, labels = case.raw, _labels(case)
    missing = case.uncovered_finding + unlocated(case.target, case.one)
    flagged = int((raw.crowd | raw.difficult).sum())
    if not flagged:
        return missing or [Finding("not applicable", case.about, text="no raw box of its images is flagged")]
    bare = _without_flag(raw, labels)
    if len(bare):
        boxes = counted(len(bare), "box", "boxes")
        text = f"{boxes} of {labels.origin} without the flag crowd or difficult of the raw box"
        return [case.of("warn", np.unique(labels.image[bare]), text, len(bare)), *missing]
    return missing or case.passed(counted(flagged, "flagged raw box", "flagged raw boxes"))


def _without_flag(raw: Labels, labels: Labels) -> Int64s:
    """Return the rows of a view that lie where every raw box carries a flag that they lack."""
    ours, theirs, size = _numbered(raw.keys(named=False), labels.keys(named=False))
    lost = np.zeros(len(labels), np.bool_)
    for mine, others in ((labels.crowd, raw.crowd), (labels.difficult, raw.difficult)):
        flagged = np.bincount(ours[others], minlength=size)
        plain = np.bincount(ours[~others], minlength=size)
        lost |= (~mine) & (flagged[theirs] > 0) & (plain[theirs] == 0)
    return np.flatnonzero(lost)


CHECKS: dict[str, Check] = {"AS1": views_fit_their_purpose, "AS2": validation_knows_no_unknown, "AS3": flags_survive}
