"""Outcomes of all detections and objects in the matching of an evaluation, for inspection.

An evaluator passes its matching to `Outcomes.from_matches`, which does not match again. Sums over detections and
objects equal the numbers of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.core.wording import short_repr
from curation.evaluation.matching import OverlappingPairs, assign, best_overlap, overlapping_pairs, pair_iou, positives
from curation.evaluation.problem import UNKNOWN, Bools, Detections, Floats, GroundTruth, Int32s
from curation.evaluation.variants import IOU, Rules

if TYPE_CHECKING:
    import pandas as pd

TRUE_POSITIVE, OPEN_SET_ERROR, FALSE_POSITIVE, BACKGROUND, IGNORED = (
    "true positive",
    "open-set error",
    "false positive",
    "background",
    "ignored",
)
KINDS: dict[str, str] = {
    TRUE_POSITIVE: "it found an object of its class",
    OPEN_SET_ERROR: "a false positive of a known class that lies on an unknown object (FP_o of wilderness impact)",
    FALSE_POSITIVE: "it lies on an object of another class, or on one that another detection already matched",
    BACKGROUND: "a false positive that lies on no annotated object",
    IGNORED: "it counts neither way: its object is difficult or crowd",
}
"""Outcomes of a detection: each detection has exactly one."""

FOUND, CALLED_KNOWN, MISSED, UNCOUNTED = "found", "called known", "missed", "ignored"
STATES: dict[str, str] = {
    FOUND: "a true positive found it",
    CALLED_KNOWN: "an unknown object that no detection found, with a detection of a known class on it (FN_u*)",
    MISSED: "no detection found it",
    UNCOUNTED: "it does not count: difficult or crowd",
}
"""Outcomes of an object: each object has exactly one."""
NO_OBJECT = "no object"
"""State in the row of an image without objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Outcomes of the detections and objects of a part.

    Attributes
    ----------
    part : str
        ``""`` if there is only one.
    truth : GroundTruth
    detections : Detections
        The scored detections in input order, with unrounded boxes.
    unknown : ndarray of bool, shape (m,)
        Which objects are unknown.
    kind : ndarray of int8, shape (d,)
        Position in `KINDS`.
    matched : ndarray of int32, shape (d,)
        The object that decides the outcome of a detection: the object that it matches, the unknown object that it
        overlaps, else the object of highest IoU if the IoU suffices or the detection is ignored; -1 for none.
    iou : ndarray of float64, shape (d,)
        IoU with that object, else the highest with any object; boxes are rounded if the variant rounds them.
    on_unknown : ndarray of bool, shape (d,)
        Detections of known classes that lie on an unknown object, whatever their outcome; A-OSE counts them.
    state : ndarray of int8, shape (m,)
        Position in `STATES`.
    kept_at : mapping of str to ndarray of bool, shape (d,)
        Which detections score at or above the threshold of an operating point, by its recall.
    """

    __repr__ = short_repr

    part: str
    truth: GroundTruth
    detections: Detections
    unknown: Bools
    kind: npt.NDArray[np.int8]
    matched: Int32s
    iou: Floats
    on_unknown: Bools
    state: npt.NDArray[np.int8]
    kept_at: Mapping[str, Bools] = field(default_factory=dict)

    @classmethod
    def from_matches(
        cls,
        truth: GroundTruth,
        detections: Detections,
        rules: Rules,
        *,
        outcome: npt.NDArray[np.int8],
        taken: Int32s,
        pairs: OverlappingPairs,
        unknown: Bools,
        counted: Bools,
        part: str = "",
        compared: tuple[GroundTruth, Detections] | None = None,
        kept_at: Mapping[str, Bools] | None = None,
    ) -> Outcomes:
        """Build the outcomes from a matching.

        Parameters
        ----------
        outcome, taken : ndarray, shape (d,)
            1, 0 or -1, and the object of each true positive, as in `curation.evaluation.matching.Matches`.
        pairs : OverlappingPairs
            Detections of known classes with the unknown objects that they lie on: the open-set errors.
        unknown, counted : ndarray of bool, shape (m,)
            Which objects are unknown, and which have to be found.
        compared : (GroundTruth, Detections), optional
            Both with the compared boxes, if the variant rounds boxes.
        """
        objects, boxes = compared or (truth, detections)
        matched, iou = best_overlap(objects, boxes, same_class=False, dtype=rules.dtype)
        lies = (matched >= 0) & rules.reached(iou)
        on_unknown = np.zeros(len(detections), bool)
        on_unknown[pairs.row] = True
        right = outcome == 1
        best = np.lexsort((pairs.position, -pairs.iou, pairs.row))
        rows, first = np.unique(pairs.row[best], return_index=True)
        hit = np.full(len(detections), -1, np.int32)
        hit[rows] = pairs.position[best[first]]
        is_error = (outcome == 0) & on_unknown
        kinds = [right, is_error, (outcome == 0) & lies, outcome == 0, outcome < 0]
        kind = np.select(kinds, range(len(kinds))).astype(np.int8)
        matched = np.where(right, taken, np.where(is_error, hit, np.where(lies | (outcome < 0), matched, -1)))
        paired = np.flatnonzero(right | is_error)
        iou = iou.copy()
        iou[paired] = pair_iou(boxes.boxes[paired], objects.boxes[matched[paired]])
        detected = np.zeros(len(truth.label), bool)
        detected[taken[right]] = True
        called = np.zeros(len(truth.label), bool)
        called[pairs.position] = True
        states = [~counted, detected, called & unknown, np.ones(len(truth.label), bool)]
        state = np.select(states, [3, 0, 1, 2]).astype(np.int8)
        return cls(
            part=part,
            truth=truth,
            detections=detections,
            unknown=unknown,
            kind=kind,
            matched=matched.astype(np.int32),
            iou=iou,
            on_unknown=on_unknown,
            state=state,
            kept_at=kept_at or {},
        )

    def counts(self) -> dict[str, int]:
        """Return how many detections are of each kind, ``A-OSE``, and how many unknown objects are in each state."""
        kinds = np.bincount(self.kind, minlength=len(KINDS)).tolist()
        states = np.bincount(self.state[self.unknown], minlength=len(STATES)).tolist()
        return {
            **dict(zip(KINDS, kinds, strict=True)),
            "A-OSE": int(self.on_unknown.sum()),
            **{f"unknown {name}": count for name, count in zip(STATES, states, strict=True)},
        }

    def class_of(self, row: int) -> str:
        """Return the class of an object: the original class if the truth states it, else the scored class."""
        original = self.truth.original[row] if self.truth.original is not None else ""
        label = int(self.truth.label[row])
        return original or (self.truth.classes[label] if label >= 0 else UNKNOWN)

    def frame(self) -> pd.DataFrame:
        """Return a row for each detection: image, class, score, box, kind, IoU, and the class of its object."""
        import pandas as pd

        names, classes = list(KINDS), self.truth.classes
        matched = self.matched.tolist()
        columns: dict[str, Any] = {
            "part": [self.part] * len(self.kind),
            "image_id": [self.truth.image_ids[image] for image in self.detections.image.tolist()],
            "class": [classes[label] for label in self.detections.label.tolist()],
            "score": self.detections.scores,
            **dict(zip("xywh", self.detections.boxes.T, strict=True)),
            "outcome": [names[kind] for kind in self.kind.tolist()],
            "iou": self.iou,
            "matched": ["" if row < 0 else self.class_of(row) for row in matched],
            "on_unknown": self.on_unknown,
        }
        return pd.DataFrame(columns | {f"kept_at_{recall}": mask for recall, mask in self.kept_at.items()})

    def objects(self) -> pd.DataFrame:
        """Return a row for each object, by image: class, box, whether it is unknown, state; one for an empty image."""
        import pandas as pd

        truth, states = self.truth, list(STATES)
        none = np.setdiff1d(np.arange(truth.n_images), truth.image)
        image = np.concatenate([truth.image, none])
        classes = [truth.classes[label] if label >= 0 else self.class_of(row) for row, label in enumerate(truth.label)]
        frame = pd.DataFrame(
            {
                "part": self.part,
                "image_id": [truth.image_ids[number] for number in image.tolist()],
                "class": classes + [""] * len(none),
                **dict(zip("xywh", np.concatenate([truth.boxes, np.zeros((len(none), 4))]).T, strict=True)),
                "unknown": np.concatenate([self.unknown, np.zeros(len(none), bool)]),
                "state": [states[state] for state in self.state.tolist()] + [NO_OBJECT] * len(none),
            }
        )
        return frame.iloc[np.argsort(image, kind="stable")].reset_index(drop=True)


def outcomes_by_class(truth: GroundTruth, detections: Detections, rules: Rules, **more: Any) -> Outcomes:
    """Return the outcomes of detections of known classes; unknown objects have the label -1.

    Parameters
    ----------
    rules : Rules
        Rules of the matching, and of the overlap that makes an open-set error.
    **more
        Arguments of `Outcomes.from_matches`; ``strict``: open-set errors need an IoU above 0.5.
    """
    matches = assign(truth, detections, rules)
    unknown = truth.label < 0
    strict = more.pop("strict", rules.strict)
    pairs = overlapping_pairs(truth, detections, same_class=False, mask=unknown, iou_threshold=IOU, strict=strict)
    return Outcomes.from_matches(
        truth,
        detections,
        rules,
        outcome=matches.outcome,
        taken=matches.truth,
        pairs=pairs,
        unknown=unknown,
        counted=positives(truth, rules) | (unknown & ~truth.crowd & ~truth.difficult),
        **more,
    )
