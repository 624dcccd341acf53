"""COCO's average precision by hotcoco, pycocotools, or both against each other."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import fsum
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import EngineDisagreementError, MissingExtraError, UsageError
from curation.core.process import require_memory
from curation.evaluation.input_order import count_tie_sensitive
from curation.evaluation.matching import overlapping_pairs
from curation.evaluation.measures import Measure, definitions
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s, classes_in_use, of_classes
from curation.sources.integrity import MAX_COORDINATE
from curation.sources.source import FEDERATED

Engine = Literal["hotcoco", "pycocotools", "both"]
_SUMMARY = (
    ("AP", "average precision", "IoU 0.50:0.95, all areas, at most 100 detections an image"),
    ("AP50", "average precision at IoU 0.50", "IoU 0.50"),
    ("AP75", "average precision at IoU 0.75", "IoU 0.75"),
    ("APs", "average precision of small objects", "IoU 0.50:0.95, objects below 32^2 pixels"),
    ("APm", "average precision of medium objects", "IoU 0.50:0.95, objects of 32^2 to 96^2 pixels"),
    ("APl", "average precision of large objects", "IoU 0.50:0.95, objects above 96^2 pixels"),
    ("AR1", "average recall, 1 detection", "recall, at most 1 detection an image"),
    ("AR10", "average recall, 10 detections", "recall, at most 10 detections an image"),
    ("AR100", "average recall, 100 detections", "recall, at most 100 detections an image"),
    ("ARs", "average recall of small objects", "recall, objects below 32^2 pixels"),
    ("ARm", "average recall of medium objects", "recall, objects of 32^2 to 96^2 pixels"),
    ("ARl", "average recall of large objects", "recall, objects above 96^2 pixels"),
)
MEASURES = tuple(
    Measure(
        key,
        name,
        formula,
        unit="%",
        better="higher",
        source="cocodataset.org/#detection-eval; pycocotools, COCOeval.summarize",
        undefined="no object qualifies, crowd aside",
        ranked=key.startswith("AP") or key == "AR100",
    )
    for key, name, formula in _SUMMARY
)
STATISTICS = definitions(MEASURES)
"""The twelve numbers of COCO's summary, in its order, with their definitions."""

_AREA_WORDS = {"s": "below 32^2 pixels", "m": "of 32^2 to 96^2 pixels", "l": "above 96^2 pixels"}
_TOLERANCE = 1e-9
_BYTES_OF_A_CLASS = {"hotcoco": 260_000, "pycocotools": 195_000, "both": 310_000}
"""Measured, in address space: 10 IoUs, 101 recalls and 4 ranges of area, of precision and of score, and copies."""
_LEAN = "; --engine pycocotools takes three quarters of that, and longer"
_CLASSES_AT_ONCE = 2000
"""Of more classes an engine gets some at a time; their means may differ in the last digit from those of all at once."""
_EVERYWHERE = 2.0 * MAX_COORDINATE


def coco_average_precision(
    truth: GroundTruth, detections: Detections, *, engine: Engine | None = None
) -> dict[str, Any]:
    """Return COCO's twelve numbers, and the AP of each class, of plain (closed-set) detection.

    Of a federated dataset (LVIS) an image counts for the classes that it was labelled for (`labelled`). Crowd regions
    are ignored as COCO does; *difficult* objects count as ordinary ones, because COCO knows no such
    flag; objects of unknown class (label -1) are left out. Inputs are not changed.

    Parameters
    ----------
    truth : GroundTruth
        Its `areas` decide small, medium and large; a missing (not finite) area becomes ``w*h``.
    detections : Detections
    engine : {"hotcoco", "pycocotools", "both"}, optional
        ``both`` runs the two and requires them to agree to 1e-9. By default hotcoco where it is installed, else
        pycocotools.

    Returns
    -------
    dict
        The keys of `STATISTICS` as fractions of 1, None where no object qualifies (the engines' -1); ``per_class``: AP
        by class name; ``undefined``: the reason of each None; ``engine``; ``difficult``; ``n_images``, ``n_objects``,
        ``n_detections``, ``left_out`` (objects of unknown class); ``n_detections_not_labelled`` of a federated dataset
        (see `labelled`); ``decided_by_order`` (`coco_decided_by_order`);
        ``largest_difference`` under ``both``.

    Raises
    ------
    MissingExtraError
        hotcoco was asked for and is not installed.
    EngineDisagreementError
        The two engines differ by more than 1e-9.
    UsageError
        An unknown engine.
    """
    chosen = _choose(engine)
    known = truth.label >= 0
    result: dict[str, Any] = {
        "engine": chosen,
        "difficult": "counted",
        "n_images": truth.n_images,
        "n_objects": int(known.sum()),
        "n_detections": len(detections),
        "left_out": int((~known).sum()),
    }
    if truth.federated is not None:
        truth, detections = labelled(truth, detections)
        result["n_detections_not_labelled"] = result["n_detections"] - len(detections)
    found = _run(chosen, truth, detections)
    if found.difference is not None:
        result["largest_difference"] = found.difference
    result |= {name: _defined(value) for name, value in zip(STATISTICS, found.statistics, strict=True)}
    result["per_class"] = per_class = _per_class(truth.classes, found)
    result["undefined"] = _reasons(result, per_class)
    result["decided_by_order"] = coco_decided_by_order(truth, detections)
    return result


def coco_precision(truth: GroundTruth, detections: Detections, *, engine: Engine | None = None) -> dict[int, Floats]:
    """Return the interpolated precision at 10 IoUs (0.50 to 0.95) and 101 recalls, shape (10, 101), by class.

    All areas, at most 100 detections a class and image. Classes go by their position in `truth`; one without objects,
    crowd aside, is not there. Under ``both`` the engines must agree to 1e-9.

    Raises
    ------
    MissingExtraError, EngineDisagreementError, UsageError, EvaluationError
        As `coco_average_precision`.
    """
    found = _run(_choose(engine), *labelled(truth, detections), at_once=None)
    columns = zip(found.labels, np.moveaxis(found.precision, 2, 0), strict=True)
    return {label: precision for label, precision in columns if precision[0, 0] >= 0}


def pycocotools_precision(truth: GroundTruth, detections: Detections, zero: int) -> float | None:
    """Return AP as pycocotools has it where an annotation id is 0: it takes a match with this object for none.

    Parameters
    ----------
    zero : int
        Position of the object with id 0.
    """
    return _defined(float(_run("pycocotools", *labelled(truth, detections), zero=zero).statistics[0]))


def coco_decided_by_order(truth: GroundTruth, detections: Detections) -> int:
    """Return how many decisions of COCO's numbers may rest on the order of the file: groups of one class and score.

    A detection finds an object with certainty where no other one of its class overlaps any object that it overlaps by
    half; equal scores are told apart by how many of the IoUs 0.50 to 0.95 their detections then reach. All others of
    equal score, where one may be right, are taken for undecided.
    """
    truth, detections = labelled(truth, detections)
    if not (np.diff(np.sort(detections.scores)) == 0).any():
        return 0
    pairs = overlapping_pairs(truth, detections, same_class=True, mask=~truth.crowd, iou_threshold=0.5, strict=False)
    best = np.zeros(len(detections))
    np.maximum.at(best, pairs.row, pairs.iou)
    rivals = np.bincount(pairs.position, minlength=len(truth.label))
    disputed = np.zeros(len(detections), bool)
    disputed[pairs.row[rivals[pairs.position] > 1]] = True
    kind = np.searchsorted(np.linspace(0.5, 0.95, 10), best, side="right")
    return count_tie_sensitive(detections, kind, contested=disputed, free=True)


def labelled(truth: GroundTruth, detections: Detections) -> tuple[GroundTruth, Detections]:
    """Return what counts of a federated ground truth and its detections; any other comes back as it is.

    As LVIS has it, a detection counts where its image shows an object of its class, or was seen to show none; where
    not all objects of the class are boxed, what finds none is neither right nor wrong: it is ignored as in a crowd
    region, which is therefore laid over the image.
    """
    if truth.federated is None:
        return truth, detections
    n_classes = len(truth.classes)
    image, label, kind = truth.federated[truth.federated[:, 1] >= 0].T
    partly = kind == FEDERATED.index("partly boxed")
    known = truth.label >= 0
    cells = np.concatenate([image, truth.image[known]]).astype(np.int64) * n_classes
    cells += np.concatenate([label, truth.label[known]])
    cell = detections.image.astype(np.int64) * n_classes + detections.label
    empty = (detections.boxes[:, 2:] <= 0).any(axis=1)
    # No region covers what has no size.
    counted = np.isin(cell, cells) & ~(empty & np.isin(cell, cells[: len(image)][partly]))
    n = int(partly.sum())
    order = np.argsort(np.concatenate([truth.image, image[partly]]), kind="stable")
    added: dict[str, Any] = {
        "image": image[partly],
        "label": label[partly],
        "boxes": np.tile([-_EVERYWHERE, -_EVERYWHERE, 2 * _EVERYWHERE, 2 * _EVERYWHERE], (n, 1)),
        "crowd": np.ones(n, bool),
        "difficult": np.zeros(n, bool),
        "areas": np.ones(n),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(truth, name), more])[order] for name, more in added.items()
    }
    return replace(truth, **columns, original=None, federated=None), detections.take(counted)


def is_hotcoco_installed() -> bool:
    """Return whether hotcoco can be imported, without importing it."""
    return importlib.util.find_spec("hotcoco") is not None


def _choose(engine: Engine | None) -> Engine:
    if engine is None:
        return "hotcoco" if is_hotcoco_installed() else "pycocotools"
    if engine not in get_args(Engine):
        raise UsageError("Unknown COCO engine", expected=", ".join(get_args(Engine)), found=repr(engine)[:80])
    if engine != "pycocotools" and not is_hotcoco_installed():
        raise MissingExtraError(
            "hotcoco is not installed",
            where=f"engine {engine}",
            hint="pip install 'curation[fast]', or choose the engine pycocotools",
        )
    return engine


def _per_class(classes: Sequence[str], found: _Found) -> dict[str, float | None]:
    per_class: dict[str, float | None] = dict.fromkeys(classes)
    for label, value in zip(found.labels, found.precision.mean(axis=(0, 1)).tolist(), strict=True):
        per_class[classes[label]] = _defined(value)
    return per_class


Summary = Callable[[tuple[Floats, Floats], list[int]], Floats]
"""Makes numbers of precision and recall without a limit, as LVIS's thirteen are made, and of the labels of classes."""


class _Found(NamedTuple):
    """The numbers, precision of shape (10, 101, n) of n classes, and the largest difference of two engines.

    Of classes in several groups, precision is the mean of each class, shape (1, 1, n).
    """

    statistics: Floats
    labels: list[int]
    precision: Floats
    difference: float | None = None


def _run(
    engine: Engine,
    truth: GroundTruth,
    detections: Detections,
    summary: Summary | None = None,
    *,
    at_once: int | None = _CLASSES_AT_ONCE,
    zero: int = -1,
) -> _Found:
    """Return COCO's numbers, or those of a summary, -1 where undefined, of the classes that objects or detections have.

    Engines hold 4,040 numbers for each class that they are given, several times over, so they get `at_once` classes at
    a time. A summary needs all at once.
    """
    used = classes_in_use(truth, detections)
    # Two at least, where there are two: NumPy adds the numbers of a single column in another order.
    used = np.union1d(used, np.arange(min(2, len(truth.classes)))) if len(used) < 2 else used
    n_groups = 1 if summary or at_once is None else max(1, -(-len(used) // at_once))
    require_memory(
        -(-len(used) // n_groups) * _BYTES_OF_A_CLASS[engine],
        f"COCO's numbers of {len(used):,} classes with objects or detections",
        hint="--classes FILE names the classes to score" + ("" if engine == "pycocotools" else _LEAN),
    )
    if len(used) < len(truth.classes):
        truth, detections = of_classes(truth, detections, used)
    labels = used.tolist()
    numbers_of = partial(_grouped_numbers, n_groups=n_groups) if n_groups > 1 else _engine_numbers
    first = "pycocotools" if engine == "both" else engine
    statistics, precision, _ = numbers_of(first, truth, detections, labels, summary, zero=zero)
    difference = None
    if engine == "both":
        other, others, _ = numbers_of("hotcoco", truth, detections, labels, summary)
        means = (precision.mean(axis=(0, 1)), others.mean(axis=(0, 1)))
        numbers = map(str, range(len(statistics))) if summary else STATISTICS
        names = [*numbers, *(f"AP of {name}" for name in truth.classes)]
        difference = _largest_difference(names, (statistics, means[0]), (other, means[1]))
    return _Found(statistics, labels, precision, difference)


def _grouped_numbers(
    engine: str,
    truth: GroundTruth,
    detections: Detections,
    labels: list[int],
    _: Summary | None,
    *,
    n_groups: int,
    zero: int = -1,
) -> tuple[Floats, Floats, Int64s]:
    """Return the numbers of classes that an engine gets in groups, and the mean precision of each class."""
    statistics, counts, precision = [], [], []
    for group in np.array_split(np.arange(len(truth.classes)), n_groups):
        objects = np.flatnonzero((truth.label >= group[0]) & (truth.label <= group[-1]))
        of_group = _of_group(truth, detections, group, objects)
        zero_of_group = next(iter(np.flatnonzero(objects == zero).tolist()), -1)
        found, every, n = _engine_numbers(engine, *of_group, labels, zero=zero_of_group)
        statistics.append(found)
        counts.append(n)
        precision.append(every.mean(axis=(0, 1), keepdims=True))
    n = np.array(counts)
    total = n.sum(axis=0)
    sums = np.array([fsum(column) for column in (np.array(statistics) * n).T])
    return np.where(total, sums / np.maximum(total, 1), -1.0), np.concatenate(precision, axis=2), total


def _of_group(
    truth: GroundTruth, detections: Detections, group: Int64s, objects: Int64s
) -> tuple[GroundTruth, Detections]:
    """Return the objects and detections of some classes, on the images that have any of these."""
    first, last = int(group[0]), int(group[-1])
    detections = detections.take((detections.label >= first) & (detections.label <= last))
    images = distinct(np.concatenate([truth.image[objects], detections.image]))
    columns: dict[str, Any] = {name: getattr(truth, name)[objects] for name in ("boxes", "crowd", "difficult", "areas")}
    return replace(
        truth,
        image_numbers=truth.image_numbers[images],
        classes=truth.classes[first : last + 1],
        class_numbers=truth.class_numbers[first : last + 1],
        image=np.searchsorted(images, truth.image[objects]).astype(np.int32),
        label=truth.label[objects] - np.int32(first),
        **columns,
        original=None,
        federated=None,
    ), replace(
        detections,
        image=np.searchsorted(images, detections.image).astype(np.int32),
        label=detections.label - np.int32(first),
    )


def _engine_numbers(
    engine: str,
    truth: GroundTruth,
    detections: Detections,
    labels: list[int],
    summary: Summary | None = None,
    *,
    zero: int = -1,
) -> tuple[Floats, Floats, Int64s]:
    """Return the numbers, the precision at each IoU, recall and class, -1 where undefined, and what each mean is of."""
    with contextlib.redirect_stdout(io.StringIO()):
        is_hotcoco = engine == "hotcoco"
        evaluation = _in_hotcoco(truth, detections) if is_hotcoco else _in_pycocotools(truth, detections, zero)
        parameters = evaluation.params
        if summary:
            parameters.maxDets = [max(1, len(detections))]
        evaluation.evaluate()
        if not summary:
            # The summary needs six of twelve pairs of area range and limit: all would take twice the memory. An engine
            # finds what it matched by the position of the area range, so ranges are cut from the end alone.
            areas, limits = parameters.areaRng, parameters.maxDets
            parameters.areaRng, parameters.maxDets = areas[:1], limits[:-1]
            evaluation.accumulate()
            below = np.moveaxis(_curves(evaluation)[1], -1, 0)
            parameters.areaRng, parameters.maxDets = areas, limits[-1:]
        evaluation.accumulate()
    # precision: IoU threshold, recall, class, area range (0: all); recall the same without recall.
    precision, recall = (values[..., -1] for values in _curves(evaluation))
    if summary:
        return summary((precision, recall), labels), precision[..., 0], np.zeros(0, np.int64)
    every, *of_sizes = np.moveaxis(precision, -1, 0)
    numbers = (every, every[0], every[5], *of_sizes, *below, *np.moveaxis(recall, -1, 0))
    n = np.array([np.count_nonzero(values > -1) for values in numbers])
    return np.array([*map(mean_of_defined, numbers)]), every, n


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the values above -1, summed as pycocotools sums them; -1 if there are none."""
    defined = values[values > -1]
    return float(defined.mean()) if len(defined) else -1.0


def _curves(evaluation: Any) -> tuple[Floats, Floats]:
    return np.asarray(evaluation.eval["precision"]), np.asarray(evaluation.eval["recall"])


def _in_hotcoco(truth: GroundTruth, detections: Detections) -> Any:
    """Return an evaluator of columns, of which no record is made."""
    import hotcoco

    kept = np.flatnonzero(truth.label >= 0)
    annotated = hotcoco.COCO.from_arrays(
        [{"id": number} for number in range(1, truth.n_images + 1)],
        [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        truth.image[kept].astype(np.int64) + 1,
        truth.label[kept].astype(np.int64) + 1,
        truth.boxes[kept],
        area=_sizes(truth, kept),
        iscrowd=truth.crowd[kept],
    )
    rows = np.column_stack([detections.image + 1, detections.boxes, detections.scores, detections.label + 1])
    return hotcoco.COCOeval(annotated, annotated.load_res(rows), "bbox")


def _in_pycocotools(truth: GroundTruth, detections: Detections, zero: int = -1) -> Any:
    from pycocotools.cocoeval import COCOeval

    kept = np.flatnonzero(truth.label >= 0)
    annotated = _loaded(
        truth,
        image_id=truth.image[kept] + 1,
        category_id=truth.label[kept] + 1,
        bbox=truth.boxes[kept],
        area=_sizes(truth, kept),
        iscrowd=truth.crowd[kept].astype(int),
    )
    for row in np.flatnonzero(kept == zero).tolist():
        annotated.dataset["annotations"][row]["id"] = 0
    detected = _loaded(
        truth,
        image_id=detections.image + 1,
        category_id=detections.label + 1,
        bbox=detections.boxes,
        area=detections.boxes[:, 2] * detections.boxes[:, 3],
        score=detections.scores,
        iscrowd=np.zeros(len(detections), int),
    )
    return COCOeval(annotated, detected, "bbox")


def _loaded(truth: GroundTruth, **columns: Any) -> Any:
    """Return a `COCO` object that answers only for all images and classes together: no index of records is needed."""
    from pycocotools.coco import COCO

    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    # Ids start at 1: pycocotools takes a match with annotation 0 for no match.
    annotations = [{"id": number, **dict(zip(columns, row, strict=True))} for number, row in enumerate(rows, 1)]
    dataset = COCO()
    dataset.dataset = {
        "images": [{"id": number} for number in range(1, truth.n_images + 1)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        "annotations": annotations,
    }
    dataset.imgs = {image["id"]: image for image in dataset.dataset["images"]}
    dataset.getAnnIds = lambda **_: range(len(annotations))
    dataset.loadAnns = lambda ids: annotations
    return dataset


def _sizes(truth: GroundTruth, kept: Int64s) -> Floats:
    """Return the area of some objects: as stated, else that of their box."""
    areas = truth.areas[kept]
    return np.where(np.isfinite(areas), areas, truth.boxes[kept, 2] * truth.boxes[kept, 3])


def _largest_difference(names: Sequence[str], first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> float:
    reference, other = np.concatenate(first), np.concatenate(second)
    difference = np.abs(reference - other)
    worst = int(np.argmax(difference))
    if not difference[worst] <= _TOLERANCE:
        raise EngineDisagreementError(
            "pycocotools and hotcoco disagree",
            where=names[worst],
            expected=f"the same number to {_TOLERANCE:g}",
            found=f"pycocotools {reference[worst]!r}, hotcoco {other[worst]!r}",
            hint="report this with your files; --engine pycocotools gives the reference numbers",
        )
    return float(difference[worst])


def _defined(value: float) -> float | None:
    return None if value < 0 else float(value)


def _reasons(result: dict[str, Any], per_class: dict[str, float | None]) -> dict[str, str]:
    reasons = {}
    for name in STATISTICS:
        if result[name] is None:
            size = _AREA_WORDS.get(name[-1])
            reasons[name] = f"no object {size}, crowd aside" if size else "no object of a known class, crowd aside"
    reasons |= {name: "no object of this class, crowd aside" for name, ap in per_class.items() if ap is None}
    return reasons
