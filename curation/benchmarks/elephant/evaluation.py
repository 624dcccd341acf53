"""Everything the Elephant paper measures, of one detector, as one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.arguments import Replicates, Seed
from curation.benchmarks.elephant import diagnosis, measures
from curation.benchmarks.elephant.measures import OFFICIAL, OWOD, PAPER, TABLE_4_BETAS
from curation.benchmarks.elephant.report import DEFINITIONS, REPORT
from curation.errors import EvaluationError, UsageError
from curation.evaluation import inputs, open_set
from curation.evaluation.curves import average_precision_by_level
from curation.evaluation.inputs import POLICY, READING, CategoryIds, Policy, Reading, Truth
from curation.evaluation.matching import Matches, OperatingPoints, assign, recall_names, tenth_names, thresholds
from curation.evaluation.open_set import LEVEL_COUNTS, LevelCounts, Levels
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import MOST_LISTED, GroundTruth, Scene
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
    PAPER.name: PAPER.meaning,
    OFFICIAL.name: OFFICIAL.meaning,
    "all": "both, difficult objects ignored and counted, integer and float32 level counts",
}
PARTS = ("closed", "wilderness")
_TENTHS = dict(zip(tenth_names(range(1, 11)), range(1, 11), strict=True))
_BETAS = ",".join(TABLE_4_BETAS)
Texts = str | tuple[str, ...]
"""Decimal texts, with commas between them or as a tuple."""


@dataclass(frozen=True, kw_only=True)
class ElephantOptions:
    """What to compute.

    Attributes
    ----------
    variant : {"paper", "official", "all"}
        variant of the measures
    difficult : {"ignore", "count"}
        difficult objects under the paper's variant, and in all that rests on its matching
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

    variant: Profile = "paper"
    difficult: Difficult = "ignore"
    level_counts: LevelCounts = "integer"
    recalls: Annotated[Texts, "R,R"] = "0.1,0.3,0.5"
    fbeta_ratios: Annotated[Texts | None, "W,W"] = None
    betas: Annotated[Texts, "B,B"] = _BETAS
    fbeta_formula: measures.Formula = "correct"
    similar: Path | diagnosis.SimilarSets | None = None
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
            where, expected = f"--set recalls={','.join(given)}"[:200], "different ones of " + ", ".join(_TENTHS)
            raise UsageError("The recalls are not usable", where=where, expected=expected)
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
    """Score a detector by wilderness impact and every other measure of the Elephant paper.

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
    inputs.require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    truths: dict[str, Truth] = inputs.by_name(truth, "--truth", "part", PARTS, wanted=PARTS)
    files: dict[str, Path] = inputs.by_name(detections, "--detections", "part", PARTS, wanted=PARTS)
    taken = load_manifest(manifest) if isinstance(manifest, str) else manifest
    sources = {part: reading.open(truths[part], part) for part in steps(PARTS, "reading ground truth")}
    known = inputs.known_classes(sources["closed"], classes=classes, manifest=taken, category_ids=category_ids)
    option_files = {"classes": classes}
    if isinstance(options.similar, Path):
        option_files["similar"] = options.similar
        options = replace(options, similar=diagnosis.read_similar_sets(options.similar, known.names))
    lists = _lists(taken, wilderness_part, reading)
    boxed = {part: reading.boxed(sources[part], taken, lists.get(part)) for part in PARTS}
    parts = {part: ground_truth(source, known, lists.get(part)) for part, (source, _) in boxed.items()}
    check_closed(parts["closed"])
    check_wilderness(parts["wilderness"])
    read = {
        part: inputs.detections_of(files[part], parts[part], reading.policy_of(policy), other=parts[other])
        for part, other in steps((PARTS, PARTS[::-1]), "reading detections")
    }
    similar = () if options.similar is None or isinstance(options.similar, Path) else options.similar
    kept = {name for members in similar for name in members}
    listed, unlisted = inputs.classes_listed([(parts[one], read[one]) for one in PARTS], most=_MOST_LISTED, named=kept)
    (closed, inside), (wilderness, outside) = ((part.truth, found.detections) for part, found in listed)
    scene = Scene(closed, inside, wilderness, outside)
    told = inputs.about(
        known,
        {part: {"truth": parts[part].file, "detections": read[part].file} for part in PARTS},
        manifest=inputs.manifest_record(taken, wilderness_part=wilderness_part),
        option_files=option_files,
    )
    return Result(
        REPORT,
        told,
        evaluate_elephant(scene, options),
        columns=lambda: precision_recall(closed, inside, difficult=options.difficult),
        notes=[*(f"{part}: {note}" for part, (_, notes) in boxed.items() for note in notes), *unlisted],
        outcomes=lambda: {PAPER.name: single_outcomes(scene, options)},
    )


def _lists(manifest: Manifest | None, wilderness_part: str, reading: Reading) -> dict[str, tuple[str, ...]]:
    if manifest is None:
        if wilderness_part != "wilderness":
            raise UsageError(
                "--part wilderness=PART chooses a part of a manifest", expected="--manifest MANIFEST beside it"
            )
        return {}
    closed, wilderness = reading.listed(manifest, "closed"), reading.listed(manifest, wilderness_part)
    if wilderness_part == "wr1" and len(wilderness) < len(closed):
        raise EvaluationError(
            "There are fewer wilderness images than closed ones",
            where=f"part wr1 of {manifest.header.name}",
            expected=f"{len(closed)} images",
            found=str(len(wilderness)),
            hint="--part wilderness=wilderness takes all there are",
        )
    return {"closed": closed, "wilderness": wilderness}


def evaluate_elephant(scene: Scene, options: ElephantOptions = OPTIONS) -> dict[str, Any]:
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
    if options.variant not in PROFILES:
        raise UsageError("Unknown variant", expected=", ".join(PROFILES), found=repr(options.variant)[:80])
    closed, wilderness = scene.closed, scene.wilderness

    @cache
    def matched(difficult: Difficult) -> tuple[Matches, OperatingPoints]:
        matches = assign(closed, scene.inside, replace(PAPER, difficult=difficult))
        return matches, thresholds(matches, scene.inside, options.tenths)

    matches, points = matched(options.difficult)
    levels = open_set.wilderness_levels(closed.n_images, wilderness.n_images, counts=options.level_counts)
    sections: dict[str, Callable[[], Any]] = {}
    for name, profile, difficult, counts in _readings(options):
        if profile == OFFICIAL.name:
            tenths = options.tenths
            sections[name] = partial(measures.official_profile, scene, recalls_tenths=tenths, counts=counts)
        else:
            sections[name] = partial(_paper, scene, difficult, *matched(difficult), levels)
    sections |= {
        "owod": lambda: measures.owod_metrics(scene.parts),
        "a_ose": lambda: measures.open_set_errors(scene.parts, points),
        "diagnosis": lambda: _diagnosis(scene, matches, points, options),
        "fbeta": lambda: _fbeta(scene, matches, options),
        "fbeta_formula": lambda: {options.fbeta_formula: measures.FORMULAS[options.fbeta_formula]},
        "background_gap": lambda: diagnosis.background_gap(closed, scene.inside, matches),
        "bootstrap": lambda: _bootstrap(scene, matches, levels, options) if options.bootstrap else None,
    }
    found = {name: section() for name, section in steps(sections.items(), "sections")}
    lacks_background = found["background_gap"] is None
    return {
        "profile": options.variant,
        "profile_meaning": PROFILES[options.variant],
        "difficult": options.difficult,
        "level_counts": options.level_counts,
        "definitions": DEFINITIONS,
        "classes": list(closed.classes),
        "true_classes": list(diagnosis.column_names(scene)),
        "n_closed": closed.n_images,
        "n_wild": wilderness.n_images,
        "wilderness_order": "ascending image id",
        "images": {part: _image_counts(truth) for part, (truth, _) in zip(PARTS, scene.parts, strict=True)},
        "n_detections": {
            part: dict(zip(closed.classes, np.bincount(one.label, minlength=len(closed.classes)).tolist(), strict=True))
            for part, (_, one) in zip(PARTS, scene.parts, strict=True)
        },
        **found,
        "undefined": {"background_gap": diagnosis.NO_BACKGROUND_SCORES} if lacks_background else {},
    }


def single_outcomes(scene: Scene, options: ElephantOptions = OPTIONS) -> tuple[Outcomes, ...]:
    """Return what became of each detection of both parts: matched as the paper says, A-OSE as it is counted here.

    ``kept_at`` tells which detections stand at or above the closed set's threshold of a recall; on the wilderness these
    are the FP_o of wilderness impact.
    """
    rules = replace(PAPER, difficult=options.difficult)
    points = thresholds(assign(scene.closed, scene.inside, rules), scene.inside, options.tenths)
    limits = dict(zip(recall_names(points), points.threshold, strict=True))
    outcomes = []
    for part, (truth, found) in zip(PARTS, scene.parts, strict=True):
        kept = {recall: found.scores >= limit[found.label] for recall, limit in limits.items()}
        outcomes.append(outcomes_by_class(truth, found, rules, strict=OWOD.strict, part=part, kept_at=kept))
    return tuple(outcomes)


def _readings(options: ElephantOptions) -> Iterator[tuple[str, str, Difficult, LevelCounts]]:
    """Yield name, variant, treatment of difficult objects and rule for level counts of each section asked for."""
    given, counted = options.difficult, options.level_counts
    readings: tuple[tuple[str, Difficult, LevelCounts], ...] = ((options.variant, given, counted),)
    if options.variant == "all":
        readings = (
            ("paper", "ignore", counted),
            ("paper", "count", counted),
            ("official", given, "integer"),
            ("official", given, "float32"),
        )
    for profile, difficult, counts in readings:
        name = profile + ("_difficult_counted" if (profile, difficult) == ("paper", "count") else "")
        yield name + ("_float32_counts" if counts == "float32" else ""), profile, difficult, counts


def _paper(
    scene: Scene, difficult: Difficult, matches: Matches, points: OperatingPoints, levels: Levels
) -> dict[str, Any]:
    classes = scene.closed.classes
    positives = dict(zip(classes, matches.n_positive.tolist(), strict=True))
    by_level = np.bincount(levels.first_level(scene.outside.image), minlength=len(levels) + 1)
    return {
        "difficult": difficult,
        "level_counts": levels.counts,
        "level_counts_meaning": LEVEL_COUNTS[levels.counts],
        "npos": positives,
        "levels": list(levels.names),
        "n_wild_images": levels.images.tolist(),
        "n_wild_detections": by_level[:-1].cumsum().tolist(),
        "classes_averaged": [name for name, n in positives.items() if n],
        "classes_left_out": {name: "no ground truth" for name, n in positives.items() if not n},
        **average_precision_by_level(classes, scene.inside, matches, scene.outside, levels),
        **open_set.wilderness_impact(classes, matches, points, scene.outside, levels),
    }


def _diagnosis(scene: Scene, matches: Matches, points: OperatingPoints, options: ElephantOptions) -> dict[str, Any]:
    similar = None if isinstance(options.similar, Path) else options.similar
    kinds = diagnosis.diagnose(scene, matches, points, similar=similar)
    overlaps = diagnosis.confusion(scene, points)
    return {
        recall: {name: found and {**found, **overlaps[recall][name]} for name, found in sections.items()}
        for recall, sections in kinds.items()
    }


def _fbeta(scene: Scene, matches: Matches, options: ElephantOptions) -> dict[str, Any]:
    if options.fbeta_ratios is None:
        ratios = measures.available_ratios(scene.closed.n_images, scene.wilderness.n_images)
    else:
        ratios = _texts(options.fbeta_ratios)
    betas, formula = _texts(options.betas), options.fbeta_formula
    return measures.fbeta_operating_points(scene, matches, ratios=ratios, betas=betas, formula=formula)


def _bootstrap(scene: Scene, matches: Matches, levels: Levels, options: ElephantOptions) -> dict[str, Any]:
    return wilderness_intervals(
        scene.closed,
        scene.inside,
        matches,
        scene.wilderness,
        scene.outside,
        levels=dict(zip(levels.names, levels.images.tolist(), strict=True)),
        recalls_tenths=options.tenths,
        replicates=options.bootstrap,
        seed=options.seed,
        difficult=options.difficult,
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
