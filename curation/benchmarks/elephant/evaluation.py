"""Everything the Elephant paper measures, of one detector, as one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.arguments import Replicates, Seed
from curation.benchmarks.elephant.diagnosis import (
    NO_BACKGROUND_SCORES,
    SimilarSets,
    background_gap,
    column_names,
    confusion,
    diagnose,
    read_similar_sets,
)
from curation.benchmarks.elephant.measures import (
    FORMULAS,
    OFFICIAL,
    OWOD,
    PAPER,
    TABLE_4_BETAS,
    TABLE_4_RATIOS,
    Formula,
    Part,
    available_ratios,
    fbeta_operating_points,
    official_profile,
    open_set_errors,
    owod_metrics,
)
from curation.benchmarks.elephant.report import DEFINITIONS, REPORT
from curation.errors import EvaluationError, UsageError
from curation.evaluation.curves import average_precision_by_level
from curation.evaluation.inputs import (
    POLICY,
    READING,
    CategoryIds,
    Policy,
    Reading,
    Truth,
    about,
    by_name,
    classes_listed,
    detections_of,
    known_classes,
    manifest_record,
    require_manifest_for_ids,
)
from curation.evaluation.matching import Matches, OperatingPoints, assign, recall_names, thresholds
from curation.evaluation.open_set import (
    LEVEL_COUNTS,
    LevelCounts,
    Levels,
    wilderness_impact,
    wilderness_levels,
)
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import MOST_LISTED, Detections, GroundTruth
from curation.evaluation.resample import wilderness_intervals
from curation.evaluation.result import Result
from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
from curation.evaluation.variants import Difficult
from curation.evaluation.voc import outcomes_by_class, precision_recall
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import steps

Profile = Literal["paper", "official", "all"]
PROFILES: dict[str, str] = {
    **{one.name: one.meaning for one in (PAPER, OFFICIAL)},
    "all": "both, difficult objects ignored and counted, integer and float32 level counts",
}
PARTS = ("closed", "wilderness")
_TENTHS = {f"{tenths // 10}.{tenths % 10}": tenths for tenths in range(1, 11)}
_BETAS = ",".join(TABLE_4_BETAS)
Texts = str | tuple[str, ...]
"""Decimal texts, with commas between them or as a tuple."""


@dataclass(frozen=True, kw_only=True)
class ElephantOptions:
    """What to compute.

    Attributes
    ----------
    profile : {"paper", "official", "all"}
        variant of the measures
    difficult : {"ignore", "count"}
        difficult objects under the paper's profile, and in all that rests on its matching
    level_counts : {"integer", "float32"}
        images of a wilderness level: floor(k*N/10), or the official code's product of a float32 ratio and N, as NumPy 1
        computes it, in double (NumPy 2 has another)
    recalls : str or tuple of str
        tenths
    fbeta_ratios : str or tuple of str, optional
        wilderness ratios (default: 0 to 4.25 in quarters, as far as images go)
    betas : str or tuple of str
        of F-beta
    fbeta_formula : {"correct", "published"}
        published: as Table 4 prints b = 0.5, without the denominator; the threshold is that of the correct one
    similar : Path or sets of class names, optional
        JSON list of sets of similar classes, for the error diagnosis; by default Hoiem's
    bootstrap : int
        replicates of confidence intervals
    seed : int
        of the bootstrap
    """

    profile: Profile = "paper"
    difficult: Difficult = "ignore"
    level_counts: LevelCounts = "integer"
    recalls: Annotated[Texts, "R,R"] = "0.1,0.3,0.5"
    fbeta_ratios: Annotated[Texts | None, "W,W"] = None
    betas: Annotated[Texts, "B,B"] = _BETAS
    fbeta_formula: Formula = "correct"
    similar: Path | SimilarSets | None = None
    bootstrap: Replicates = 0
    seed: Seed = 0

    @property
    def tenths(self) -> tuple[int, ...]:
        """Return the recalls in tenths.

        Raises
        ------
        UsageError
            One is none of 0.1 to 1.0, or given twice.
        """
        given = _texts(self.recalls)
        if len(set(given)) != len(given) or not set(given) <= set(_TENTHS):
            raise UsageError(
                "The recalls are not usable",
                where=f"--set recalls={','.join(given)}"[:200],
                expected="different ones of " + ", ".join(_TENTHS),
            )
        return tuple(_TENTHS[recall] for recall in given)


OPTIONS = ElephantOptions()
_MOST_LISTED = MOST_LISTED // 50
"""Each class is listed at some fifty levels of wilderness."""


def _texts(given: Texts) -> tuple[str, ...]:
    return tuple(given.split(",")) if isinstance(given, str) else given


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "PART=FILE"],
    detections: Annotated[Mapping[str, Path] | Path, "PART=FILE"],
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Policy = POLICY,
    manifest: Annotated[str | Manifest | None, "MANIFEST"] = None,
    category_ids: CategoryIds | None = None,
    wilderness_part: Annotated[str, "PART"] = "wilderness",
    options: ElephantOptions = OPTIONS,
) -> Result:
    """Score a detector by wilderness impact and all else of the Elephant paper.

    Parameters
    ----------
    truth : mapping of str to Path or Source
        COCO JSON, or a dataset root; once for closed=, once for wilderness=
    detections : mapping of str to Path
        COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt); may be
        compressed by gzip; once for closed=, once for wilderness=
    classes : Path, optional
        {"known": [...], "unknown": [...]}; by default those of the manifest, else the categories of the closed truth
    reading : Reading
    policy : Policy
    manifest : str or Manifest, optional
        take its classes, and of each truth only the images of its lists
    category_ids : {"truth", "manifest"}, optional
        with --manifest, whose category ids detections use: the truth file's (default where it has ids), or the
        manifest's indices
    wilderness_part : str
        part of the manifest
    options : ElephantOptions

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    UsageError
        Options that cannot work together.
    """
    require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    truths: dict[str, Truth] = by_name(truth, "--truth", "part", PARTS, wanted=PARTS)
    files: dict[str, Path] = by_name(detections, "--detections", "part", PARTS, wanted=PARTS)
    taken = load_manifest(manifest) if isinstance(manifest, str) else manifest
    sources = {part: reading.open(truths[part], part) for part in steps(PARTS, "reading ground truth")}
    known = known_classes(sources["closed"], classes=classes, manifest=taken, category_ids=category_ids)
    similar = read_similar_sets(options.similar, known.names) if isinstance(options.similar, Path) else options.similar
    lists = _lists(taken, wilderness_part, reading)
    boxed = {part: reading.boxed(sources[part], taken, lists.get(part)) for part in PARTS}
    sources = {part: source for part, (source, _) in boxed.items()}
    parts = {part: ground_truth(sources[part], known, lists.get(part)) for part in PARTS}
    check_closed(parts["closed"])
    check_wilderness(parts["wilderness"])
    read = {
        part: detections_of(files[part], parts[part], reading.policy_of(policy), other=parts[other])
        for part, other in steps(list(zip(PARTS, reversed(PARTS), strict=True)), "reading detections")
    }
    kept = {name for members in similar or () for name in members}
    listed, unlisted = classes_listed([(parts[part], read[part]) for part in PARTS], most=_MOST_LISTED, named=kept)
    closed, wilderness = ((part.truth, found.detections) for part, found in listed)
    told = about(
        known,
        {part: {"truth": parts[part].file, "detections": read[part].file} for part in PARTS},
        manifest=manifest_record(taken, wilderness_part=wilderness_part),
        option_files={
            "classes": classes,
            "similar": options.similar if isinstance(options.similar, Path) else None,
        },
    )
    options = replace(options, similar=similar)
    sections = evaluate_elephant(*closed, *wilderness, options)
    return Result(
        REPORT,
        told,
        sections,
        columns=lambda: precision_recall(*closed, difficult=options.difficult),
        notes=[*(f"{part}: {note}" for part, (_, notes) in boxed.items() for note in notes), *unlisted],
        outcomes=lambda: {PAPER.name: single_outcomes({"closed": closed, "wilderness": wilderness}, options)},
    )


def _lists(manifest: Manifest | None, wilderness_part: str, reading: Reading) -> dict[str, tuple[str, ...]]:
    if manifest is None:
        if wilderness_part != "wilderness":
            raise UsageError(
                "--part wilderness=PART chooses a part of a manifest", expected="--manifest MANIFEST beside it"
            )
        return {}
    lists = {"closed": reading.listed(manifest, "closed"), "wilderness": reading.listed(manifest, wilderness_part)}
    if wilderness_part == "wr1" and len(lists["wilderness"]) < len(lists["closed"]):
        raise EvaluationError(
            "There are fewer wilderness images than closed ones",
            where=f"part wr1 of {manifest.header.name}",
            expected=f"{len(lists['closed'])} images",
            found=str(len(lists["wilderness"])),
            hint="--part wilderness=wilderness takes all there are",
        )
    return lists


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


def single_outcomes(parts: Mapping[str, Part], options: ElephantOptions = OPTIONS) -> tuple[Outcomes, ...]:
    """Return what became of each detection of both parts: matched as the paper says, A-OSE as it is counted here.

    ``kept_at`` tells which detections stand at or above the closed set's threshold of a recall; on the wilderness these
    are the FP_o of wilderness impact.
    """
    rules = replace(PAPER, difficult=options.difficult)
    closed, inside = parts["closed"]
    points = thresholds(assign(closed, inside, rules), inside, options.tenths)
    return tuple(
        outcomes_by_class(
            truth,
            detections,
            rules,
            strict=OWOD.strict,
            part=part,
            kept_at={
                recall: detections.scores >= limits[detections.label]
                for recall, limits in zip(recall_names(points), points.threshold, strict=True)
            },
        )
        for part, (truth, detections) in parts.items()
    )


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
        self.points = thresholds(self.matches, closed_detections, options.tenths)
        self.matched = (closed, closed_detections, self.matches, wilderness, wilderness_detections)
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
                recalls_tenths=self.options.tenths,
                counts=counts,
            )
        if difficult == self.options.difficult:
            return self._paper(difficult, self.matches, self.points)
        matches = assign(self.closed, self.inside, replace(PAPER, difficult=difficult))
        return self._paper(difficult, matches, thresholds(matches, self.inside, self.options.tenths))

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
            "classes_left_out": {name: "no ground truth" for name, n in zip(classes, positives, strict=True) if not n},
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
        similar = None if isinstance(self.options.similar, Path) else self.options.similar
        kinds = diagnose(*self.matched, self.points, similar=similar)
        overlaps = confusion(self.closed, self.inside, self.wilderness, self.outside, self.points)
        return {
            recall: {
                section: None if found is None else {**found, **overlaps[recall][section]}
                for section, found in sections.items()
            }
            for recall, sections in kinds.items()
        }

    def _fbeta(self) -> dict[str, Any]:
        ratios: Sequence[str]
        if self.options.fbeta_ratios is not None:
            ratios = _texts(self.options.fbeta_ratios)
        else:
            ratios = available_ratios(self.closed.n_images, self.wilderness.n_images, TABLE_4_RATIOS)
        return fbeta_operating_points(
            *self.matched,
            ratios=ratios,
            betas=_texts(self.options.betas),
            formula=self.options.fbeta_formula,
        )

    def _bootstrap(self) -> dict[str, Any] | None:
        if not self.options.bootstrap:
            return None
        return wilderness_intervals(
            *self.matched,
            levels=dict(zip(self.levels.names, self.levels.images.tolist(), strict=True)),
            recalls_tenths=self.options.tenths,
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
