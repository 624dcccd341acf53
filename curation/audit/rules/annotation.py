"""AS, annotation specificity: each purpose has its labels. Train: the task's; finetune, val: the known; test: all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from curation.audit.judgement import (
    VIEWS,
    emitted,
    forbidden_labels,
    missing_lists,
    of_task,
    uncovered_finding,
    unlocated_finding,
    unseen_boxes,
)
from curation.audit.labels import (
    Labels,
    at_places_of,
    chosen,
    file_labels,
    keys_of,
    raw_labels,
    ruled_labels,
    uncovered,
    view_labels,
)
from curation.audit.rule import Check, Finding, undecidable
from curation.audit.target import AuditedList, AuditTarget
from curation.sources.source import Bools, Int64s
from curation.wording import counted


def views_fit_their_purpose(target: AuditTarget) -> Iterator[Finding]:
    """AS1: train views hold no class of earlier tasks; what was written out is the raw boxes, unmoved, rightly named.

    Labels of classes that are not known yet in train, finetune and val views are reported by CO2 and AS2.
    """
    for one in target.with_role("train"):
        for task in one.tasks:
            earlier = np.append(target.introduced_in < task, [False, False])
            yield from forbidden_labels(target, one, task, earlier)
    for one in target.with_role("train", "finetune", "val"):
        for task in sorted(one.labels):
            yield from _written_view(target, one, task)
    for one in target.with_role("test"):
        for task in one.tasks:
            yield from _test_view(target, one, task)


def _test_view(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    about = of_task(target, one, task)
    if task not in one.labels and not one.view_declared:
        return [undecidable(about, VIEWS)]
    if not one.available:
        return missing_lists([one])
    if task not in one.labels and (text := _lossy(target, one, task)):
        return [Finding("fail", about, _affected(target, one, task), text)]
    unlocated = unlocated_finding(target, one)
    if missing := unseen_boxes(target, one, about):
        return missing if len(target.held(one)) else unlocated
    labels = view_labels(target, one, task)
    assert labels is not None  # noqa: S101
    found = _compared(target, one, task, about, _expected(target, one, task), labels)
    return found + uncovered_finding(target, one, task) + unlocated


def _written_view(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """Compare a label file of a train, finetune or val list with the raw boxes of the classes that it may label.

    A box whose place holds a label that CO2, AS2 or the first half of AS1 forbids is reported there.
    """
    about = f"{of_task(target, one, task)}: raw boxes"
    if missing := unseen_boxes(target, one, about):
        return missing
    introduced = target.introduced_in
    allowed = np.append(introduced == task if one.role == "train" else introduced <= task, [False, False])
    ruled = ruled_labels(target, one, task) if one.view_declared else None
    raw = ruled or raw_labels(target, one)
    labels = file_labels(target, one, task)
    elsewhere = chosen(labels, ~allowed[labels.label])
    mine = allowed[raw.label] & ~at_places_of(raw, elsewhere)
    found = _compared(
        target, one, task, about, chosen(raw, mine), chosen(labels, allowed[labels.label]), flagged=bool(ruled)
    )
    return found + unlocated_finding(target, one)


def _lossy(target: AuditTarget, one: AuditedList, task: int) -> str:
    """Return how a declared view breaks the principle whatever the boxes, ``""`` where it does not."""
    assert one.view is not None  # noqa: S101
    labels = emitted(target, one.view, task)
    known = target.introduced_in <= task
    if (known & ~labels[:-2]).any():
        return "the declared view does not keep the known classes"
    if labels[:-2][~known].any():
        return "the declared view keeps the names of classes of later tasks"
    if (~known).any() and not labels[target.unknown_label]:
        return "the declared view drops the classes of later tasks"
    if "drop" in (one.view.crowd, one.view.difficult):
        return "the declared view drops crowd or difficult boxes"
    return ""


def _affected(target: AuditTarget, one: AuditedList, task: int) -> int:
    if unseen_boxes(target, one, ""):
        return 0
    expected = _expected(target, one, task)
    labels = ruled_labels(target, one, task)
    assert labels is not None  # noqa: S101
    return int(_differences(expected, labels)[0].sum())


def _expected(target: AuditTarget, one: AuditedList, task: int) -> Labels:
    raw = raw_labels(target, one)
    known = np.append(target.introduced_in <= task, [False, False])
    label = np.where(known[raw.label], raw.label, np.int32(target.unknown_label))
    return replace(raw, label=label)


def _compared(
    target: AuditTarget,
    one: AuditedList,
    task: int,
    about: str,
    expected: Labels,
    labels: Labels,
    *,
    flagged: bool = True,
) -> list[Finding]:
    """Return whether labels are the expected boxes, on the images of which both sides are known.

    Parameters
    ----------
    flagged : bool
        Whether crowd and difficult boxes must be there too: of training and validation labels it depends on a view
        that nobody declared.
    """
    known = target.where(target.held(one))
    known[uncovered(target, one, task)] = False
    if not known.any():
        return []
    expected, labels = chosen(expected, known[expected.image]), chosen(labels, known[labels.image])
    lost, gained = _differences(expected, labels)
    if not flagged:
        lost &= ~(expected.crowd | expected.difficult)
    if not (lost.any() or gained.any()):
        return [
            Finding(
                "pass", about, text=f"{counted(len(expected), 'raw box', 'raw boxes')}, each once in {labels.origin}"
            )
        ]
    images = np.unique(np.concatenate([expected.image[lost], labels.image[gained]]))
    renamed = int((lost & at_places_of(expected, chosen(labels, gained))).sum())
    again = gained & np.isin(keys_of(labels, labels.label), keys_of(expected, expected.label))
    boxes = ("box", "boxes")
    told = [
        (int(lost.sum()), ("raw box", "raw boxes"), f"missing from {labels.origin}"),
        (int((gained & ~again).sum()), boxes, f"of {labels.origin} without a raw box of that label"),
        (int(again.sum()), boxes, f"more in {labels.origin} than among the raw boxes"),
    ]
    parts = [f"{counted(number, *words)} {rest}" for number, words, rest in told if number]
    text = "; ".join([*parts, *([f"{renamed:,} of them under the name of another class"] if renamed else [])])
    count = max(int(lost.sum()), int(gained.sum()))
    return [Finding("fail", about, count, text, target.examples(images, [one]))]


def _differences(expected: Labels, found: Labels) -> tuple[Bools, Bools]:
    """Return which boxes of each side have no partner of the same image, label and place on the other."""
    ours, theirs, size = _numbered(keys_of(expected, expected.label), keys_of(found, found.label))
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


def validation_knows_no_unknown(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """AS2: no label of a val view is ``unknown`` (ORE fitted its energy model on such labels)."""
    unknown = np.append(np.zeros(len(target.classes), np.bool_), [True, False])
    return forbidden_labels(target, one, task, unknown)


def flags_survive(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """AS3: boxes flagged crowd or difficult in the raw file carry the flag in every view that keeps them."""
    about = of_task(target, one, task)
    if task not in one.labels and not one.view_declared:
        return [undecidable(about, VIEWS)]
    if unseen := unseen_boxes(target, one, about):
        return unseen
    raw, labels = raw_labels(target, one), view_labels(target, one, task)
    assert labels is not None  # noqa: S101
    missing = uncovered_finding(target, one, task) + unlocated_finding(target, one)
    if not (raw.crowd | raw.difficult).any():
        return missing or [Finding("not applicable", about, text="no raw box of its images is flagged")]
    bare = _without_flag(raw, labels)
    boxes = counted(len(bare), "box", "boxes")
    text = f"{boxes} of {labels.origin} without the flag crowd or difficult of the raw box"
    if len(bare):
        images = np.unique(labels.image[bare])
        return [Finding("warn", about, len(bare), text, target.examples(images, [one])), *missing]
    return missing or [
        Finding(
            "pass", about, text=counted(int((raw.crowd | raw.difficult).sum()), "flagged raw box", "flagged raw boxes")
        )
    ]


def _without_flag(raw: Labels, labels: Labels) -> Int64s:
    """Return the rows of a view that lie where every raw box carries a flag that they lack."""
    ours, theirs, size = _numbered(keys_of(raw, np.zeros_like(raw.label)), keys_of(labels, np.zeros_like(labels.label)))
    lost = np.zeros(len(labels), np.bool_)
    for mine, others in ((labels.crowd, raw.crowd), (labels.difficult, raw.difficult)):
        flagged = np.bincount(ours[others], minlength=size)
        plain = np.bincount(ours[~others], minlength=size)
        lost |= (~mine) & (flagged[theirs] > 0) & (plain[theirs] == 0)
    return np.flatnonzero(lost)


CHECKS: dict[str, Check] = {"AS1": views_fit_their_purpose, "AS2": validation_knows_no_unknown, "AS3": flags_survive}
