"""The three readings of an OWOD evaluation, and what becomes of each detection under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from curation.errors import UsageError
from curation.evaluation.columns import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.input_order import InputOrder, contested_objects, decided_by_order, kinds
from curation.evaluation.matching import (
    OverlappingPairs,
    match,
    overlapping_pairs,
    pair_intersection,
    rows_by_class,
)
from curation.evaluation.open_set import round_as_text
from curation.evaluation.task_truth import TaskTruth

IOU = 0.5


@dataclass(frozen=True, slots=True)
class Profile:
    """One reading of the metrics.

    Attributes
    ----------
    name, meaning : str
    as_text : bool
        Boxes and scores as the official text files and XML hold them; crowd regions are ordinary objects (the XML has
        no flag); an overlap counts when IoU > 0.5; a detection is compared with its best object, free or not. Else
        continuous boxes, crowd and difficult regions ignored, IoU >= 0.5, and the best object that is still free.
    eleven_points : bool
        Whether AP is the 11-point mean of VOC2007 instead of the area under the precision envelope, its recalls in
        floating point as in the authors' code (`curation.evaluation.average_precision.eleven_point_in_floats`).
    zero_for_nothing : bool
        Whether a precision or WI of no detections is 0, as in the official code, instead of undefined.
    """

    name: str
    meaning: str
    as_text: bool
    eleven_points: bool
    zero_for_nothing: bool


_OFFICIAL = (
    "voc_eval: scores to 3 and corners to 1 decimal, whole ground-truth corners, IoU > 0.5 with the "
    "object of highest IoU of the class, crowd regions ordinary, difficult ones ignored"
)
PROFILES: dict[str, Profile] = {
    "clean": Profile(
        "clean",
        "continuous boxes, IoU >= 0.5 with the best object that is still free, crowd and difficult regions ignored, "
        "area AP, undefined is null",
        as_text=False,
        eleven_points=False,
        zero_for_nothing=False,
    ),
    "ore": Profile(
        "ore",
        f"the code of ORE and RE-OWOD, {_OFFICIAL}, area AP",
        as_text=True,
        eleven_points=False,
        zero_for_nothing=True,
    ),
    "owdetr": Profile(
        "owdetr",
        f"the code of OW-DETR and PROB, {_OFFICIAL}, 11-point AP at the recalls numpy.arange(0, 1.1, 0.1) in floating "
        "point: 0.3, 0.6 and 0.7 are a hair higher there",
        as_text=True,
        eleven_points=True,
        zero_for_nothing=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of each detection, and which unknown objects detections of known classes lie on.

    Attributes
    ----------
    label : ndarray of int32, shape (d,)
        The last class is unknown.
    scores : ndarray of float64, shape (d,)
        As the profile ranks by them.
    outcome : ndarray of int8, shape (d,)
        1 true positive, 0 false positive, -1 ignored.
    n_positive : ndarray of int64, shape (K + 1,)
        Objects of each class that count, once for each line of the image list.
    target : ndarray of bool, shape (m,)
        Unknown objects that count.
    taken : ndarray of int32, shape (d,)
        The object that each true positive found; of no meaning elsewhere.
    pairs : OverlappingPairs
        Detections of known classes with unknown objects that their IoU reaches.
    order : InputOrder
        What the order of the detections decided.
    """

    label: Int32s
    scores: Floats
    outcome: npt.NDArray[np.int8]
    n_positive: Int64s
    target: Bools
    taken: Int32s
    pairs: OverlappingPairs
    order: InputOrder

    def ranked(self) -> Iterator[tuple[int, Int64s]]:
        """Yield each class with its detections by falling score, ties in input order."""
        order = np.argsort(-self.scores, kind="stable")
        # Numbers of 16 bits are sorted digit by digit, the others by comparison.
        kind = np.int16 if len(self.n_positive) < 1 << 15 else np.int32
        for number, places in rows_by_class(self.label[order].astype(kind), len(self.n_positive)):
            yield number, order[places]


def profile_of(name: str) -> Profile:
    """Return the profile of a name; another is a `UsageError` that lists them."""
    if name not in PROFILES:
        raise UsageError("Unknown profile", expected=", ".join((*PROFILES, "all")), found=repr(name)[:80])
    return PROFILES[name]


def outcomes(truth: TaskTruth, detections: Detections, profile: Profile) -> Outcomes:
    """Return what becomes of each detection under a profile (specs of OWOD's ``voc_eval``; `Profile`)."""
    objects = truth.truth
    if profile.as_text:
        objects, detections = _as_text(truth, detections)
        matches = match(objects, detections, iou_threshold=IOU, strict=True)
        outcome, taken = matches.outcome, matches.truth
    else:
        matches = None
        outcome, taken = match_free(objects, detections)
    positive = ~objects.crowd & ~objects.difficult
    unknown = objects.label == truth.unknown
    known_rows = np.flatnonzero(detections.label < truth.unknown)
    pairs = overlapping_pairs(
        objects,
        detections.take(known_rows),
        same_class=False,
        # The official A-OSE and WI count an overlap with a difficult unknown object too.
        mask=unknown if profile.as_text else unknown & positive,
        iou_threshold=IOU,
        strict=profile.as_text,
    )
    hit = np.zeros(len(detections), bool)
    hit[known_rows[pairs.row]] = True
    order = decided_by_order(
        detections,
        kinds(outcome, hit),
        claim=None if matches is None else np.where(hit, -1, matches.claim),
        contested=contested_objects(objects, detections, positive) if matches is None else None,
        read_at_first=True,
    )
    counted = np.bincount(
        objects.label[positive],
        weights=truth.lines[objects.image[positive]],
        minlength=len(objects.classes),
    )
    return Outcomes(
        label=detections.label,
        scores=detections.scores,
        outcome=outcome,
        n_positive=counted.astype(np.int64),
        target=unknown & positive,
        taken=taken,
        pairs=replace(pairs, row=known_rows[pairs.row]),
        order=order,
    )


def match_free(truth: GroundTruth, detections: Detections) -> tuple[npt.NDArray[np.int8], Int32s]:
    """Return the outcome of each detection, and the object it found or -1, when the best *free* object is taken.

    Within each class, by falling score with ties in input order, a detection takes the object of highest IoU >= 0.5
    that none has taken yet. One that is left over is ignored where its intersection with a crowd or difficult object of
    its class is at least half of its own area (IoU >= 0.5 implies that); else it is a false positive.
    """
    ignored = truth.crowd | truth.difficult
    pairs = overlapping_pairs(
        truth, detections, same_class=True, mask=~ignored, iou_threshold=IOU, strict=False
    )
    taken = _first_come(pairs, detections.scores, len(truth.label))
    outcome = np.zeros(len(detections), np.int8)
    outcome[_covering(truth, detections, ignored)] = -1
    outcome[taken >= 0] = 1
    return outcome, taken


def _first_come(pairs: OverlappingPairs, scores: Floats, n_objects: int) -> Int32s:
    """Return the object of each detection when they choose one after the other, by falling score.

    All choose at once and the highest-ranked suitor of an object keeps it, until none is turned away: objects agree on
    who comes first, so that this ends where choosing one by one does (the only stable matching).
    """
    order = np.lexsort((pairs.position, -pairs.iou, pairs.row))
    wish = pairs.position[order]
    suitors, first, count = np.unique(pairs.row[order], return_index=True, return_counts=True)
    last = first + count
    current, keeper = first.copy(), np.full(n_objects, len(suitors), np.int64)
    # Suitors in rank order, so that the lowest position in this order is the highest-ranked.
    by_rank = np.argsort(-scores[suitors], kind="stable")
    current, last, suitors = current[by_rank], last[by_rank], suitors[by_rank]
    active = np.arange(len(suitors))
    while len(active):
        wanted = wish[current[active]]
        before = keeper[wanted]
        np.minimum.at(keeper, wanted, active)
        turned_away = np.concatenate([active, before[before < len(suitors)]])
        turned_away = np.unique(turned_away[keeper[wish[current[turned_away]]] != turned_away])
        current[turned_away] += 1
        active = turned_away[current[turned_away] < last[turned_away]]
    taken = np.full(len(scores), -1, np.int32)
    held = np.flatnonzero(keeper < len(suitors))
    taken[suitors[keeper[held]]] = held
    return taken


def _covering(truth: GroundTruth, detections: Detections, ignored: Bools) -> Int64s:
    """Return the detections half of whose area or more lies in an ignored object of their class."""
    pairs = overlapping_pairs(truth, detections, same_class=True, mask=ignored, iou_threshold=0, strict=True)
    boxes = detections.boxes[pairs.row]
    common = pair_intersection(boxes, truth.boxes[pairs.position])
    covering: Int64s = pairs.row[common >= 0.5 * boxes[:, 2] * boxes[:, 3]]
    return covering


def _as_text(truth: TaskTruth, detections: Detections) -> tuple[GroundTruth, Detections]:
    """Return both as the official evaluator reads them, in tenths of a pixel: whole numbers, so that IoU is exact.

    Ground truth: ``int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)``, inclusive; as `int` truncates. Boxes that
    were such corners in the annotation file stay as they are.
    """
    objects = truth.truth
    x, y, w, h = objects.boxes.T
    further = np.where(truth.voc_corners[objects.image], 0, 1)
    left, top = np.trunc(x + 1) - 1, np.trunc(y + 1) - 1
    right, bottom = np.trunc(x + w + further), np.trunc(y + h + further)
    corners = np.stack([left, top, right - left, bottom - top], axis=1)
    text = round_as_text(detections)
    return (
        replace(objects, boxes=corners * 10, crowd=np.zeros_like(objects.crowd)),
        replace(text, boxes=np.rint(text.boxes * 10)),
    )
