"""LI, DS: test images have all labels that a score assumes; each image occurs once and in one role."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from curation.core.columns import distinct, encoded
from curation.core.errors import CurationError
from curation.core.wording import counted
from curation.extensions.audit.lists import AuditedList, list_of
from curation.extensions.audit.rule import (
    BOXES,
    COMPLETE,
    EXHAUSTIVE,
    SOURCES,
    Finding,
    ListInTask,
    Outcome,
    Verdict,
    cases,
    joined,
    list_finding,
    loser_of,
    missing_lists,
    not_applicable,
    pair_finding,
    undecidable,
    unlocated,
)
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditedSource, AuditTarget, ComparedPair
from curation.manifest.disjoint import REASONS, ImageColumns, Shared, shared_images
from curation.sources.datasets import namespace_of
from curation.sources.list_roles import read_role
from curation.sources.opening import open_path
from curation.sources.source import Bools, FileRecord, Images, Int32s, Int64s, Source
from curation.sources.stems import cells_of
from curation.sources.voc import VOC_FOLDERS, VOC_SETS

SIZES = "the width and height of the images in the annotation file"
_OUTSIDE = 1.0
"""Pixels by which a box may exceed its image: annotation tools round up to one."""
_GROUPS = ("train", "val", "test")
_COUNTS = re.compile(r"(?:voc2007:)?[A-Za-z]{0,8}[ _-]?[0-9]{1,8}(?:\.[A-Za-z]+)?")
"""Names such as ``0007.jpg``, ``frame_12.png`` and ``000012``, which many folders have."""
_DIGITS = re.compile(r"[0-9]+(?=\.[A-Za-z]+\Z|\Z)")
_FEWEST_COUNTED = 10
_WHOLE_DOMAINS = "if whole domains are trained and tested on in turn, nothing is wrong: --role LIST=none"
_WHICH_COUNT = (
    "the folder that each list counts, written before each name, as in train/0001.jpg; if the numbers are ids of one "
    "dataset, --namespace NAME says so; lists of a VOC folder: audit it with its JPEGImages"
)
_LOOK = "compare the photos: --photos NAME=DIR"


def tests_are_annotated_exhaustively(target: AuditTarget) -> Outcome:
    """LI1: Every class of the benchmark is annotated exhaustively on every test image."""
    tests = target.with_role("test")
    findings = missing_lists(tests)
    images = np.flatnonzero(target.mask(tests)).astype(np.int32)
    home = target.home[images]
    for number, source in enumerate(target.sources):
        if len(images_of_source := images[home == number]):
            findings.append(_exhaustive(target, source.name, source.exhaustive, images_of_source, tests))
    if len(unlocated_images := images[home < 0]):
        findings += _by_entries(target, unlocated_images, tests)
    return Outcome(tuple(findings), sum(finding.count for finding in findings if finding.verdict == "fail"))


def _exhaustive(
    target: AuditTarget, name: str, declared: Sequence[str], images: Int32s, tests: list[AuditedList]
) -> Finding:
    size = counted(len(images), "test image")
    if not declared:
        return undecidable(name, EXHAUSTIVE, f"{size} from {name}, of which nothing is known")
    covered = set(map(target.names.folded, declared))
    lacking = [entry.name for entry in target.classes if target.names.folded(entry.name) not in covered]
    if not lacking:
        return Finding("pass", name, text=f"{size}, annotated with every class")
    text = (
        f"{size} from a source that does not annotate {len(lacking)} of {len(target.classes)} classes exhaustively: "
        f"{joined(lacking)}"
    )
    return Finding("fail", name, len(images), text, target.examples(images, tests))


def _by_entries(target: AuditTarget, images: Int32s, tests: list[AuditedList]) -> list[Finding]:
    """Judge images of a manifest by the header entries of the sources in their namespace."""
    if target.kind == "folder":
        return [undecidable("sources", SOURCES, f"{counted(len(images), 'test image')} in no available source")]
    spaces = np.array([str(text).partition(":")[0] for text in target.ids[images].tolist()], object)
    findings = []
    drawn_from = {name for test in tests for name in test.sources}
    for space in sorted(set(spaces.tolist())):
        of_space = images[spaces == space]
        entries = [entry for entry in target.entries if entry.namespace == space and entry.name in drawn_from]
        if entries:
            common = sorted(set.intersection(*(set(entry.exhaustive) for entry in entries)))
            names = joined([entry.name for entry in entries])
            findings.append(_exhaustive(target, names, common, of_space, tests))
        else:
            text = f"{counted(len(of_space), 'test image')} in no available source"
            findings.append(undecidable("no available source", SOURCES, text))
    return findings


def tests_have_annotations(target: AuditTarget) -> Outcome:
    """LI2: Every test image has an annotation in the raw file."""
    if not target.expects_labels:
        return not_applicable("the parts divide all images of a source, annotated or not")
    findings = []
    bare = np.empty(0, np.int32)
    for test in _distinct(target.with_role("test")):
        images = target.held(test)
        has_label = np.zeros(len(images), np.bool_)
        for number, source in enumerate(target.sources):
            annotated = np.zeros(len(source.raw.images), np.bool_)
            annotated[source.raw.class_pairs()[0]] = True
            of_source = target.home[images] == number
            has_label[of_source] = annotated[target.positions[number][images[of_source]]]
        findings += [*unlocated(target, test), _bare(target, test, images, images[~has_label])]
        bare = np.union1d(bare, images[~has_label & ~target.incomplete(images)])
    return Outcome(tuple(findings), len(bare))


def _bare(target: AuditTarget, part: AuditedList, images: Int32s, bare: Int32s) -> Finding:
    proven = bare[~target.incomplete(bare)]
    size = counted(len(images), "image")
    if len(proven):
        text = f"no annotation on {len(proven):,} of {size}"
        return Finding("fail", part.name, len(proven), text, target.examples(proven, [part]))
    if len(bare):
        text = f"the table names no class for {len(bare):,} of {size}"
        return undecidable(part.name, COMPLETE, text, target.examples(bare, [part]))
    return Finding("pass" if len(images) else "not applicable", part.name, text=f"{size}, each with an annotation")


def _distinct(lists: Sequence[AuditedList]) -> list[AuditedList]:
    """Return lists without those that equal an earlier one."""
    seen: dict[bytes, AuditedList] = {}
    for part in lists:
        seen.setdefault(part.members.tobytes() if part.available else part.name.encode(), part)
    return list(seen.values())


def raw_tests_are_sound(target: AuditTarget) -> Iterator[Finding]:
    """LI3: Test images are in the raw file, their boxes there have a size and lie inside the image, and their classes
    are the benchmark's.
    """
    tests = target.with_role("test")
    for test in _distinct(tests):
        findings = unlocated(target, test)
        if test.available and len(absent := target.absent(test)):
            text = f"{counted(len(absent), 'image')} missing from the raw file"
            findings.append(Finding("warn", test.name, len(absent), text, target.examples(absent, [test])))
        yield from findings or [Finding("pass", test.name, text="every image is in a raw file")]
    listed = target.mask(tests)
    for number, source in enumerate(target.sources):
        rows = target.positions[number][listed & (target.home == number)]
        if not len(rows):
            continue
        is_test = np.zeros(len(source.raw.images), np.bool_)
        is_test[rows] = True
        if target.classes:
            yield _foreign(target, source, is_test)
        if source.has_boxes:
            yield from _boxes(source, is_test)
        elif target.expects_boxes:
            yield undecidable(source.name, BOXES, "a table does not state boxes")


def _foreign(target: AuditTarget, source: AuditedSource, is_test: Bools) -> Finding:
    image, category = source.raw.class_pairs()
    image, category = image[is_test[image]], category[is_test[image]]
    outside = [
        target.names.position(name) < 0 and target.names.folded(name) not in target.ignored
        for name in source.raw.categories.names
    ]
    foreign = np.array([*outside, False], np.bool_)[category]
    names = [source.raw.categories.names[code] for code in np.unique(category[foreign]).tolist()]
    if not names:
        return Finding("pass", source.name, text="every annotation is of a class of the benchmark")
    text = f"{counted(int(foreign.sum()), 'annotation')} of classes outside the benchmark: {joined(names)}"
    natives = np.sort(source.raw.images.native[distinct(image[foreign])])[:SHOWN_EXAMPLES]
    return Finding("warn", source.name, int(foreign.sum()), text, tuple(natives.tolist()))


def _boxes(source: AuditedSource, is_test: Bools) -> list[Finding]:
    objects = source.raw.require_objects("LI3")
    rows = np.flatnonzero(is_test[objects.image])
    x, y, width, height = objects.boxes[rows].T
    image = objects.image[rows]
    wide, high = source.raw.images.widths[image], source.raw.images.heights[image]
    sized = (wide > 0) & (high > 0)
    flat = (width <= 0) | (height <= 0)
    out = sized & ((np.minimum(x, y) < -_OUTSIDE) | (x + width > wide + _OUTSIDE) | (y + height > high + _OUTSIDE))
    findings = []
    for bad, defect in ((flat, "without width or height"), (out, "beyond the edge of the image")):
        if bad.any():
            texts = (
                f"{source.raw.images.native[image[row]]}: annotation {objects.numbers[rows[row]]}, "
                f"bbox {objects.boxes[rows[row]].tolist()}"
                for row in np.flatnonzero(bad)[:SHOWN_EXAMPLES].tolist()
            )
            text = f"{counted(int(bad.sum()), 'box', 'boxes')} {defect}"
            findings.append(Finding("warn", source.name, int(bad.sum()), text, tuple(sorted(texts))))
    if not sized.all():
        text = f"the image size is not stated for {counted(int((~sized).sum()), 'box', 'boxes')}"
        findings.append(undecidable(source.name, SIZES, text))
    text = f"{counted(len(rows), 'box', 'boxes')}, each with a size and inside its image"
    return findings or [Finding("pass", source.name, text=text)]


def share_of_unknown(target: AuditTarget) -> Outcome:
    """LI4: Test images that show no unknown box, and those that show only unknown boxes."""
    findings = [finding for case in cases(target, "test") for finding in _shares(case)]
    # An image counts in several tasks.
    return Outcome(tuple(findings), total=0)


def _shares(case: ListInTask) -> list[Finding]:
    target, labels, located = case.target, case.labels, case.target.held(case.part)
    if not len(labels):
        return case.missing
    is_unknown = labels.label == target.unknown_label
    with_unknown, with_known = (target.where(labels.image[rows])[located] for rows in (is_unknown, ~is_unknown))
    none, alone = int((~with_unknown).sum()), int((with_unknown & ~with_known).sum())
    unlocated_images, size = len(case.part.unique) - len(located), counted(len(located), "image")
    rest = f"; nothing is known about {unlocated_images:,} more" if unlocated_images else ""
    text = f"{none:,} of {size} ({none / len(located):.1%})"
    if target.tasks[case.task].unknown and target.incomplete(located).any():
        # A table may miss objects: the first number is an upper bound, and the second one cannot be bounded.
        text = f"no unknown box on at most {text}, by a table of image and class"
    else:
        text = f"no unknown box on {text}, only unknown boxes on {alone:,} ({alone / len(located):.1%})"
    return [Finding("info", case.about, none, text + rest)]


def lists_name_images_once(target: AuditTarget) -> Iterator[Finding]:
    """DS1: No list names an image twice.

    The same image with different labels is for PL9.
    """
    if not target.files:
        yield undecidable("lists", "a folder with lists of images")
    yield from missing_lists([part for part in target.files if not part.stated_repeats])
    for part in target.files:
        if part.stated_repeats and not part.available:
            text = f"{counted(part.stated_repeats, 'repeated line')}, as the manifest states"
            yield list_finding("fail", part, part.stated_repeats, text)
    sound = []
    for part in (known for known in target.files if known.available):
        if len(part) > len(part.unique) and len(rows := _repeated_rows(part)):
            yield _repeated(target, part, rows)
        else:
            sound.append(part.name)
    if sound:
        text = f"no repeated line in {counted(len(sound), 'list')}"
        yield Finding("pass", "lists", text=text, lists=tuple(sound), asked=len(sound))


def _repeated(target: AuditTarget, part: AuditedList, again: Int64s) -> Finding:
    """Return the finding on the repeated rows of a list; other rows may give the same image another label."""
    repeats, times = len(part) - len(part.unique), np.bincount(part.members)
    ids: Int32s | Int64s = np.flatnonzero(times > 1)
    if (relabelled := repeats - len(again)) > len(again):
        # Most repeats are by design: a line a label.
        ids, repeats, relabelled = distinct(part.members[again]), len(again), 0
    text = (
        f"{counted(repeats, 'repeated line')}: {len(part):,} lines, {counted(len(part.unique), 'image')}, "
        f"{len(ids):,} of them more than once (up to {int(times.max())} times)"
    ) + (f"; {relabelled:,} of these lines with another label" if relabelled else "")
    examples = []
    for image in target.first(ids):
        lines = part.lines[part.members == image].tolist()
        examples.append(f"{target.ids[image]} ({part.whole} lines {', '.join(map(str, lines[:4]))})")
    like = "lines are repeated"
    # Annotations of a COCO JSON may belong to either record of an image: a repair keeps both.
    by_line = target.published is not None and target.published.files[part.file].form != "coco json"
    lines = np.setdiff1d(part.lines[again], np.delete(part.lines, again)) if by_line else ()
    drops = {part.name: np.asarray(lines, np.int32)}
    return list_finding("fail", part, repeats, text, examples, of=len(part), like=like, drops=drops)


def _repeated_rows(part: AuditedList) -> Int64s:
    """Return the rows whose image, label, second file and columns are in an earlier row."""
    read, rows = part.read, part.members.astype(np.int64)
    second = None if read.companions is None else encoded(cells_of(read.companions))[0]
    columns = (column.of for column in read.columns.values())
    for values in (read.labels, read.group_of, read.label_counts, read.rest, second, *columns):
        if values is not None:
            rows = np.unique((rows << 32) + values, return_inverse=True)[1].astype(np.int64)
    return np.delete(np.arange(len(rows)), np.unique(rows, return_index=True)[1])


def roles_share_no_image(target: AuditTarget) -> Outcome:
    """DS2: No image of a validation list is trained on in any task, and no test image is used for training, tuning or
    validation.
    """
    pairs = [pair for pair in target.pairs if pair.roles != ("train", "val")]
    outcome = _apart(target, pairs)
    trained = target.with_role("train", "finetune", "val")
    if not (trained or pairs) and all(finding.verdict == "pass" for finding in outcome.findings):
        return not_applicable("there is no train or finetune or val list")
    return Outcome((*outcome.findings, *_allowed(target)), outcome.total) if outcome.findings else outcome


def _apart(target: AuditTarget, pairs: Sequence[ComparedPair]) -> Outcome:
    """Return the findings on images that pairs of lists share, and the number of images that some pair shares."""
    if not pairs:
        return not_applicable("there are no lists of two roles" if target.with_role(*_GROUPS) else "there are no roles")
    findings = [*missing_lists([part for part in target.lists if part.role in ("finetune", *_GROUPS)])]
    anywhere, sound = np.zeros(len(target.ids), np.bool_), list[ComparedPair]()
    for pair in pairs:
        if not (pair.first.available and pair.second.available):
            continue
        shared = target.shared(pair.first, pair.second)
        anywhere[shared] = True
        results = [_shared(target, pair, shared)] if len(shared) else _perhaps(target, pair)
        results = _by_annotations(target, pair, results) + _under_other_ids(target, pair)
        # A pair with a wilderness list is reported only if it shares images.
        if all(finding.verdict == "info" for finding in results) and pair.second.role != "wilderness":
            sound.append(pair)
        findings += results
    if sound:
        names = tuple(pair.names for pair in sound)
        text = f"no shared image in {counted(len(sound), 'pair')} of lists"
        findings.append(Finding("pass", "pairs of lists", text=text, pairs=names, asked=len(sound)))
    return Outcome(tuple(findings), int(anywhere.sum()) or None)


def _shared(target: AuditTarget, pair: ComparedPair, images: Int32s) -> Finding:
    """Return the finding on images that occur under the same whole name in two lists."""
    first, second = pair.first, pair.second
    inside, here = target.where(images), (len(first.unique), len(second.unique))
    sizes = len(first), len(second)
    lines = [
        int(inside[side.members].sum()) if len(side) > len(side.unique) else len(images) for side in (first, second)
    ]
    verdict: Verdict = "warn" if pair.unlabelled and pair.roles == ("train", "val") else "fail"
    text = (
        f"both hold {counted(len(images), 'image')}, on {lines[1]:,} of {sizes[1]:,} and {lines[0]:,} of "
        f"{counted(sizes[0], 'line')}"
    )
    hint = _mend(pair)
    if hint and len(images) == here[0]:
        hint += f"; {_WHOLE_DOMAINS}"
    finding = _shared_finding(verdict, pair, len(images), text, target.examples(images, [first, second]), hint=hint)
    loser = (first, second)[loser_of(pair)]
    finding = replace(finding, like="the lists share images", drops={loser.name: loser.lines[inside[loser.members]]})
    if may_count_anew(target, pair):
        return _undecided(pair, len(images), target.examples(images, [first, second]))
    if len(images) == here[0] == here[1]:
        how = _equal(pair)
        text = (
            f"the same list twice ({counted(sizes[1], 'line')}, {how})"
            if how
            else "the same images, with other repeats"
        )
        sides = f"{first.role} and {second.role}" if first.role else "two folds"
        like = f"{sides} are the same list twice, {how or 'with other repeats'}"
        return replace(finding, text=text, like=like, hint=f"remove one of them; {_WHOLE_DOMAINS}")
    if len(images) == here[1] and first.role == "train":
        rest = [
            other.name
            for other in target.files
            if len(other.unique) == here[0] - here[1]
            and np.isin(other.unique, first.unique).all()
            and not inside[other.unique].any()
        ]
        text = f"{first.name} holds all {counted(here[1], 'image')} of {second.name}"
        hint = f"train on {rest[0]}, which is {first.name} without {second.name}" if rest else _mend(pair)
        return replace(finding, text=text, hint=hint)
    return finding


def _undecided(pair: ComparedPair, count: int, examples: Sequence[str]) -> Finding:
    """Return the undecidable finding on two lists that share numbers, each of which may count its own images."""
    text = f"both hold {counted(count, 'number')}, but each list may count the images of its own folder"
    return pair_finding(
        "undecidable", pair.names, count, text, examples, about=pair.about, of=len(pair.second.unique),
        need=_WHICH_COUNT, like="each list may count the images of its own folder",
        reason="their names are numbers", brief=f"{pair.about} ({count:,})",
    )  # fmt: skip


def _mend(pair: ComparedPair) -> str:
    """Return the advice on images that two lists share; empty for two validation lists, as the rule has advice."""
    return "" if pair.roles == ("val", "val") else f"remove the shared images from {pair.names[loser_of(pair)]}"


def _shared_finding(
    verdict: Verdict, pair: ComparedPair, count: int, text: str, examples: Sequence[str], hint: str
) -> Finding:
    brief, size = pair.family.replace(" ", "_"), len(pair.second.unique)
    return pair_finding(verdict, pair.names, count, text, examples, about=pair.about, of=size, brief=brief, hint=hint)


def _by_evidence(shared: Shared, pair: ComparedPair, count: int, text: str, examples: Sequence[str]) -> Finding:
    """Return the finding on images that two lists share: an error if that is proven, else a warning."""
    if shared.proven:
        return _shared_finding("fail", pair, count, text, examples, _mend(pair))
    return _shared_finding("warn", pair, count, f"perhaps {text}", examples, _LOOK)


def _by_annotations(target: AuditTarget, pair: ComparedPair, by_name: list[Finding]) -> list[Finding]:
    """Return the findings on two lists, with those by the boxes, sizes and photos of their annotations.

    `by_name` has the findings by file name. They are returned unchanged if a file has no annotations, or if one of them
    is an error.
    """
    left, right = (_annotations(target, part) for part in (pair.first, pair.second))
    if left is None or right is None or any(finding.verdict == "fail" for finding in by_name):
        return by_name
    columns = ImageColumns.of_sources([left[0], right[0]]).located({0: left[1], 1: right[1]})
    overlaps = shared_images(columns, *(np.flatnonzero(columns.home == side) for side in (0, 1)))
    findings = list[Finding]()
    for shared in overlaps:
        if not (shared.proven or shared.evidence in ("photo", "boxes")):
            continue
        count = len(distinct(shared.right))
        pairs = zip(shared.left[:SHOWN_EXAMPLES].tolist(), shared.right[:SHOWN_EXAMPLES].tolist(), strict=True)
        text = f"share {counted(count, 'image')}: {REASONS[shared.evidence]}"
        examples = [" and ".join(dict.fromkeys(map(columns.label, rows))) for rows in pairs]
        finding = replace(_by_evidence(shared, pair, count, text, examples), of=len(right[0].images))
        side, images = ((pair.first, left[0].images), (pair.second, right[0].images))[loser_of(pair)]
        if shared.proven and len(side) == len(images):
            rows = shared.right - len(left[0].images) if loser_of(pair) else shared.left
            finding = replace(finding, drops={side.name: side.lines[distinct(rows)]})
        findings.append(finding)
    # Files of the same name with different records or photos are two images.
    is_sign = any(shared.evidence == "name" for shared in overlaps)
    return findings + (by_name if is_sign else [finding for finding in by_name if finding.verdict == "pass"])


def _annotations(target: AuditTarget, part: AuditedList) -> tuple[Source, Path] | None:
    """Return the source of a list and its path: COCO JSON, or a part of a VOC or YOLO folder; None for other lists."""
    if target.published is None or part.whole != part.name:
        return None
    file, path = target.published.files[part.file].path, target.published.labels.get(part.name)
    is_yolo = target.published.files[part.file].form == "data yaml"
    if path is not None and part.file.endswith(path.name):
        use = "all"
    elif file.parent.match(VOC_SETS) and part.read.labels is None and part.name == list_of(part.file):
        path, use = file.absolute().parents[2], file.stem
    elif is_yolo:
        path, use = file, part.name.removeprefix(f"{list_of(part.file)}/")
    else:
        return None
    key = ("annotations", part.name)
    if key not in target.cache:
        source: Source | None = None
        with suppress(CurationError):
            # Other rules report errors in the file.
            source = open_path(path, dataset="lists", part=use, bad_boxes="drop")
        if is_yolo and source is None:
            # Photos have bytes without annotations.
            names = part.read.images.decode().split("\n")[:-1]
            images = Images.of(names, file_names=names)
            source = Source.of_labels("lists", use, images, [], FileRecord(file.name, "", 0, 0))
        has_boxes = source is not None and source.objects is not None and len(source.objects) > 0
        target.cache[key] = source if is_yolo or has_boxes else None
    known: Source | None = target.cache[key]
    return None if known is None else (known, path)


def may_count_anew(target: AuditTarget, pair: ComparedPair) -> bool:
    """Return whether the names that two lists share may count the images of each list, and name other images."""
    key = (f"counted anew: {pair.first.name}", pair.second.name)
    if key not in target.cache:
        images = target.shared(pair.first, pair.second)
        target.cache[key] = (
            len(images) > 0
            and _counted_anew(target, pair, images)
            and not _are_files_of_one_folder(target, pair, images)
        )
    may_count: bool = target.cache[key]
    return may_count


def _counted_anew(target: AuditTarget, pair: ComparedPair, images: Int32s) -> bool:
    """Return whether shared names are numbers that may count the images of each list anew.

    They count from 0 or 1, or the lists lie in folders of train and test.
    """
    lists = (pair.first, pair.second)
    if target.published is not None and target.published.images.namespace:
        return False
    if any(part.read.has_folders for part in lists):
        return all(_numbers_folders(target.ids[part.unique].tolist()) for part in lists)
    if not all(_COUNTS.fullmatch(str(target.ids[image])) for image in images):
        return False
    apart = len({part.file.rpartition("/")[0] for part in lists}) > 1
    by_folder = apart and all(read_role(part.file).why.startswith("its folder") for part in lists)
    if by_folder and not any(str(name).startswith("voc2007:") for name in target.ids[images]):
        return True
    first, second = (
        [int(number[0]) for number in map(_DIGITS.search, target.ids[listed.unique]) if number] for listed in lists
    )
    return _goes_through(first, second, len(images)) or _goes_through(second, first, len(images))


def _numbers_folders(paths: Sequence[str]) -> bool:
    """Return whether all parts of some paths are numbers that count from 0 or 1: in each folder, and the folders."""
    seen, counts = set[str](), defaultdict[str, list[int]](list)
    for path in paths:
        while path and path not in seen:
            seen.add(path)
            folder, _, name = path.rpartition("/")
            if not _COUNTS.fullmatch(name):
                return False
            counts[folder].append(int(_DIGITS.search(name)[0]))  # type: ignore[index]  # what counts has digits
            path = folder
    return len(counts) > 1 and all(
        min(numbers) < 2 and len({*numbers}) == max(numbers) - min(numbers) + 1 for numbers in counts.values()
    )


def _are_files_of_one_folder(target: AuditTarget, pair: ComparedPair, images: Int32s) -> bool:
    """Return whether two lists name files of the same folder: their VOC root, else the folder of both lists."""
    if target.published is None:
        return False
    folders = {_folder_of(target.published.files[part.file].path.absolute()) for part in (pair.first, pair.second)}
    if len(folders) > 1:
        return False
    folder, names = folders.pop(), [str(name) for name in target.ids[images].tolist()]
    stems = {entry.stem for name in VOC_FOLDERS if (folder / name).is_dir() for entry in (folder / name).iterdir()}
    return any(name in stems or Path(name).stem in stems or (folder / name).is_file() for name in names)


def _folder_of(file: Path) -> Path:
    """Return the VOC folder that contains a list, at most three levels above it, else the folder of the list."""
    above = file.parents[:4]
    return next((root for root in above if any((root / name).is_dir() for name in VOC_FOLDERS)), file.parent)


def _goes_through(numbers: Sequence[int], others: Sequence[int], shared: int) -> bool:
    """Return whether numbers count from 0 or 1 without gaps, and the overlap with others can be coincidence."""
    lowest, count = min(numbers, default=2), len(set(numbers))
    is_counter = lowest < 2 and _FEWEST_COUNTED <= count == len(numbers) == max(numbers) - lowest + 1
    # If the others continue where these end, a common number is a mistake, not coincidence.
    return is_counter and 2 * shared * (max(others) + 1) >= min(count, max(others) + 1) * len(others)


def _equal(pair: ComparedPair) -> str:
    """Return how two lists of the same images are equal; empty if one repeats some images more often."""
    digests = [part.sha256 for part in (pair.first, pair.second)]
    if digests[0] and digests[0] == digests[1] and pair.first.file != pair.second.file:
        return "byte for byte"
    first, second = pair.first.members, pair.second.members
    if np.array_equal(first, second):
        return "line for line"
    return "in another order" if np.array_equal(np.sort(first), np.sort(second)) else ""


def _under_other_ids(target: AuditTarget, pair: ComparedPair) -> list[Finding]:
    """Return the findings on images with different ids in two lists, by names, sizes and boxes of the sources."""
    findings = []
    for shared in target.shared_under_other_ids:
        # In a folder of lists, other rules compare names, and consider folders and groups too.
        if not (shared.proven or target.kind == "manifest"):
            continue
        here = np.isin(shared.left, pair.first.unique) & np.isin(shared.right, pair.second.unique)
        if not here.any():
            continue
        rows = zip(shared.left[here].tolist(), shared.right[here].tolist(), strict=True)
        pairs = sorted(f"{target.columns.label(left)} and {target.columns.label(right)}" for left, right in rows)
        count = len(distinct(shared.right[here]))
        text = f"{counted(count, 'image')} under two ids: {REASONS[shared.evidence]}"
        finding = _by_evidence(shared, pair, count, text, pairs[:SHOWN_EXAMPLES])
        side, images = ((pair.first, shared.left), (pair.second, shared.right))[loser_of(pair)]
        drops = {side.name: side.lines[np.isin(side.members, images[here])]}
        findings.append(replace(finding, drops=drops if shared.proven else {}))
    return findings


def _perhaps(target: AuditTarget, pair: ComparedPair) -> list[Finding]:
    """Return the finding on equal file names in other folders, if no whole name is in both lists."""
    if (
        target.published is None
        or min(pair.places) < 0
        or (overlap := target.published.images.alike(*pair.places)) is None
    ):
        return []
    images = list(zip(*overlap.examples, strict=True))
    line_texts = zip(pair.first.lines_of(images[0]), pair.second.lines_of(images[1]), strict=True)
    examples = tuple(
        f"{target.ids[left]} and {target.ids[right]} ({'; '.join(lines)})"
        for (left, right), lines in zip(overlap.examples, line_texts, strict=True)
    )
    bare = [part for part in (pair.first, pair.second) if not part.read.has_folders]
    if any(all(map(_COUNTS.fullmatch, target.ids[part.unique].tolist())) for part in bare):
        return [_undecided(pair, overlap.images, examples)]
    text = f"if the file name alone identifies the image, both hold {counted(overlap.images, 'image')}"
    return [_shared_finding("warn", pair, overlap.images, text, examples, hint=_LOOK)]


def _allowed(target: AuditTarget) -> list[Finding]:
    """Return the images shared by train lists of different tasks: allowed, as each list labels other classes."""
    return [
        Finding("pass", f"{second.name} and {first.name}", count,
                f"both train lists hold {counted(count, 'image')} (allowed)", asked=0)
        for first, second in combinations(target.with_role("train"), 2)
        if first.tasks != second.tasks and (count := len(target.shared(first, second)))
    ]  # fmt: skip


def validation_is_apart(target: AuditTarget) -> Outcome:
    """DS4: No validation image is trained on; validation lists of different tasks share no image."""
    if target.compared is not None:
        return _apart(target, [pair for pair in target.pairs if pair.roles == ("train", "val")])
    pairs = [
        ComparedPair(first, second, roles=("val", "val"))
        for first, second in combinations(target.with_role("val"), 2)
        if first.tasks and second.tasks and not set(first.tasks) & set(second.tasks)
    ]
    return _apart(target, pairs) if pairs else not_applicable("there are no validation lists of different tasks")


def ids_name_one_file(target: AuditTarget) -> list[Finding]:
    """DS5: An id names one image, not one in each of two datasets."""
    if target.kind == "manifest":
        return _namespaced(target)
    if not target.sources:
        return [undecidable("ids", SOURCES)]
    findings = list(_collisions(target))
    reached = int((target.home >= 0).sum())
    if reached < len(target.ids):
        text = f"no available source holds {len(target.ids) - reached:,} of {counted(len(target.ids), 'id')}"
        findings.append(undecidable("ids", SOURCES, text))
    return findings or [Finding("pass", "ids", text=f"{counted(reached, 'id')}, each of one dataset")]


def _namespaced(target: AuditTarget) -> list[Finding]:
    spaces = Counter(space for space, _ in {(entry.namespace, namespace_of(entry.dataset)) for entry in target.entries})
    mixed = sorted(space for space, n in spaces.items() if n > 1)
    if not mixed:
        return [Finding("pass", "ids", text="every namespace belongs to one dataset")]
    text = f"datasets with different ids share the namespace {', '.join(mixed)}"
    return list(_collisions(target)) or [undecidable("ids", SOURCES, text)]


def _collisions(target: AuditTarget) -> Iterator[Finding]:
    """Yield the finding on ids that sources of two datasets share; parts of the same dataset may share ids."""
    for (a, first), (b, second) in combinations(enumerate(target.sources), 2):
        if namespace_of(first.raw.dataset) == namespace_of(second.raw.dataset):
            continue
        images = np.flatnonzero((target.positions[a] >= 0) & (target.positions[b] >= 0))
        if len(images):
            text = f"{counted(len(images), 'id')} with an image in each"
            about = f"{first.name} and {second.name}"
            yield Finding("fail", about, len(images), text, target.examples(images, target.files))
