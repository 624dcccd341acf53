"""Mistakes in a file of detections, and in the truth that they are compared with, found by tests on the data.

A test compares the share of detections that lie on an object (IoU of at least 0.5) under the file's convention with
the share under another convention. A test reports a mistake only if another convention multiplies that share, and only
on the images of the boxes: for objects of other images, the share stays low. A poor detector is poor under every
convention, so the tests report nothing.

A box of a truth belongs inside its image. Another layout is named only where many boxes leave their images as they are
and nearly none does under it: the stated sizes of the images prove it, without a detector.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from curation.core.columns import distinct
from curation.core.wording import counted, examples
from curation.evaluation.problem import UNKNOWN, UNKNOWN_NUMBER, Bools, Floats, Int64s
from curation.extensions.diagnosis.inspection import Finding, box_words
from curation.extensions.diagnosis.mends import (
    LAYOUTS,
    MOST_ROWS,
    UNITS,
    Columns,
    Id,
    Mapped,
    Objects,
    Renaming,
    apply_mends,
    best_overlaps,
    boxes_in_pixels,
    category_map,
    class_votes,
    coded,
    first_of_each,
    has_class,
    image_map,
    is_form,
    number_of,
    renaming,
    sample,
    short_list,
    usable,
)
from curation.sources.identity import NUMBERINGS

_OUTSIDE = 2.0
"""Pixels by which a box may extend beyond its image: annotations are rounded, and images resized."""
_FEWEST = 3
_LEAVING, _NONE = 0.05, 0.02
"""Shares of boxes beyond their images: the minimum under a wrong layout, and the maximum under the right one."""
_SHARE, _PIXELS = 1.5, 16
EXCHANGED = ("yxhw", "cycxhw")
_WITHIN = "boxes of the truth within their images"


def leaves_image(boxes: Floats, sizes: Floats) -> Bools:
    """Return whether each box, ``x, y, w, h`` in pixels, reaches beyond its image; False if the size is unknown.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n, 4)
    sizes : ndarray of float64, shape (n, 2)
        Width and height of the image of each box, NaN if not stated.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        beyond = (boxes[:, :2] < -_OUTSIDE) | (boxes[:, :2] + np.maximum(boxes[:, 2:], 0) > sizes + _OUTSIDE)
    leaving: Bools = np.asarray(beyond.any(axis=1))
    return leaving


def fitting_forms(boxes: Floats, sizes: Floats) -> list[str]:
    """Return the forms under which nearly all boxes are within their images; empty if they already are.

    If nearly all boxes are below 1.5 and images are larger, the boxes are shares of the image's size.
    """
    known = np.isfinite(boxes).all(axis=1) & np.isfinite(sizes).all(axis=1)
    boxes, sizes = boxes[known], sizes[known]
    n = len(boxes)
    if n < _FEWEST:
        return []
    is_share = (np.abs(boxes) <= _SHARE).all(axis=1).mean() >= 1 - _NONE and float(np.median(sizes)) >= _PIXELS
    if not is_share and leaves_image(boxes, sizes).sum() < max(_FEWEST, _LEAVING * n):
        return []
    forms = []
    for form in (f"{layout}:0-1" if is_share else layout for layout in LAYOUTS):
        pixels = boxes_in_pixels(boxes, form, sizes)
        impossible = leaves_image(pixels, sizes) | (pixels[:, 2:] <= 0).any(axis=1)
        if impossible.sum() <= _NONE * n:
            forms.append(form)
    return forms


def layout_mistake(forms: Sequence[str], boxes: Floats, sizes: Floats, *, is_settled: bool = False) -> Finding | None:
    """Return the mistake in a truth's boxes that `fitting_forms` proves, or None.

    Boxes with y first on images whose width and height are exchanged lie within them as well: `is_settled` says that
    detections lie on objects under one form alone.
    """
    if not forms:
        return None
    leaving = leaves_image(boxes, sizes)
    # Boxes in shares of the image's size lie within it.
    is_share = ":" in forms[0]
    now = None if is_share else 1 - float(leaving.mean())
    evidence = (
        f"no box reaches beyond {_SHARE} pixels" if is_share else f"{_share(leaving)} leave their images; {_WITHIN}"
    )
    if {*forms} <= {*EXCHANGED} and not (is_settled and len(forms) == 1):
        mistake = "Either x and y of the truth's boxes, or width and height of its images, are exchanged"
        return Finding(mistake, evidence, now, command=_ASK, side="truth")
    if len(forms) > 1:
        mistake = f"The truth's boxes are {' or '.join(map(box_words, forms))}; {_EXPECTED}"
        return Finding(mistake, evidence, now, command=_ASK, side="truth")
    mended = 1 - float(leaves_image(boxes_in_pixels(boxes, forms[0], sizes), sizes).mean())
    return form_mistake(forms[0], evidence, now, None if is_share else mended)


def form_mistake(form: str, evidence: str, now: float | None, mended: float | None) -> Finding:
    """Return the finding for the form of a truth's boxes, with the mend."""
    mistake = f"The truth's boxes are {box_words(form)}; {_EXPECTED}"
    return Finding(mistake, evidence, now, mended, f"boxes={form}", side="truth")


_EXPECTED = "expected x, y, width, height in pixels"
_ASK = "curation inspect TRUTH --detections FILE: boxes of detections may tell which"
_COMPARE = "compare some boxes and image sizes of the truth with the photos: these detections do not tell which"


def other_mistakes(
    boxes: Floats,
    sizes: Floats,
    *,
    crowd: Bools,
    files: Sequence[str],
    ids: Sequence[Id],
    image_at: Callable[[int], str],
    has_layout: bool = False,
) -> Iterator[Finding]:
    """Yield the mistakes of a truth other than the layout of its boxes.

    Parameters
    ----------
    boxes, sizes : ndarray of float64, shape (m, 4) and (m, 2)
        Boxes in pixels, and the size of the image of each.
    crowd : ndarray of bool, shape (m,)
    files, ids
        File name and id of each image.
    image_at : callable
        Returns the name of a box's image.
    has_layout : bool
        Whether another layout explains that boxes leave their images.
    """
    leaving = np.zeros(len(boxes), bool) if has_layout else leaves_image(boxes, sizes)
    if leaving.any():
        rows = np.flatnonzero(leaving)
        beyond = np.nanmax(np.fmax(-boxes[rows, :2], boxes[rows, :2] + boxes[rows, 2:] - sizes[rows]))
        images = examples(dict.fromkeys(f"image {image_at(row)}" for row in rows[:100].tolist()))
        mistake = f"Boxes of the truth leave their images: {_share(leaving)}, by up to {beyond:,.0f} pixels ({images})"
        advice = "compare width and height of these images, and their boxes, with the photos"
        yield Finding(mistake, _WITHIN, 1 - float(leaving.mean()), command=advice, side="truth")
    if len(crowd) and crowd.all():
        mistake = f"All {counted(len(crowd), 'object')} of the truth are crowd, so no measure has an object to match"
        yield Finding(mistake, "objects that are not crowd", 0.0, 1.0, "crowd=objects", side="truth")
    by_file = defaultdict[str, list[Id]](list)
    for file, image in zip(files, ids, strict=True):
        if file:
            by_file[file].append(image)
    if repeated := {file: same for file, same in by_file.items() if len(same) > 1}:
        ids_of_file = examples(f"{file:.80}: {' and '.join(map(str, same[:3]))}" for file, same in repeated.items())
        mistake = f"Files of the truth have several image ids: {counted(len(repeated), 'file')} ({ids_of_file})"
        advice = "list each photo once; photos with the same name in several folders need the folder in file_name"
        yield Finding(mistake, "files with one id", 1 - len(repeated) / len(by_file), command=advice, side="truth")


def _share(rows: Bools) -> str:
    return f"{int(rows.sum()):,} of {counted(len(rows), 'box', 'boxes')}"


_MULTIPLE = 2.0
_FEW, _MANY = 3, 10
_LOW = 0.05
_SURE = 100
"""Minimum number of detector boxes that determine a scale or an offset; with fewer, it is printed as an estimate."""
_MOST_PAIRS = 100
"""Maximum number of category ids that a mend lists one by one."""
_SCREENED = 2_000
"""Number of detections that decide between many readings."""
_BEYOND = 1e18
"""Coordinates above this limit are ignored when estimating a mend."""


class _Reading(NamedTuple):
    """Number of detections that lie on an object, under a mend of image ids and boxes."""

    ids: str
    boxes: str
    hits: int
    looked_at: int

    @property
    def share(self) -> float:
        return self.hits / self.looked_at if self.looked_at else 0.0


def explain(columns: Columns, truth: Objects) -> tuple[list[Finding], dict[str, int]]:
    """Return the mistakes in detections, in the order of their mends, and counts."""
    counts = {"detections": len(columns), "images": _distinct(columns.images), "images_of_truth": len(truth.images)}
    if not len(columns):
        return [], counts
    some = columns.take(sample(columns))
    layout, truth = truth_layout(some, truth)
    findings = [layout] if layout else []
    mends: dict[str, str] = {}
    for test in (_geometry, _classes, _unusable, _scored, _repeated, _thin):
        held = columns if test in (_unusable, _repeated, _thin) else some
        mistakes = [*test(apply_mends(held, mends, truth)[0], truth)]
        findings += mistakes
        mends |= dict(finding.mend.split("=", 1) for finding in mistakes if finding.mend)
    after = apply_mends(some, mends, truth)[0]
    best, _ = _overlaps(after, truth)
    counts |= {"looked_at": len(some), "on_objects": int((best >= 0.5).sum())}
    if len(truth.categories) > 1 and None not in after.classes:
        undecided = renaming(after, truth, class_votes(after, truth)).undecided
        counts |= {"classes_too_rare_to_tell": len(undecided)} if undecided else {}
    return findings, counts


def _distinct(values: Any) -> int:
    return len(distinct(values) if isinstance(values, np.ndarray) else set(values))


def _overlaps(columns: Columns, truth: Objects) -> tuple[Floats, Int64s]:
    return best_overlaps(columns.boxes, truth.positions(columns.images), truth)


def _multiplies(now: int, then: int, n: int, *, low: float = 0.0) -> bool:
    """Return whether the detections on objects multiply from `now` to `then` and are neither few nor a small share."""
    share = then / n if n else 0.0
    is_many = (
        (then >= _FEW and share >= 0.5) or (then >= _MANY and share >= 0.1) or (then >= 10 * _MANY and share >= _LOW)
    )
    return is_many and share >= low and then >= _MULTIPLE * now and then - now >= 3 * math.sqrt(then + now) - 3


def _geometry(columns: Columns, truth: Objects) -> Iterator[Finding]:
    """Yield the findings for image ids and boxes of another convention, tested together."""
    names = image_mends([*dict.fromkeys(columns.names)], truth)
    by_ids = {name: _placed(_with_ids(columns, name, truth), truth) for name in names}
    usual = [f"{layout}:{unit}".rstrip(":") for unit in UNITS for layout in LAYOUTS]
    # A few detections decide which readings are tested on all.
    step = math.ceil(len(columns) / _SCREENED)
    few = {name: (boxes[::step], positions[::step]) for name, (boxes, positions) in by_ids.items()}
    screened = [_reading(*pair, truth, name, form) for name, pair in few.items() for form in usual]
    most = max(reading.hits for reading in screened)
    chosen = [screened[0], *(reading for reading in screened[1:] if 2 * reading.hits >= most)]
    readings = [_reading(*by_ids[reading.ids], truth, reading.ids, reading.boxes) for reading in chosen]
    now = readings[0]
    best = max(readings, key=lambda reading: reading.hits)
    plain = best if _multiplies(now.hits, best.hits, best.looked_at) else now
    if plain.share < 0.5:
        likely = [name for name, pair in few.items() if _is_fitted(*pair, truth, plain)]
        fitted = [
            _reading(*by_ids[name], truth, name, form) for name in likely for form in _fitted(*by_ids[name], truth)
        ]
        # Any six boxes contain three that some offset fits.
        most = max(best.hits + 1, _MANY)
        readings += [new for new in fitted if new.hits >= most and _multiplies(plain.hits, *new[2:])]
        best = max(readings, key=lambda reading: reading.hits)
    # Choose the plainest of equally good readings.
    best = next(reading for reading in readings if reading.hits >= 0.95 * best.hits)
    in_parts = (np.abs(columns.boxes) <= 1.5).all(axis=1).mean() >= 0.9 and truth.boxes.max(initial=0) > 2
    if in_parts and np.isnan(truth.sizes).all():
        mistake = "Boxes are parts of the image's size, which the truth does not state"
        yield Finding(
            mistake, "boxes within 0 to 1.5", 1.0, command="write width and height of each image into the truth"
        )
        return
    holds = _multiplies(now.hits, best.hits, best.looked_at, low=0.0 if best.boxes in usual else 0.1)
    if not holds or best is now or not _fits_own_images(*by_ids[best.ids], truth, best):
        if other := other_images(columns, truth):
            yield other
        else:
            yield from _strays(columns, truth, names)
        return
    # The reading with unchanged boxes.
    before = _reading(*by_ids[best.ids], truth, best.ids, "xywh")
    if best.ids and before.hits:
        shares = (reading.hits / len(columns) for reading in (now, before))
        yield _ids_finding(best.ids, "detections on an object of their image (IoU >= 0.5)", *shares)
    elif best.ids:
        yield _strange_ids(columns, truth, best.ids)
    if best.boxes != "xywh":
        unit = None
        if best.boxes not in usual and _is_rough(*by_ids[best.ids], truth, best):
            unit = f"about {best.boxes.partition(':')[2]}, estimated from {best.hits} boxes"
        mistake = f"Boxes are {box_words(best.boxes, unit)}; expected x, y, width, height in pixels"
        evidence = "detections on an object (IoU >= 0.5)"
        yield Finding(mistake, evidence, before.share, best.share, f"boxes={best.boxes}")


def _is_fitted(boxes: Floats, positions: Int64s, truth: Objects, plain: _Reading) -> bool:
    """Return whether a form of `_fitted` places more of a few boxes on objects than the best usual reading."""
    least = max(plain.share * len(boxes), 1)
    return any(_reading(boxes, positions, truth, "", form).hits > least for form in _fitted(boxes, positions, truth))


def _is_rough(boxes: Floats, positions: Int64s, truth: Objects, best: _Reading) -> bool:
    """Return whether an offset, or a scale from few boxes, does not place most of them exactly on their objects."""
    iou, _ = best_overlaps(boxes_in_pixels(boxes, best.boxes, truth.sizes[positions]), positions, truth)
    is_offset = "," in best.boxes
    return (is_offset or best.hits < _SURE) and bool(np.median(iou[iou >= 0.5]) < 0.98)


def truth_layout(columns: Columns, truth: Objects) -> tuple[Finding | None, Objects]:
    """Return the mistake in the layout of the truth's boxes, and the truth after its mend.

    The sizes of images prove it (see `curation.extensions.diagnosis.mistakes`), and detections choose between
    several layouts that fit; or detections lie on many more objects under it than under any other convention.
    """
    sizes = truth.sizes[truth.image]
    positions = truth.positions(columns.images)
    n = int((positions >= 0).sum())
    forms = [f"{layout}:{unit}".rstrip(":") for unit in UNITS for layout in LAYOUTS]

    def mended(form: str) -> Objects:
        boxes = boxes_in_pixels(truth.boxes, form, sizes)
        boxes[:, 2:] = np.maximum(boxes[:, 2:], 0)
        return replace(truth, boxes=boxes)

    def hits(form: str, *of_detections: str) -> int:
        held = mended(form) if form != "xywh" else truth
        return max(_reading(columns.boxes, positions, held, "", other).hits for other in of_detections)

    fitting = fitting_forms(truth.boxes, sizes)
    if fitting:
        # Exchanged image sizes also exchange the axes of detections, which are then not evidence.
        is_exchange = {*fitting} <= {*EXCHANGED}
        conventions = [form for form in forms if not is_exchange or form.startswith(LAYOUTS[:3])]
        # First with the unchanged detections, then under any convention for them.
        for others in (forms[:1], conventions):
            now, counts = hits("xywh", *others), {form: hits(form, *others) for form in fitting}
            best = max(counts.values())
            if is_settled := _multiplies(now, best, n):
                break
        if 2 * best < now and not is_exchange:
            return None, truth
        # On square images x and y can be exchanged in all boxes: no number changes.
        chosen = [form for form, count in counts.items() if 2 * count >= best][: 1 if best else None]
        finding = layout_mistake(chosen, truth.boxes, sizes, is_settled=is_settled)
        if finding and finding.command == _ASK:
            finding = finding._replace(command=_COMPARE)
        return finding, mended(chosen[0]) if finding and finding.mend else truth
    if not n or any(hits("xywh", form) >= 0.25 * n for form in forms):
        return None, truth
    now = hits("xywh", *forms)
    counts = {form: hits(form, "xywh") for form in forms[1:]}
    form = max(counts, key=lambda name: counts[name])
    if not _multiplies(now, counts[form], n, low=0.1) or not _fits_own_images(
        columns.boxes[positions >= 0], positions[positions >= 0], mended(form), _Reading("", "xywh", counts[form], n)
    ):
        return None, truth
    evidence = "detections on an object (IoU >= 0.5)"
    return form_mistake(form, evidence, hits("xywh", "xywh") / n, counts[form] / n), mended(form)


def other_images(columns: Columns, truth: Objects) -> Finding | None:
    """Return the finding for numbers that are not image ids, if boxes lie on objects of other images; else None.

    The three best detections of each image are compared, counting those on an object under only one reading. If the
    truth lacks some numbers, a reading that has all of them need not be better by boxes.
    """
    references = columns.names
    images = coded(references)
    order = np.lexsort((-columns.scores, images))
    begin = np.flatnonzero(np.diff(images[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begin, np.diff(begin, append=len(order)))
    rows = np.sort(order[rank < _FEW])
    rows = rows[:: math.ceil(len(rows) / MOST_ROWS) or 1]
    boxes, ids = columns.boxes[rows], [references[row] for row in rows.tolist()]
    now, on = truth.index.resolve(ids).position.astype(np.int64), None
    for name, *candidates in truth.index.other_readings(ids):
        moved = np.any([(image >= 0) & (image != now) for image in candidates], axis=0)
        if not moved.any():
            continue
        on = best_overlaps(boxes, now, truth)[0] >= 0.5 if on is None else on
        overlaps = [best_overlaps(boxes[moved], image[moved].astype(np.int64), truth)[0] for image in candidates]
        on_other = np.max(overlaps, axis=0) >= 0.5
        before, after = int((on[moved] & ~on_other).sum()), int((on_other & ~on[moved]).sum())
        if after > 3 * before and after >= 0.1 * moved.sum():
            shares = (float(on.mean()), float((on.sum() - before + after) / len(on)))
            finding = _ids_finding(name, "detections on an object of their image (IoU >= 0.5)", *shares)
        elif after >= before and (now < 0).any() and (now >= 0).any():
            finding = _ids_finding(name, "detections on images of the truth", float((now >= 0).mean()), 1.0)
        else:
            continue
        if (candidates[1] < 0).all():
            return finding
        mistake, command = "Image ids are numbers that several files share", "name images by file_name, with folders"
        return finding._replace(what=mistake, mend="", mended=None, command=command)
    return None


def _with_ids(columns: Columns, name: str, truth: Objects) -> Columns:
    return apply_mends(columns, {"image_ids": name} if name else {}, truth)[0]


def _placed(columns: Columns, truth: Objects) -> tuple[Floats, Int64s]:
    """Return the boxes on images of the truth, and the positions of these images."""
    positions = truth.positions(columns.images)
    return columns.boxes[positions >= 0], positions[positions >= 0]


def _reading(boxes: Floats, positions: Int64s, truth: Objects, ids: str, form: str) -> _Reading:
    best, _ = best_overlaps(boxes_in_pixels(boxes, form, truth.sizes[positions]), positions, truth)
    return _Reading(ids, form, int((best >= 0.5).sum()), len(positions))


def _fits_own_images(raw_boxes: Floats, positions: Int64s, truth: Objects, best: _Reading) -> bool:
    """Return whether mended boxes lie on objects of their images more often than on objects of other images."""
    there = np.flatnonzero(truth.count)
    if len(there) < 2:
        return best.share >= 0.5 and best.hits >= _MANY
    boxes = boxes_in_pixels(raw_boxes, best.boxes, truth.sizes[positions])
    # Each image is exchanged with the next image with objects, its boxes scaled to that image's size.
    other = there[np.searchsorted(there, positions, side="right") % len(there)]
    scale = np.nan_to_num(truth.sizes[other] / truth.sizes[positions], nan=1.0)
    by_chance, _ = best_overlaps(boxes * np.tile(scale, 2), other, truth)
    return best.hits >= 2 * int((by_chance >= 0.5).sum())


_NAMED_IDS = {
    "number": "Image ids are strings of digits",
    "file_name": "Image ids are file names",
    "stem": "Image ids are stems of file names",
    "stem_number": "Image ids are the numbers of file names",
    "listed": "Image ids are those of the sources that the truth was exported from",
    "index0": "Image ids are positions in the truth's list, from 0",
    "index1": "Image ids are positions in the truth's list, from 1",
    "rank0": "Image ids are positions among the truth's ascending ids, from 0",
    "rank1": "Image ids are positions among the truth's ascending ids, from 1",
}


def ids_are(name: str) -> str:
    """Return a description of the image ids that a mend of this name fits."""
    return _NAMED_IDS.get(name) or f"Image ids are off by {-int(name)}"


def _ids_finding(name: str, evidence: str, now: float, mended: float) -> Finding:
    return Finding(ids_are(name), evidence, now, mended, f"image_ids={name}")


def _strange_ids(columns: Columns, truth: Objects, name: str) -> Finding:
    shares = (_located(detections, truth) for detections in (columns, _with_ids(columns, name, truth)))
    return _ids_finding(name, "detections on images of the truth", *shares)


def _located(columns: Columns, truth: Objects) -> float:
    return float((truth.positions(columns.images) >= 0).mean())


def _strays(columns: Columns, truth: Objects, names: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings for ids that the truth lacks if boxes support no mend; a mend must fit nearly all ids."""
    if (now := _located(columns, truth)) >= 0.5:
        return
    numbers = [image for image in truth.images if isinstance(image, int)]
    is_sparse = len(numbers) > 1 and len(numbers) < 0.5 * (max(numbers) - min(numbers) + 1)
    for name in names[1:]:
        mistake = _strange_ids(columns, truth, name)
        is_sure = name[0] in "+-" and is_sparse and len(set(columns.images)) >= 5
        if (
            mistake.mended is not None
            and mistake.mended >= 0.99
            and (is_sure or name in ("number", "file_name", "stem", "listed"))
        ):
            yield mistake
            return
    strange = sorted({str(image) for image in columns.images if image not in truth.image_position})[:3]
    yield Finding(
        f"Detections are of other images than the truth: of another split? ({', '.join(strange)[:80]}, …)",
        "detections on images of the truth",
        now,
        command="score them on the truth of the images that the detector was given",
    )


def image_mends(ids: Sequence[Id], truth: Objects) -> list[str]:
    """Return the mends under which nearly all distinct `ids` are in the truth; the first is ``""``, no mend."""
    numbers = np.array([number for image in ids if (number := number_of(image)) is not None], np.int64)
    there = np.array(sorted(image for image in truth.images if isinstance(image, int)), np.int64)
    names = ["number", "file_name", "stem"] if any(isinstance(image, str) for image in ids) else []
    if len(numbers) == len(ids):
        names += [*NUMBERINGS, "index0", "index1", "rank0", "rank1"]
        if len(there):
            some = numbers[:: max(1, len(numbers) // 50)][:50]
            shifts, counts = np.unique(there[None, :] - some[:, None], return_counts=True)
            likely = shifts[np.argsort(-counts, kind="stable")[:3]].tolist()
            likely += [int(there[0] - numbers.min()), int(there[-1] - numbers.max()), 1, -1]
            names = [f"{shift:+d}" for shift in dict.fromkeys(likely) if shift] + names

    def fits(name: str) -> bool:
        known = [*map(image_map(name, truth), ids)]
        return known != list(ids) and sum(image in truth.image_position for image in known) >= 0.9 * len(ids)

    return ["", *(name for name in names if fits(name))]


def _fitted(boxes: Floats, positions: Int64s, truth: Objects) -> Iterator[str]:
    """Return forms of boxes by a factor, a network's input size, or an offset that pairs of boxes vote for."""
    chosen = positions[np.cumsum(truth.count[positions]) <= 20 * MOST_ROWS]
    counts = truth.count[chosen]
    rows = np.repeat(np.arange(len(chosen)), counts)
    first = np.searchsorted(truth.image, chosen) - np.cumsum(counts) + counts
    objects = np.arange(len(rows)) + np.repeat(first, counts)
    raw, targets, sizes = boxes[rows], truth.boxes[objects], truth.sizes[chosen[rows]]
    for layout in LAYOUTS[:3] if len(rows) else ():
        pixels = boxes_in_pixels(raw, layout, sizes)
        # Some votes have more digits than a mend accepts.
        yield from filter(is_form, (f"{layout}:{unit}" for unit in _votes(pixels, targets, sizes)))


def _votes(boxes: Floats, targets: Floats, sizes: Floats) -> Iterator[str]:
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = (np.abs(np.hstack([boxes, targets])) < _BEYOND).all(axis=1)
        usable &= (boxes[:, 2:] > 0).all(axis=1) & (targets[:, 2:] > 0).all(axis=1)
        boxes, targets, sizes = boxes[usable], targets[usable], sizes[usable]
        yield from _factor(boxes, targets, "x{}")
        known = np.isfinite(sizes).all(axis=1)
        longest = sizes.max(axis=1, keepdims=True)
        in_corner, margin = targets / longest, np.pad((longest - sizes) / longest / 2, ((0, 0), (0, 2)))
        squares = {"0-{}": targets / np.tile(sizes, 2), "corner-{}": in_corner, "letterbox-{}": in_corner + margin}
        for form, relative in squares.items():
            yield from _factor(boxes[known], relative[known], form)
        alike = (np.abs(np.log(targets[:, 2:] / boxes[:, 2:])) < 0.2).all(axis=1)
    gaps = (targets - boxes)[alike, :2]
    if len(gaps):
        cells, votes = np.unique(np.round(gaps / 8), axis=0, return_counts=True)
        near = (np.abs(gaps - 8 * cells[np.argmax(votes)]) <= 12).all(axis=1)
        x, y = (round(gap) for gap in np.median(gaps[near], axis=0).tolist())
        yield f"{x:+d},{y:+d}"


def _factor(boxes: Floats, targets: Floats, form: str) -> Iterator[str]:
    """Return the factor on which most pairs of a box and an object agree, in size and corner."""
    if not len(boxes):
        return
    logs = np.log(targets[:, 2:] / boxes[:, 2:])
    factor = np.exp(logs.mean(axis=1))
    corner = np.abs(boxes[:, :2] * factor[:, None] - targets[:, :2]) <= 0.2 * targets[:, 2:]
    agreeing = (np.abs(logs[:, 0] - logs[:, 1]) < 0.15) & corner.all(axis=1)
    if agreeing.sum() < _MANY:
        return
    bins, votes = np.unique(np.round(np.log(factor[agreeing]) / 0.05), return_counts=True)
    agreeing &= np.abs(np.log(factor) - 0.05 * bins[np.argmax(votes)]) < 0.06
    # By centres: detectors draw boxes too large or too small.
    centres, target_centres = (rows[agreeing, :2] + rows[agreeing, 2:] / 2 for rows in (boxes, targets))
    factor_of_most = float((centres * target_centres).sum() / (centres**2).sum())
    if not 0 < factor_of_most < math.inf:
        return
    if form == "x{}":
        close = Fraction(factor_of_most).limit_denominator(20)
        yield form.format(close if close else f"{factor_of_most:.4f}")
    elif size := round(1 / factor_of_most):
        # Input sizes of networks are multiples of 32.
        multiple = 32 * round(size / 32)
        yield form.format(multiple if abs(multiple - size) <= 0.005 * size else size)


def _classes(columns: Columns, truth: Objects) -> Iterator[Finding]:
    """Yield the findings for missing or renumbered category ids, by the classes of the objects under the boxes."""
    if nameless := [*columns.classes].count(None):
        share, advice = 1 - nameless / len(columns.classes), "write category_id into each record, or category: a name"
        yield Finding("Detections name no class", "records with category_id or category", share, command=advice)
        return
    votes = class_votes(columns, truth)
    used, n = [*votes], sum(tally.total() for tally in votes.values())

    def right(known: Mapped) -> int:
        return sum(tally[truth.category_position.get(known(old), -1)] for old, tally in votes.items())

    now, rename = right(lambda old: old), renaming(columns, truth, votes)
    moved = rename.moved
    mends = {
        name: known
        for name in _category_mends(used, truth)
        if _is_numbering(name, known := category_map(name, truth), used, truth, rename)
    }
    counts = {name: right(known) for name, known in mends.items()}
    most = max(counts.values(), default=0)
    numbering = next((name for name, count in counts.items() if count >= 0.95 * most), "")
    learnt = right(lambda old: moved.get(old, old))
    lacking = {category for category in used if category not in truth.category_position}
    # Names and numbers as texts may occur in a few records only.
    spelled: dict[str, set[Id | None]] = {
        name: {old for old in lacking if mends[name](old) in truth.category_position}
        for name in ("number", "name")
        if name in mends
    }
    is_mended = _multiplies(now, most, n, low=0.2) or (lacking and most > 1.2 * now + _FEW)
    evidence = RIGHT_CLASS
    is_one = len(used) == 1 and used[0] not in (UNKNOWN, UNKNOWN_NUMBER)
    classes = sum(count > 0 for count in votes[used[0]].values()) if is_one else 0
    if classes > 1 and n >= _MANY and max(now, most) <= 0.7 * n:
        mistake = f"All detections have the same class, {used[0]!s:.40}, on objects of {classes} classes"
        yield Finding(mistake, evidence, now / n, command="write each detection's own category_id")
    elif numbering and is_mended and most >= 0.9 * learnt:
        mistake = _NUMBERINGS.get(numbering) or f"Category ids are off by {-int(numbering)}"
        yield Finding(mistake, evidence, now / n, most / n, f"category_ids={numbering}")
    elif learnt >= now + _MANY:
        yield _renamed(rename, Finding("", evidence, now / n, learnt / n))
    elif name := next((name for name, ids in spelled.items() if ids), ""):
        before, after = (
            float(np.mean([category not in others for category in columns.classes]))
            for others in (lacking, lacking - spelled[name])
        )
        yield Finding(_NUMBERINGS[name], "detections of its classes", before, after, f"category_ids={name}")


def _is_numbering(name: str, known: Mapped, used: Sequence[Id | None], truth: Objects, rename: Renaming) -> bool:
    """Return whether a numbering fits nearly all ids, no id is known to stand for another class, and no two merge."""
    if name == "name":
        return True
    new = {old: category for old in used if (category := known(old)) in truth.category_position}
    is_contradicted = any(old in rename.classes and rename.classes[old] != category for old, category in new.items())
    # An id of the truth that is missing in the numbering would keep the number of another class.
    merges = any(old not in new and (old in truth.category_position or old in rename.classes) for old in used)
    return len(new) >= 0.9 * len(used) and not is_contradicted and not merges


def _renamed(rename: Renaming, finding: Finding) -> Finding:
    """Return the finding for ids that stand for other classes, with a mend unless undecided ids prevent it."""
    moved, undecided = rename.moved, rename.undecided
    pairs = [f"{old}:{new}" for old, new in sorted(moved.items(), key=lambda item: str(item[0]))]
    ids = counted(len(moved), "category id stands for another class", "category ids stand for other classes")
    mistake = f"{ids}: the numbering of another file"
    if undecided:
        ids, rows = ("id", "detection")
        rare, rows = counted(len(undecided), "id"), counted(sum(undecided.values()), "detection")
        mistake += f"; {rare} ({rows}) cannot be identified by their boxes: {short_list(undecided)}"
    if rename.blocking:
        advice = (
            f"--mend category_ids=A:B,C:D for all ids at once, with the list that the detector was trained with: "
            f"alone, {examples(pairs, 12)} would merge classes with {short_list(rename.blocking)}"
        )
        return finding._replace(what=mistake, mended=None, command=advice)
    is_short = len(moved) <= _MOST_PAIRS and all(isinstance(new, int) for new in moved.values())
    is_short = is_short and not any({*":,"} & {*str(old)} for old in moved)
    return finding._replace(what=mistake, mend=f"category_ids={','.join(pairs) if is_short else 'matched'}")


RIGHT_CLASS = "detections on objects whose class is right"
"""Evidence of findings on category ids."""
_NUMBERINGS = {
    "index0": "Category ids are positions in the truth's categories, from 0",
    "index1": "Category ids are positions in the truth's categories, from 1",
    "coco91": "Category ids are COCO's 1 to 90, and the truth numbers its 80 classes consecutively",
    "name": "category_id holds class names, or names differ from the truth's in case or spaces",
    "number": "Category ids are strings of digits",
}


def _category_mends(used: Sequence[Id | None], truth: Objects) -> list[str]:
    if any(isinstance(category, str) for category in used):
        return ["number", "name"]
    if all(category in truth.category_position for category in used) and len(used) < 2:
        return []
    names = ["index0", "index1", *(["coco91"] if len(truth.categories) == 80 else [])]
    numbers = sorted(category for category in truth.categories if isinstance(category, int))
    held = sorted(category for category in used if isinstance(category, int))
    if numbers and held:
        shifts = dict.fromkeys([numbers[0] - held[0], numbers[-1] - held[-1], 1, -1])
        names += [f"{shift:+d}" for shift in shifts if shift]
    return names


def _unusable(columns: Columns, truth: Objects) -> Iterator[Finding]:
    """Yield the findings for unusable records: without a box or its size, or of a class that the truth lacks."""
    has_box, can_drop = np.isfinite(columns.boxes).all(axis=1), bool(usable(columns, truth).any())
    if not has_box.all():
        mistake = f"{counted(int((~has_box).sum()), 'record')} without four finite numbers in bbox"
        mend = "records=drop" if can_drop else ""
        command = "" if mend else "write x, y, width, height in pixels into each record"
        yield Finding(mistake, "records with a box", float(has_box.mean()), 1.0 if mend else None, mend, command)
    # Some exports pad each image with empty boxes.
    elif len(columns) >= _MANY and (columns.boxes[:, 2:] <= 0).any(axis=1).all():
        advice = "write x, y, width, height in pixels into each record"
        yield Finding("All boxes are without width or height", "boxes with a size", 0.0, command=advice)
    known = has_class(columns, {*truth.category_position, UNKNOWN, UNKNOWN_NUMBER})
    if known.all() or not truth.categories:
        return
    others = columns.take(np.flatnonzero(~known)).classes
    if None in others:
        return
    strange = Counter(repr(name)[:40] for name in others)
    names = examples([f"{name} ({count:,})" for name, count in strange.most_common()], shown=6)
    rows = f"{int((~known).sum()):,} of {counted(len(known), 'detection')}"
    mistake = f"{rows} are of classes that the truth lacks: {names}"
    if can_drop:
        yield Finding(mistake, "detections of its classes", float(known.mean()), 1.0, "records=drop")
    else:
        command = "write category_id or category as the truth has them"
        yield Finding(mistake, "detections of its classes", float(known.mean()), command=command)


def _scored(columns: Columns, truth: Objects) -> Iterator[Finding]:
    """Yield the findings for scores: missing, equal, in percent, logits, or low for correct detections."""
    rows = np.flatnonzero(np.isfinite(columns.scores))
    scores, share = columns.scores[rows], len(rows) / len(columns)
    free = "curation evaluate coco --variant score-free measures precision, recall and the range of AP"
    if share < 1:
        yield Finding("Scores are missing or not numbers", "detections with a score", share, command=free)
    if not len(rows):
        return
    if len(columns) >= _MANY and np.ptp(scores) == 0:
        yield Finding("All scores are equal: AP depends on the order of the file", "distinct scores", 0.0, command=free)
        return
    within = float(((scores >= 0) & (scores <= 1)).mean())
    if within < 1:
        is_percent = scores.min() >= 0 and scores.max() <= 100 and np.quantile(scores, 0.9) > 1
        unit, mend = ("in percent", "percent") if is_percent else ("logits or margins", "logits")
        if np.abs(scores - 0.5).max() <= 0.51:
            keep = "curation evaluate coco --on-error scores=keep takes them as they are"
            yield Finding(
                "Scores are slightly below 0 or above 1, as after rounding", "scores from 0 to 1", within, command=keep
            )
        else:
            yield Finding(f"Scores are {unit}", "scores from 0 to 1", within, 1.0, f"scores={mend}")
        return
    best, partner = _overlaps(columns.take(rows), truth)
    predicted = np.array([truth.category_position.get(columns.classes[row], -1) for row in rows.tolist()], np.int64)
    good: Bools = best >= 0.5
    with_class = good & (predicted == truth.category[partner]) if len(truth.category) else good
    good = with_class if with_class.sum() >= _MANY else good
    right, wrong = int(good.sum()), int((~good).sum())
    if min(right, wrong) < _MANY:
        return
    # The share of pairs in which the correct detection has the higher score; ties count half.
    order = np.sort(scores)
    ahead = (np.searchsorted(order, scores[good]) + np.searchsorted(order, scores[good], side="right") + 1).sum() / 2
    area = float((ahead - right * (right + 1) / 2) / (right * wrong))
    # Ten standard deviations below the area under chance.
    if area < 0.3 and (0.5 - area) > 10 * math.sqrt((len(rows) + 1) / (12 * right * wrong)):
        yield Finding(
            "Scores are low where detections are right: a distance or a loss?",
            "pairs of a right and a wrong detection with the right one ahead",
            area,
            1 - area,
            "scores=inverted",
        )


def _repeated(columns: Columns, truth: Objects) -> Iterator[Finding]:
    # Comparing boxes and scores first is ten times as fast as comparing complete rows.
    numbers = (np.column_stack([columns.boxes, columns.scores]) + 0.0).view(np.uint64)
    mixed = (numbers * np.array([3, 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 1], np.uint64)).sum(1)
    if len(distinct(mixed)) > 0.9 * len(columns):
        return
    share = len(first_of_each(columns)) / len(columns)
    if share <= 0.9 and len(columns) >= _MANY:
        yield Finding(
            "Detections are repeated exactly: were files joined twice?", "distinct detections", share, 1.0,
            "duplicates=drop")  # fmt: skip


def _thin(columns: Columns, truth: Objects) -> Iterator[Finding]:
    """Yield the finding for files with only one detection per image although most images show several objects."""
    if _distinct(columns.images) < max(2 * _MANY, len(columns)):
        return
    positions = truth.positions(columns.images)
    counts = truth.count[positions[positions >= 0]]
    if len(counts) and np.median(counts) >= 2:
        yield Finding(
            "Each image has one detection, most images show several objects",
            "objects that can be found at most",
            float(np.minimum(counts, 1).sum() / counts.sum()),
            command="write all detections of an image, not the best alone",
        )
