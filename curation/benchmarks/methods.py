"""Reference methods of the papers, as functions of predictions: unknown boxes, score merging, losses, OOD scores.

A detector's boxes have a score for every known class (`ScoreVectors`); a method gives each box one label
(`LabelledBoxes`): the naive baseline, the expelling classifier, confirmation of proposals. Boxes are suppressed within
a label and across known and unknown, and dropout passes are merged into one set. Losses need torch.

Examples
--------
>>> import curation, numpy
>>> curation.methods.max_softmax(numpy.log([[0.7, 0.2, 0.1]])).round(3).tolist()
[0.7]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from curation.benchmarks.imagenet_losses import background_loss as background_loss
from curation.benchmarks.imagenet_losses import background_weights as background_weights
from curation.benchmarks.imagenet_losses import entropic_openset_loss as entropic_openset_loss
from curation.benchmarks.imagenet_losses import softmax_loss as softmax_loss
from curation.benchmarks.score_vectors import LabelledBoxes as LabelledBoxes
from curation.benchmarks.score_vectors import ScoreVectors as ScoreVectors
from curation.benchmarks.score_vectors import image_positions as image_positions
from curation.benchmarks.score_vectors import read_labelled as read_labelled
from curation.benchmarks.score_vectors import read_score_vectors as read_score_vectors
from curation.benchmarks.score_vectors import write_results as write_results
from curation.core.errors import PredictionError, UsageError
from curation.evaluation.matching import best_overlap, overlapping_pairs, pair_iou
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int64s
from curation.evaluation.readers import locate
from curation.evaluation.separability import energy as energy
from curation.evaluation.separability import generalized_entropy as generalized_entropy
from curation.evaluation.separability import max_softmax as max_softmax

CrossVariant = Literal["pairwise", "greedy"]
CROSS_VARIANTS: dict[str, str] = {
    "pairwise": "of every overlapping pair of a known and an unknown box the one with the lower score is removed, all "
    "at once: a removed box still removes others; of equal scores the unknown box is removed (the paper's code)",
    "greedy": "by falling score, known boxes first among equal scores; only a remaining box removes others",
}


def keep_within_labels(groups: Int64s, boxes: Floats, scores: Floats, iou: float) -> Bools:
    """Return a mask of the boxes that survive greedy suppression within their group, shape (n,).

    By falling score, ties in input order, a kept box removes later ones of its group with IoU > `iou`.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        Number of the pair of image and label of each box.

    Examples
    --------
    >>> import curation, numpy
    >>> boxes, scores = numpy.array([[0, 0, 9, 9], [0, 0, 9, 8], [0, 0, 9, 7.0]]), numpy.array([0.9, 0.8, 0.7])
    >>> curation.methods.keep_within_labels(numpy.array([0, 0, 1]), boxes, scores, iou=0.5).tolist()
    [True, False, True]
    """
    survives = np.ones(len(groups), np.bool_)
    for rows in _in_groups(groups):
        order = rows[np.argsort(-scores[rows], kind="stable")]
        for rank, row in enumerate(order.tolist()):
            rest = order[rank + 1 :]
            if survives[row] and len(rest):
                survives[rest[_overlap(boxes, row, rest) > iou]] = False
    return survives


def keep_across_kinds(
    image: Int64s, boxes: Floats, scores: Floats, is_unknown: Bools, iou: float, variant: CrossVariant = "pairwise"
) -> Bools:
    """Return a mask of the boxes that survive suppression between known and unknown boxes of an image, shape (n,).

    *Rectifying Open-Set Object Detection*, section 4.4 and Fig. 5; the variants are those of `CROSS_VARIANTS`. Two
    known boxes, or two unknown ones, are never compared. An IoU threshold of 1 removes nothing.

    Raises
    ------
    UsageError
        The threshold is outside [0, 1], or the variant does not exist.

    Examples
    --------
    >>> import curation, numpy
    >>> boxes, scores = numpy.array([[0, 0, 9, 9], [0, 0, 9, 8], [0, 0, 9, 7.0]]), numpy.array([0.9, 0.8, 0.7])
    >>> image, is_unknown = numpy.zeros(3, int), numpy.array([False, False, True])
    >>> curation.methods.keep_across_kinds(image, boxes, scores, is_unknown, iou=0.5).tolist()
    [True, True, False]
    """
    if not 0 <= iou <= 1 or variant not in CROSS_VARIANTS:
        raise UsageError(
            "Invalid arguments of the suppression",
            expected=f"an IoU from 0 to 1, a variant of {', '.join(CROSS_VARIANTS)}",
            found=f"{iou!r}, {variant!r}"[:80],
        )
    survives = np.ones(len(image), np.bool_)
    for rows in _in_groups(image):
        # Falling score, then known before unknown, then input order.
        order = rows[np.lexsort((rows, is_unknown[rows], -scores[rows]))]
        for rank, row in enumerate(order.tolist()):
            rest = order[rank + 1 :]
            rest = rest[is_unknown[rest] != is_unknown[row]]
            if not len(rest) or (variant == "greedy" and not survives[row]):
                continue
            survives[rest[_overlap(boxes, row, rest) > iou]] = False
    return survives


def _overlap(boxes: Floats, row: int, others: Int64s) -> Floats:
    """Return the IoU of a box with others, at most 1: for equal boxes, rounding exceeds it by some 1e-11."""
    first = np.broadcast_to(boxes[row], (len(others), 4))
    overlap: Floats = np.minimum(pair_iou(first, boxes[others]), 1.0)
    return overlap


def _in_groups(groups: Int64s) -> list[Int64s]:
    """Return the rows of each group, in input order."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []


@dataclass(frozen=True, slots=True)
class Merged:
    """Regions of interest with the mean over their passes.

    Attributes
    ----------
    vectors : ScoreVectors
        Mean boxes and scores of each region, by image and region.
    passes : ndarray of int64, shape (r,)
        Number of passes in which each region is present.
    entropy : ndarray of float64, shape (r,)
        Entropy of the mean score vector scaled to sum 1, in nats: the usual uncertainty; NaN if it sums to 0.
    """

    vectors: ScoreVectors
    passes: Int64s
    entropy: Floats


def merge_passes(passes: Sequence[ScoreVectors]) -> Merged:
    """Return the mean boxes and scores of every region over the passes that contain it.

    *The Overlooked Elephant of Object Detection*, section 3.2, after Miller et al. (2018): every box carries the
    index of its region of interest. A region missing from some passes is averaged over the others and counted.

    Raises
    ------
    PredictionError
        A pass has no regions, repeats a region of an image, or differs in the number of classes.
    UsageError
        No pass is given.

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, passes = pathlib.Path(folder) / "pass.json", []
    ...     for scores in ([0.8, 0.2], [0.6, 0.4]):
    ...         _ = path.write_text(json.dumps([{"image_id": 1, "region": 0, "bbox": [0, 0, 9, 9], "scores": scores}]))
    ...         passes.append(curation.methods.read_score_vectors(path))
    >>> merged = curation.methods.merge_passes(passes)
    >>> merged.passes.tolist(), merged.vectors.scores.round(6).tolist()
    ([2], [[0.7, 0.3]])
    """
    if not passes:
        raise UsageError("No passes to merge", expected="at least one file")
    for run in passes:
        _check_pass(run, passes[0])
    keys = [
        (image, region) for run in passes for image, region in zip(run.image_ids, _regions(run).tolist(), strict=True)
    ]
    # By image and region, numbers before texts: suppression keeps the first of equal scores in any order of passes.
    ordered = sorted(set(keys), key=lambda key: (isinstance(key[0], str), key))
    number = {key: position for position, key in enumerate(ordered)}
    group = np.array([number[key] for key in keys], np.int64)
    counts = np.bincount(group, minlength=len(number)).astype(np.int64)
    boxes = _mean(np.concatenate([run.boxes for run in passes]), group, counts)
    scores = _mean(np.concatenate([run.scores for run in passes]), group, counts)
    ids = tuple(image for image, _ in number)
    merged = replace(
        passes[0],
        image_ids=ids,
        image=image_positions(ids),
        boxes=boxes,
        scores=scores,
        background=None,
        objectness=None,
        region=np.array([region for _, region in number], np.int64),
    )
    return Merged(merged, counts, _entropy(scores))


def merged_detections(merged: Merged, *, floor: float = 0.05, iou: float = 0.5) -> LabelledBoxes:
    """Return the labelled boxes of the mean scores: every class above `floor`, suppressed within each label.

    Raises
    ------
    UsageError
        The floor is not a number, or the IoU is outside [0, 1].

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, passes = pathlib.Path(folder) / "pass.json", []
    ...     for scores in ([0.8, 0.2], [0.6, 0.4]):
    ...         _ = path.write_text(json.dumps([{"image_id": 1, "region": 0, "bbox": [0, 0, 9, 9], "scores": scores}]))
    ...         passes.append(curation.methods.read_score_vectors(path))
    >>> merged = curation.methods.merge_passes(passes)
    >>> labelled = curation.methods.merged_detections(merged)
    >>> labelled.label.tolist(), labelled.scores.round(6).tolist()
    ([0, 1], [0.7, 0.3])
    """
    if not (np.isfinite(floor) and 0 <= iou <= 1):
        raise UsageError(
            "The merged boxes cannot be labelled",
            expected="a finite floor, an IoU from 0 to 1",
            found=f"floor {floor}, IoU {iou}",
        )
    row, label = np.nonzero(merged.vectors.scores > floor)
    scores = merged.vectors.scores[row, label]
    groups = merged.vectors.image[row] * max(merged.vectors.scores.shape[1], 1) + label
    survives = keep_within_labels(groups, merged.vectors.boxes[row], scores, iou)
    return LabelledBoxes(row[survives], label[survives], scores[survives])


def _check_pass(run: ScoreVectors, first: ScoreVectors) -> None:
    keys = list(zip(run.image_ids, _regions(run).tolist(), strict=True)) if run.region is not None else []
    wrong = ""
    if run.region is None and len(run):
        wrong = "no record has a region"
    elif run.scores.shape[1] != first.scores.shape[1] and len(run) and len(first):
        wrong = f"{run.scores.shape[1]} classes, and {first.scores.shape[1]} in the first"
    elif len(set(keys)) < len(keys):
        image, region = next(key for key in keys if keys.count(key) > 1)
        wrong = f"image {image} has region {region} twice"
    if wrong:
        raise PredictionError("Invalid pass of dropout", where=run.name, found=wrong)


def _regions(run: ScoreVectors) -> Int64s:
    return np.empty(0, np.int64) if run.region is None else run.region


def _mean(values: Floats, group: Int64s, counts: Int64s) -> Floats:
    columns = []
    for column in range(values.shape[1]):
        # Sorted before the sum, so that the order of the passes does not affect the last bits.
        order = np.lexsort((values[:, column], group))
        columns.append(np.bincount(group[order], values[order, column], minlength=len(counts)) / counts)
    return np.stack(columns, axis=1) if columns else np.empty((len(counts), 0))


def _entropy(scores: Floats) -> Floats:
    total = scores.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = scores / total
        terms = np.where(shares > 0, shares * np.log(shares), 0.0)
    entropy: Floats = np.where(total[:, 0] > 0, -terms.sum(axis=1), np.nan)
    return entropy


THETA, TOP = 0.7, 50


def confirm(
    image: Int64s,
    boxes: Floats,
    objectness: Floats,
    auxiliary_image: Int64s,
    auxiliary_boxes: Floats,
    auxiliary_scores: Floats | None = None,
    *,
    theta: float = THETA,
    top: int = TOP,
) -> Int64s:
    """Return the proposals that an auxiliary box confirms, in input order.

    *Revisiting Open World Object Detection*, section 4.1, equation 4: ``S_i [max_j IoU(P_i, Q_j) > theta]``; proposals
    whose score becomes 0 are dropped. Of each image the `top` proposals by objectness and the `top` auxiliary boxes
    (by score, or the first ones) take part; equal auxiliary boxes count as one.

    Parameters
    ----------
    image, auxiliary_image : ndarray of int64, shapes (n,), (m,)
        Common numbers of the images: `image_positions` of the ids of both together.
    boxes, auxiliary_boxes : ndarray of float64, shapes (n, 4), (m, 4)
        ``x, y, w, h`` in pixels.

    Raises
    ------
    UsageError
        Theta is outside [0, 1], or `top` is below 1.

    Examples
    --------
    >>> import curation, numpy
    >>> image, boxes = numpy.zeros(2, int), numpy.array([[0, 0, 9, 9], [30, 0, 9, 9]])
    >>> curation.methods.confirm(image, boxes, numpy.array([0.9, 0.8]), image[:1], boxes[1:]).tolist()
    [1]
    """
    if not 0 <= theta <= 1 or top < 1:
        raise UsageError(
            "Invalid arguments of the confirmation",
            expected="an IoU from 0 to 1, top of at least 1",
            found=f"{theta}, {top}",
        )
    chosen = best_of_each(image, objectness, top)
    ranks = -np.arange(len(auxiliary_image), dtype=np.float64) if auxiliary_scores is None else auxiliary_scores
    first = _first_of_equal(auxiliary_image, auxiliary_boxes, ranks)
    others = first[best_of_each(auxiliary_image[first], ranks[first], top)]
    truth = _as_truth(auxiliary_image[others], auxiliary_boxes[others])
    proposals = Detections(
        image[chosen].astype(np.int32), np.zeros(len(chosen), np.int32), boxes[chosen], objectness[chosen]
    )
    _, iou = best_overlap(truth, proposals, same_class=False)
    confirmed: Int64s = chosen[(iou > theta) & (objectness[chosen] != 0)]
    return confirmed


def best_of_each(image: Int64s, scores: Floats, most: int) -> Int64s:
    """Return the rows with the highest scores of each image (ties by input order), in input order.

    Examples
    --------
    >>> import curation, numpy
    >>> curation.methods.best_of_each(numpy.array([0, 1, 0]), numpy.array([0.2, 0.1, 0.9]), most=1).tolist()
    [1, 2]
    """
    rows = np.arange(len(image))
    order = np.lexsort((rows, -scores, image))
    starts = np.flatnonzero(np.r_[True, np.diff(image[order]) != 0]) if len(order) else np.empty(0, np.int64)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(order[rank < most])


def _first_of_equal(image: Int64s, boxes: Floats, ranks: Floats) -> Int64s:
    """Return the rows that do not repeat a higher-ranked box of their image, in input order."""
    order = np.lexsort((np.arange(len(image)), -ranks))
    keys = np.column_stack([image, boxes])[order]
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.sort(order[first])


def _as_truth(image: Int64s, boxes: Floats) -> GroundTruth:
    order = np.argsort(image, kind="stable")
    off = np.zeros(len(image), np.bool_)
    return GroundTruth(
        image_numbers=np.arange(int(image.max(initial=-1)) + 1),
        classes=("object",),
        class_numbers=(1,),
        image=image[order].astype(np.int32),
        label=np.zeros(len(image), np.int32),
        boxes=boxes[order],
        crowd=off,
        difficult=off,
        areas=boxes[order, 2] * boxes[order, 3],
    )


@dataclass(frozen=True, slots=True)
class NaiveOptions:
    """Parameters of the baseline, defaults as in the paper's code.

    Attributes
    ----------
    gamma : float
        A box is unknown if its best score is less than gamma times the second best (Open Images: FCOS 4, Faster
        R-CNN 15; CUB and MTSD: 1.5 and 3).
    floor : float
        Score above which a class is a candidate.
    iou : float
        Overlap above which suppression within a label removes a box.
    top : int
        Maximum number of boxes in an image.
    compare_background : bool
        Whether to compare the score of the background too.
    """

    gamma: float
    floor: float = 0.05
    iou: float = 0.5
    top: int = 100
    compare_background: bool = False


def naive_unknown(vectors: ScoreVectors, options: NaiveOptions) -> LabelledBoxes:
    """Return labelled known and unknown boxes (*Rectifying Open-Set Object Detection*, section 4.2).

    1. Every class with a score above `floor` makes its box a candidate. 2. If ``t1 / t2 < gamma`` (best over second
    best; without a second the ratio is infinite), each candidate of the box becomes unknown, with the sum of the three
    best scores, which may exceed 1. 3. Suppression within each label, including unknown. 4. The best boxes of an image.

    Raises
    ------
    UsageError
        Gamma or another number is out of range.
    PredictionError
        There are fewer than three classes, a score is negative, or a requested background is absent.

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> rows = [{"image_id": 1, "bbox": [0, 0, 9, 9], "scores": [0.5, 0.3, 0.1]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "scores.json"
    ...     _ = path.write_text(json.dumps(rows))
    ...     vectors = curation.methods.read_score_vectors(path)
    >>> labelled = curation.methods.naive_unknown(vectors, curation.methods.NaiveOptions(gamma=4))
    >>> labelled.label.tolist(), labelled.scores.round(6).tolist()
    ([3], [0.9])
    """
    best, total = _best_three(vectors, options)
    row, label = np.nonzero(vectors.scores > options.floor)
    scores = vectors.scores[row, label]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(best[:, 1] > 0, best[:, 0] / best[:, 1], np.inf)
    doubtful = ratio[row] < options.gamma
    label = np.where(doubtful, vectors.scores.shape[1], label)
    scores = np.where(doubtful, total[row], scores)
    groups = vectors.image[row] * (vectors.scores.shape[1] + 1) + label
    survivors = np.flatnonzero(keep_within_labels(groups, vectors.boxes[row], scores, options.iou))
    survivors = survivors[best_of_each(vectors.image[row[survivors]], scores[survivors], options.top)]
    return LabelledBoxes(row[survivors], label[survivors], scores[survivors])


def _best_three(vectors: ScoreVectors, options: NaiveOptions) -> tuple[Floats, Floats]:
    """Return the three best scores of each box in falling order, shape (n, 3), and their sum."""
    if not (options.gamma >= 0 and 0 <= options.iou <= 1 and options.top > 0 and np.isfinite(options.floor)):
        raise UsageError(
            "Invalid parameters of the baseline",
            expected="gamma of 0 or more, an IoU from 0 to 1, at least one box per image",
            found=f"gamma {options.gamma}, IoU {options.iou}, top {options.top}, floor {options.floor}",
        )
    scores = vectors.scores
    lacking = {
        "at least 3 classes": bool(len(vectors)) and scores.shape[1] < 3,
        "scores that are not negative, such as probabilities: apply softmax or sigmoid first": (scores < 0).any(),
        "background_score in every record": options.compare_background and vectors.background is None,
    }
    if any(lacking.values()):
        expected = "; ".join(text for text, lacks in lacking.items() if lacks)
        raise PredictionError("The baseline cannot compare these scores", where=vectors.name, expected=expected)
    if options.compare_background and vectors.background is not None:
        scores = np.concatenate([scores, vectors.background[:, None]], axis=1)
    best = -np.sort(-scores, axis=1)[:, :3] if len(vectors) else np.empty((0, 3))
    return best, best.sum(axis=1)


UnknownScore = Literal["one", "max_score"]
UNKNOWN_SCORES: dict[str, str] = {
    "one": "an unknown box has the score 1 (the paper)",
    "max_score": "an unknown box has its highest expelled score: unknown boxes can be ranked",
}
PHI, ALPHA = 0.9, 0.5


@dataclass(frozen=True, slots=True)
class ClassThresholds:
    """The mean score of each known class on its training objects.

    Attributes
    ----------
    means : ndarray of float64, shape (K,)
        Mean score of the class over its pairs; 0 for a class without pairs, which never expels.
    pairs : ndarray of int64, shape (K,)
        Number of predicted boxes that overlap an object of the class with IoU > phi.
    uncalibrated : tuple of str
        Classes without a pair.
    """

    means: Floats
    pairs: Int64s
    uncalibrated: tuple[str, ...]


def calibrate(vectors: ScoreVectors, truth: GroundTruth, *, phi: float = PHI) -> ClassThresholds:
    """Return the mean score of each known class on its training objects (equation 6, section 4.2).

    *Revisiting Open World Object Detection*: over all pairs of a predicted box and an object of class c in the same
    image with IoU > phi, the mean of the score of c. (In the paper, the subscript of the score is that of the box to
    judge; only the training box makes sense.)

    Parameters
    ----------
    vectors : ScoreVectors
        Predictions on training images.
    truth : GroundTruth
        Training objects of the known classes, in the order of the scores.

    Raises
    ------
    PredictionError
        The calibration contains unknown objects (the principle Annotation Specificity forbids it) or has another
        number of classes, or the truth lacks the image of a box.
    UsageError
        Phi is outside [0, 1].

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> rows = [{"image_id": 1, "bbox": [0, 0, 9, 9], "scores": [0.5, 0.3, 0.1]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "scores.json"
    ...     _ = path.write_text(json.dumps(rows))
    ...     vectors = curation.methods.read_score_vectors(path)
    >>> from curation.evaluation.problem import KnownClasses
    >>> from curation.evaluation.truth import ground_truth
    >>> image = {"id": 1, "file_name": "1.jpg", "width": 60, "height": 60}
    >>> box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
    >>> classes = [{"id": number, "name": name} for number, name in enumerate(["owl", "elk", "fox"], 1)]
    >>> source = curation.open_source("mine", {"images": [image], "annotations": [box], "categories": classes})
    >>> truth = ground_truth(source, KnownClasses(("owl", "elk", "fox"), (1, 2, 3), "example")).truth
    >>> curation.methods.calibrate(vectors, truth).means.tolist()
    [0.5, 0.0, 0.0]
    """
    if not 0 <= phi <= 1:
        raise UsageError("Phi is out of range", expected="an IoU from 0 to 1", found=str(phi))
    unknown, k = int((truth.label < 0).sum()), vectors.scores.shape[1]
    if unknown or len(truth.classes) != k:
        raise PredictionError(
            "The calibration contains objects of unknown classes"
            if unknown
            else "Wrong number of classes to calibrate",
            where=vectors.name,
            expected="training annotations of the known classes alone: unknown ones must not influence thresholds"
            if unknown
            else f"{len(truth.classes)} scores per box",
            found=f"{unknown} such objects" if unknown else str(k),
        )
    image, is_known_image, *_ = locate(vectors.image_ids, truth, lambda row: f"{vectors.name}: record {row}")
    if not is_known_image.all():
        row = int(np.argmin(is_known_image))
        raise PredictionError(
            "The training truth lacks the image of a box",
            where=f"{vectors.name}: record {row}",
            found=str(vectors.image_ids[row])[:80],
        )
    boxes = Detections(image.astype(np.int32), np.zeros(len(vectors), np.int32), vectors.boxes, np.zeros(len(vectors)))
    near = overlapping_pairs(truth, boxes, same_class=False, iou_threshold=phi, strict=True, mask=~truth.crowd)
    label = truth.label[near.position]
    total = np.bincount(label, vectors.scores[near.row, label], minlength=len(truth.classes))
    pairs = np.bincount(label, minlength=len(truth.classes)).astype(np.int64)
    return ClassThresholds(
        np.divide(total, pairs, out=np.zeros(len(pairs)), where=pairs > 0),
        pairs,
        tuple(name for name, count in zip(truth.classes, pairs.tolist(), strict=True) if not count),
    )


def expel(
    vectors: ScoreVectors, thresholds: ClassThresholds, *, alpha: float = ALPHA, unknown: UnknownScore = "one"
) -> LabelledBoxes:
    """Return the label of each box: the best class that does not expel it, or unknown (equation 7, section 4.2).

    Class c expels a box where ``score - alpha * mean <= 0``.

    Raises
    ------
    UsageError
        Alpha is negative or infinite, or `unknown` is not a known option.

    Examples
    --------
    >>> import curation, json, numpy, pathlib, tempfile
    >>> rows = [{"image_id": 1, "bbox": [0, 0, 9, 9], "scores": [0.5, 0.3, 0.1]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "scores.json"
    ...     _ = path.write_text(json.dumps(rows))
    ...     vectors = curation.methods.read_score_vectors(path)
    >>> means = numpy.array([0.9, 0.8, 0.8])
    >>> thresholds = curation.methods.ClassThresholds(means, pairs=numpy.array([5, 5, 5]), uncalibrated=())
    >>> curation.methods.expel(vectors, thresholds, alpha=0.6).label.tolist()
    [3]
    """
    if not 0 <= alpha < np.inf or unknown not in UNKNOWN_SCORES:
        raise UsageError(
            "Invalid arguments of the expelling classifier",
            expected=f"a finite alpha of 0 or more, an unknown score of {', '.join(UNKNOWN_SCORES)}",
            found=f"{alpha}, {unknown}"[:80],
        )
    # A class that was never calibrated has threshold 0 and never expels, not even a score of 0.
    accepted = (vectors.scores - alpha * thresholds.means > 0) | (thresholds.pairs == 0)
    scores = np.where(accepted, vectors.scores, -np.inf)
    expelled = ~accepted.any(axis=1)
    n, k = vectors.scores.shape
    label = scores.argmax(axis=1)
    unknown_scores = vectors.scores.max(axis=1) if unknown == "max_score" else np.ones(n)
    values = np.where(expelled, unknown_scores, scores[np.arange(n), label])
    return LabelledBoxes(np.arange(n), np.where(expelled, k, label).astype(np.int64), values)
