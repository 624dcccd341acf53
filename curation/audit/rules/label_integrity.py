"""LI, label integrity: test images carry all the labels that the score takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from curation.audit.judgement import BOXES, COMPLETE, EXHAUSTIVE, SOURCES, ListInTask, cases, missing_lists, unlocated
from curation.audit.lists import AuditedList
from curation.audit.rule import Check, Finding, Outcome, joined, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditedSource, AuditTarget
from curation.sources.source import Bools, Int32s
from curation.wording import counted

SIZES = "the width and height of the images in the annotation file"
_OUTSIDE = 1.0
"""Pixels by which a box may stick out of its image: annotation tools round up to one."""


def tests_are_annotated_exhaustively(target: AuditTarget) -> Outcome:
    """LI1: the source of every test image annotates every class of the benchmark exhaustively."""
    tests = target.with_role("test")
    findings = missing_lists(tests)
    images = np.flatnonzero(target.mask(tests)).astype(np.int32)
    home = target.home[images]
    for number, source in enumerate(target.sources):
        if len(mine := images[home == number]):
            findings.append(_exhaustive(target, source.name, source.exhaustive, mine, tests))
    if len(rest := images[home < 0]):
        findings += _by_entries(target, rest, tests)
    return Outcome(tuple(findings), sum(one.count for one in findings if one.verdict == "fail"))


def _exhaustive(
    target: AuditTarget, name: str, stated: Sequence[str], images: Int32s, tests: list[AuditedList]
) -> Finding:
    if not stated:
        text = f"{counted(len(images), 'test image')} from {name}, of which nothing is known"
        return undecidable(name, EXHAUSTIVE, text)
    covered = {target.names.folded(one) for one in stated}
    lacking = [entry.name for entry in target.classes if target.names.folded(entry.name) not in covered]
    if not lacking:
        return Finding("pass", name, text=f"{counted(len(images), 'test image')}, annotated with every class")
    text = (
        f"{counted(len(images), 'test image')} from a source that does not annotate {len(lacking)} of "
        f"{len(target.classes)} classes exhaustively: {joined(lacking)}"
    )
    return Finding("fail", name, len(images), text, target.examples(images, tests))


def _by_entries(target: AuditTarget, images: Int32s, tests: list[AuditedList]) -> list[Finding]:
    """Judge images of a manifest by what its header says of the sources of their namespace."""
    if target.kind == "folder":
        return [undecidable("sources", SOURCES, f"{counted(len(images), 'test image')} in no available source")]
    spaces = np.array([str(text).partition(":")[0] for text in target.ids[images].tolist()], object)
    findings = []
    drawn_from = {name for one in tests for name in one.sources}
    for space in sorted(set(spaces.tolist())):
        mine = images[spaces == space]
        entries = [one for one in target.entries if one.namespace == space and one.name in drawn_from]
        stated = [set(one.exhaustive) for one in entries]
        common = sorted(set.intersection(*stated)) if stated else []
        name = joined([one.name for one in entries]) or "no available source"
        if entries:
            findings.append(_exhaustive(target, name, common, mine, tests))
        else:
            findings.append(undecidable(name, SOURCES, f"{counted(len(mine), 'test image')} in no available source"))
    return findings


def tests_have_annotations(target: AuditTarget) -> Outcome:
    """LI2: every test image has an annotation of some class in the raw file."""
    findings = []
    bare = np.empty(0, np.int32)
    for one in _distinct(target.with_role("test")):
        images = target.held(one)
        shown = np.zeros(len(images), np.bool_)
        for number, source in enumerate(target.sources):
            annotated = np.zeros(len(source.raw.images), np.bool_)
            annotated[source.raw.class_pairs()[0]] = True
            mine = target.home[images] == number
            shown[mine] = annotated[target.positions[number][images[mine]]]
        findings += [*unlocated(target, one), _bare(target, one, images, images[~shown])]
        bare = np.union1d(bare, images[~shown & ~target.incomplete(images)])
    return Outcome(tuple(findings), len(bare))


def _bare(target: AuditTarget, one: AuditedList, images: Int32s, bare: Int32s) -> Finding:
    proven = bare[~target.incomplete(bare)]
    size = counted(len(images), "image")
    if len(proven):
        text = f"no annotation on {len(proven):,} of {size}"
        return Finding("fail", one.name, len(proven), text, target.examples(proven, [one]))
    if len(bare):
        text = f"the table names no class for {len(bare):,} of {size}"
        return undecidable(one.name, COMPLETE, text, target.examples(bare, [one]))
    return Finding("pass" if len(images) else "not applicable", one.name, text=f"{size}, each with an annotation")


def _distinct(lists: Sequence[AuditedList]) -> list[AuditedList]:
    """Return lists without those that hold the very lines of an earlier one."""
    seen: dict[bytes, AuditedList] = {}
    for one in lists:
        seen.setdefault(one.members.tobytes() if one.available else one.name.encode(), one)
    return list(seen.values())


def raw_tests_are_sound(target: AuditTarget) -> Iterator[Finding]:
    """LI3: test images are in the raw file, its boxes there are sound, its classes are the benchmark's."""
    tests = target.with_role("test")
    for one in _distinct(tests):
        yield from _presence(target, one)
    listed = target.mask(tests)
    for number, source in enumerate(target.sources):
        rows = target.positions[number][listed & (target.home == number)]
        if not len(rows):
            continue
        wanted = np.zeros(len(source.raw.images), np.bool_)
        wanted[rows] = True
        if target.classes:
            yield _foreign(target, source, wanted)
        if source.has_boxes:
            yield from _boxes(source, wanted)
        else:
            yield undecidable(source.name, BOXES, "a table does not state boxes")


def _presence(target: AuditTarget, one: AuditedList) -> list[Finding]:
    if not one.available:
        return missing_lists([one])
    absent, findings = target.absent(one), unlocated(target, one)
    if len(absent):
        text = f"{counted(len(absent), 'image')} missing from the raw file"
        findings.append(Finding("warn", one.name, len(absent), text, target.examples(absent, [one])))
    return findings or [Finding("pass", one.name, text="every image is in a raw file")]


def _foreign(target: AuditTarget, source: AuditedSource, wanted: Bools) -> Finding:
    image, category = source.raw.class_pairs()
    image, category = image[wanted[image]], category[wanted[image]]
    outside = [
        target.names.position(name) < 0 and target.names.folded(name) not in target.ignored
        for name in source.raw.categories.names
    ]
    foreign = np.array([*outside, False], np.bool_)[category]
    names = [source.raw.categories.names[place] for place in np.unique(category[foreign]).tolist()]
    if not names:
        return Finding("pass", source.name, text="every annotation is of a class of the benchmark")
    text = f"{counted(int(foreign.sum()), 'annotation')} of classes outside the benchmark: {joined(names)}"
    natives = np.sort(source.raw.images.native[np.unique(image[foreign])])[:SHOWN_EXAMPLES]
    return Finding("warn", source.name, int(foreign.sum()), text, tuple(natives.tolist()))


def _boxes(source: AuditedSource, wanted: Bools) -> list[Finding]:
    objects = source.raw.require_objects("LI3")
    rows = np.flatnonzero(wanted[objects.image])
    x, y, width, height = objects.boxes[rows].T
    image = objects.image[rows]
    wide, high = source.raw.images.widths[image], source.raw.images.heights[image]
    sized = (wide > 0) & (high > 0)
    flat = (width <= 0) | (height <= 0)
    out = sized & ((np.minimum(x, y) < -_OUTSIDE) | (x + width > wide + _OUTSIDE) | (y + height > high + _OUTSIDE))
    findings = []
    for bad, what in ((flat, "without width or height"), (out, "beyond the edge of the image")):
        if bad.any():
            texts = (
                f"{source.raw.images.native[image[row]]}: annotation {objects.numbers[rows[row]]}, "
                f"bbox {objects.boxes[rows[row]].tolist()}"
                for row in np.flatnonzero(bad)[:SHOWN_EXAMPLES].tolist()
            )
            text = f"{counted(int(bad.sum()), 'box', 'boxes')} {what}"
            findings.append(Finding("warn", source.name, int(bad.sum()), text, tuple(sorted(texts))))
    if not sized.all():
        text = f"the image size is not stated for {counted(int((~sized).sum()), 'box', 'boxes')}"
        findings.append(undecidable(source.name, SIZES, text))
    return findings or [
        Finding(
            "pass", source.name, text=f"{counted(len(rows), 'box', 'boxes')}, each with a size and inside its image"
        )
    ]


def share_of_unknown(target: AuditTarget) -> Outcome:
    """LI4: the fraction of test images without an unknown box, and of those with unknown boxes alone."""
    findings = [finding for case in cases(target, "test") for finding in _shares(case)]
    # Numbers of several tasks do not add up to one.
    return Outcome(tuple(findings), total=0)


def _shares(case: ListInTask) -> list[Finding]:
    target, labels, judged = case.target, case.labels, case.covered
    if labels is None or not len(labels):
        return case.uncovered_finding or unlocated(target, case.one)
    is_unknown = labels.label == target.unknown_label
    with_unknown, with_known = (target.where(labels.image[kind])[judged] for kind in (is_unknown, ~is_unknown))
    none, alone = int((~with_unknown).sum()), int((with_unknown & ~with_known).sum())
    left, size = len(case.one.unique) - len(judged), counted(len(judged), "image")
    rest = f"; nothing is known about {left:,} more" if left else ""
    if case.file is None and target.tasks[case.task].unknown and target.incomplete(judged).any():
        # A table may miss an unknown object as well as a known one: the first number is a bound, the second nothing.
        text = f"no unknown box on at most {none:,} of {size} ({none / len(judged):.1%}), by a table of image and class"
    else:
        text = (
            f"no unknown box on {none:,} of {size} ({none / len(judged):.1%}), "
            f"only unknown boxes on {alone:,} ({alone / len(judged):.1%})"
        )
    return [Finding("info", case.about, none, text + rest)]


CHECKS: dict[str, Check] = {
    "LI1": tests_are_annotated_exhaustively,
    "LI2": tests_have_annotations,
    "LI3": raw_tests_are_sound,
    "LI4": share_of_unknown,
}
