"""Everything the Elephant paper measures, of one detector, as one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from curation.benchmarks.elephant.background import NO_BACKGROUND_SCORES, background_gap
from curation.benchmarks.elephant.confusion import column_names, confusion
from curation.benchmarks.elephant.diagnosis import SimilarSets, diagnose
from curation.benchmarks.elephant.fbeta import (
    FORMULAS,
    TABLE_4_BETAS,
    TABLE_4_RATIOS,
    Formula,
    available_ratios,
    fbeta_operating_points,
)
from curation.benchmarks.elephant.official import official_profile
from curation.benchmarks.elephant.open_set import open_set_errors, owod_metrics
from curation.benchmarks.elephant.variants import OFFICIAL, PAPER
from curation.errors import UsageError
from curation.evaluation.bootstrap import bootstrap_intervals
from curation.evaluation.columns import Detections, GroundTruth
from curation.evaluation.matching import Matches, OperatingPoints, assign, thresholds
from curation.evaluation.open_set import (
    LEVEL_COUNTS,
    READINGS,
    LevelCounts,
    Levels,
    wilderness_impact,
    wilderness_levels,
)
from curation.evaluation.variants import Difficult
from curation.evaluation.wilderness import average_precision_by_level

Profile = Literal["paper", "official", "all"]
PROFILES: dict[str, str] = {
    **{one.name: one.meaning for one in (PAPER, OFFICIAL)},
    "all": "both, difficult objects ignored and counted, integer and float32 level counts",
}
DEFINITIONS: dict[str, str] = {
    "matching": "paper: per class, by falling score, ties in input order, IoU >= 0.5 with the object of highest IoU "
    "of the class; taken already: false positive; difficult (unless counted) and crowd: neither (VOC's rule)",
    "threshold": "score of the first true positive at which TP * 10 >= r * 10 * n on the closed set; kept are all "
    "detections with score >= it (paper: the confidence at which 10, 30, 50 % of the known objects are found)",
    "WI": "closed precision / open precision - 1 = FP_o / (TP_c + FP_c) at the threshold of the closed set; FP_o: all "
    "detections of the class at or above it on the wilderness images of the level (paper, Fig. 5)",
    **{f"WI.{name}": text for name, text in READINGS.items()},
    "AWI": "mean of WI over the levels k >= 1 (excl_level0) or k >= 0 (incl_level0) (paper, Table 2)",
    "levels": "wilderness ratio k/10: the first n_k wilderness images by ascending image id (paper, Fig. 5)",
    "mAP11": "mean over classes with objects of the 11-point AP (VOC2007); equal scores make one point of the curve",
    "mAP11_ties_in_input_order": "the same, with a point of the curve after each detection",
    "mAP_area": "mean over classes with objects of the area under the precision envelope (VOC2010)",
    "official": "eval.py and WIC.py: best object of any class at float32 IoU >= 0.5, difficult ordinary, 11-point AP, "
    "mean over classes with a detection on the images of the level, WI from interpolated precision, images "
    "without annotation always wilderness, a closed one too, which then leaves N; of two right detections of an object "
    "the first listed counts, and equal scores keep input order",
    "owod": "OWOD voc_eval: IoU > 0.5, scores to 3 and corners to 1 decimal, WI at the index of nearest recall",
    "a_ose": "detections of a known class with IoU > 0.5 to an unknown object (Miller et al., ICRA 2018); instances: "
    "distinct unknown objects hit",
    "diagnosis": "kinds of kept detections (paper, section 4.1, Fig. 3 and 9) and what they lie on (Fig. 4); wr1: "
    "closed set and the first n_closed images of the wilderness given, by id: the paper's WR1 if that is its part wr1",
    "fbeta": "(1 + b^2) TP / ((TP + FP) + b^2 n), threshold of highest F, ties to the highest (paper, Table 4)",
    "background_gap": "score of the class - background score, true positives of the closed set (paper, Fig. 8)",
}


@dataclass(frozen=True, slots=True)
class ElephantOptions:
    """What to compute.

    Attributes
    ----------
    profile : {"paper", "official", "all"}
    difficult : {"ignore", "count"}
        For the profile ``paper`` and all that rests on its matching.
    level_counts : {"integer", "float32"}
    recalls_tenths : tuple of int
    ratios : tuple of str, optional
        Of F-beta; those of Table 4 that the wilderness allows by default.
    betas : tuple of str
    fbeta_formula : {"correct", "published"}
        Which F is reported; the threshold is that of the correct one either way.
    similar : sets of class names, optional
        For the error diagnosis; Hoiem's by default.
    bootstrap : int
        Replicates; 0 for none.
    seed : int
    """

    profile: Profile = "paper"
    difficult: Difficult = "ignore"
    level_counts: LevelCounts = "integer"
    recalls_tenths: tuple[int, ...] = (1, 3, 5)
    ratios: tuple[str, ...] | None = None
    betas: tuple[str, ...] = TABLE_4_BETAS
    fbeta_formula: Formula = "correct"
    similar: SimilarSets | None = None
    bootstrap: int = 0
    seed: int = 0


def evaluate_elephant(
    closed: GroundTruth,
    closed_detections: Detections,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    options: ElephantOptions | None = None,
) -> dict[str, Any]:
    """Return every number of the protocol, each beside what it refers to; undefined ones are None with a reason.

    Returns
    -------
    dict
        ``profile``, ``definitions``, ``classes``, ``true_classes``, ``n_closed``, ``n_wild``, ``wilderness_order``,
        ``images``, ``n_detections``; one section a reading (``paper``, ``paper_difficult_counted``, ``official``,
        ``official_float32_counts``, ``paper_float32_counts``, …); and ``owod``, ``a_ose``, ``diagnosis``, ``fbeta``,
        ``background_gap``, ``bootstrap``.

    Raises
    ------
    UsageError, EvaluationError
        Options that cannot work on these parts.
    """
    options = options or ElephantOptions()
    if options.profile not in PROFILES:
        raise UsageError("Unknown profile", expected=", ".join(PROFILES), found=repr(options.profile)[:80])
    run = _Run(closed, closed_detections, wilderness, wilderness_detections, options)
    return {**run.summary(), **run.profiles(), **run.sections()}


def _section_name(profile: str, difficult: str, counts: str) -> str:
    name = profile + ("_difficult_counted" if difficult == "count" and profile == "paper" else "")
    return name + ("_float32_counts" if counts == "float32" else "")


class _Run:
    """One evaluation: the closed part is matched once for each treatment of difficult objects."""

    def __init__(
        self,
        closed: GroundTruth,
        closed_detections: Detections,
        wilderness: GroundTruth,
        wilderness_detections: Detections,
        options: ElephantOptions,
    ) -> None:
        self.closed, self.inside = closed, closed_detections
        self.wilderness, self.outside = wilderness, wilderness_detections
        self.options = options
        self.matches = assign(closed, closed_detections, replace(PAPER, difficult=options.difficult))
        self.points = thresholds(self.matches, closed_detections, options.recalls_tenths)
        self.levels = wilderness_levels(closed.n_images, wilderness.n_images, counts=options.level_counts)

    def summary(self) -> dict[str, Any]:
        return {
            "profile": self.options.profile,
            "profile_meaning": PROFILES[self.options.profile],
            "difficult": self.options.difficult,
            "level_counts": self.options.level_counts,
            "definitions": DEFINITIONS,
            "classes": list(self.closed.classes),
            "true_classes": list(column_names(self.closed, self.wilderness)),
            "n_closed": self.closed.n_images,
            "n_wild": self.wilderness.n_images,
            "wilderness_order": "ascending image id",
            "images": {
                "closed": _image_counts(self.closed),
                "wilderness": _image_counts(self.wilderness),
            },
            "n_detections": {
                "closed": _by_class(self.closed, self.inside),
                "wilderness": _by_class(self.closed, self.outside),
            },
        }

    def profiles(self) -> dict[str, Any]:
        from tqdm import tqdm

        shown = tqdm(self._readings(), desc="profiles", disable=None, leave=False)
        return {_section_name(*reading): self._profile(*reading) for reading in shown}

    def _readings(self) -> tuple[tuple[str, Difficult, LevelCounts], ...]:
        difficult, counts = self.options.difficult, self.options.level_counts
        if self.options.profile != "all":
            return ((self.options.profile, difficult, counts),)
        return (
            ("paper", "ignore", counts),
            ("paper", "count", counts),
            ("official", difficult, "integer"),
            ("official", difficult, "float32"),
        )

    def _profile(self, profile: str, difficult: Difficult, counts: LevelCounts) -> dict[str, Any]:
        if profile == "official":
            return official_profile(
                self.closed,
                self.inside,
                self.wilderness,
                self.outside,
                recalls_tenths=self.options.recalls_tenths,
                counts=counts,
            )
        if difficult == self.options.difficult:
            return self._paper(difficult, self.matches, self.points)
        matches = assign(self.closed, self.inside, replace(PAPER, difficult=difficult))
        return self._paper(difficult, matches, thresholds(matches, self.inside, self.options.recalls_tenths))

    def _paper(self, difficult: Difficult, matches: Matches, points: OperatingPoints) -> dict[str, Any]:
        classes, levels = self.closed.classes, self.levels
        positives = matches.n_positive.tolist()
        return {
            "difficult": difficult,
            "level_counts": levels.counts,
            "level_counts_meaning": LEVEL_COUNTS[levels.counts],
            "npos": dict(zip(classes, positives, strict=True)),
            "levels": list(levels.names),
            "n_wild_images": levels.images.tolist(),
            "n_wild_detections": _by_level(levels, self.outside),
            "classes_averaged": [name for name, n in zip(classes, positives, strict=True) if n],
            "classes_left_out": {
                name: "no ground truth" for name, n in zip(classes, positives, strict=True) if not n
            },
            **average_precision_by_level(classes, self.inside, matches, self.outside, levels),
            **wilderness_impact(classes, matches, points, self.outside, levels),
        }

    def sections(self) -> dict[str, Any]:
        from tqdm import tqdm

        parts = ((self.closed, self.inside), (self.wilderness, self.outside))
        sections: dict[str, Callable[[], Any]] = {
            "owod": lambda: owod_metrics(parts),
            "a_ose": lambda: open_set_errors(parts, self.points),
            "diagnosis": self._diagnosis,
            "fbeta": self._fbeta,
            "fbeta_formula": lambda: {self.options.fbeta_formula: FORMULAS[self.options.fbeta_formula]},
            "background_gap": lambda: background_gap(self.closed, self.inside, self.matches),
            "bootstrap": self._bootstrap,
        }
        shown = tqdm(sections.items(), desc="sections", disable=None, leave=False)
        found = {name: section() for name, section in shown}
        lacks = found["background_gap"] is None
        return {**found, "undefined": {"background_gap": NO_BACKGROUND_SCORES} if lacks else {}}

    def _diagnosis(self) -> dict[str, Any]:
        both = (self.closed, self.inside, self.matches, self.wilderness, self.outside, self.points)
        kinds = diagnose(*both, similar=self.options.similar)
        overlaps = confusion(self.closed, self.inside, self.wilderness, self.outside, self.points)
        return {
            recall: {
                section: None if found is None else {**found, **overlaps[recall][section]}
                for section, found in sections.items()
            }
            for recall, sections in kinds.items()
        }

    def _fbeta(self) -> dict[str, Any]:
        ratios: Sequence[str] | None = self.options.ratios
        if ratios is None:
            ratios = available_ratios(self.closed.n_images, self.wilderness.n_images, TABLE_4_RATIOS)
        return fbeta_operating_points(
            self.closed,
            self.inside,
            self.matches,
            self.wilderness,
            self.outside,
            ratios=ratios,
            betas=self.options.betas,
            formula=self.options.fbeta_formula,
        )

    def _bootstrap(self) -> dict[str, Any] | None:
        if not self.options.bootstrap:
            return None
        return bootstrap_intervals(
            self.closed,
            self.inside,
            self.matches,
            self.wilderness,
            self.outside,
            levels=dict(zip(self.levels.names, self.levels.images.tolist(), strict=True)),
            recalls_tenths=self.options.recalls_tenths,
            replicates=self.options.bootstrap,
            seed=self.options.seed,
            difficult=self.options.difficult,
        )


def _image_counts(truth: GroundTruth) -> dict[str, int]:
    return {
        "images": truth.n_images,
        "without_annotation": truth.n_images - len(np.unique(truth.image)),
        "objects": len(truth.label),
        "known": int((truth.label >= 0).sum()),
        "unknown": int((truth.label < 0).sum()),
        "difficult": int(truth.difficult.sum()),
        "crowd": int(truth.crowd.sum()),
    }


def _by_class(truth: GroundTruth, detections: Detections) -> dict[str, int]:
    counts = np.bincount(detections.label, minlength=len(truth.classes)).tolist()
    return dict(zip(truth.classes, counts, strict=True))


def _by_level(levels: Levels, detections: Detections) -> list[int]:
    counts = np.bincount(levels.first_level(detections.image), minlength=len(levels) + 1)
    by_level: list[int] = counts[:-1].cumsum().tolist()
    return by_level
