"""Everything the Elephant paper measures, of one detector, as one result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from curation.arguments import Replicates, Seed
from curation.benchmarks.elephant import diagnosis, figures, measures
from curation.benchmarks.elephant.diagnosis import Record
from curation.benchmarks.elephant.measures import OFFICIAL, OWOD, PAPER, SHARED, TABLE_4_BETAS, TABLES
from curation.errors import EvaluationError, UsageError
from curation.evaluation import inputs, open_set
from curation.evaluation.inputs import POLICY, READING, CategoryIds, Policy, Reading, Truth
from curation.evaluation.matching import Matches, OperatingPoints, assign, recall_names, tenth_names, thresholds
from curation.evaluation.measures import Measured
from curation.evaluation.open_set import LEVEL_COUNTS, LevelCounts
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import MOST_LISTED, GroundTruth, Scene
from curation.evaluation.resample import wilderness_intervals
from curation.evaluation.result import Report, Result, Scored, Table, order_table, stem_of, tidy_tables, truth_digests
from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
from curation.evaluation.variants import Difficult
from curation.evaluation.voc import outcomes_by_class, precision_recall
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import steps

Variant = Literal["paper", "official", "all"]
VARIANTS: dict[str, str] = {
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

    variant: Variant = "paper"
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
    facts = inputs.about(
        known,
        {part: {"truth": parts[part].file, "detections": read[part].file} for part in PARTS},
        manifest=inputs.manifest_record(taken, wilderness_part=wilderness_part),
        option_files=option_files,
    )
    found = evaluate_elephant(scene, options)
    scored = [
        Scored(
            part="closed + " + ("wilderness" if taken is None else wilderness_part),
            variant=variant,
            method=stem_of(read["closed"].file),
            truth=truth_digests(facts),
            predictions={part: read[part].file for part in PARTS},
            operating_point={"recalls": ", ".join(tenth_names(options.tenths))},
            # A class file goes before the manifest's classes: its digest is part of the truth.
            pinned=classes is None,
            found=measured,
        )
        for variant, measured in found.variants.items()
    ]
    return Result(
        REPORT,
        {**facts, "variants": {name: VARIANTS[name.partition("_")[0]] for name in found.variants}, **found.shared},
        scored=scored,
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


class Evaluated(NamedTuple):
    """What `evaluate_elephant` finds: of each variant, and what is the same under all of them."""

    variants: dict[str, Measured]
    shared: dict[str, Any]


def evaluate_elephant(scene: Scene, options: ElephantOptions = OPTIONS) -> Evaluated:
    """Return every number of the protocol as rows; undefined ones are None with a reason.

    Returns
    -------
    Evaluated
        Variants are ``paper``, ``paper_difficult_counted``, ``official``, ``official_float32_counts``,
        ``paper_float32_counts``, …, as they were asked for. Shared are the rows of `measures.SHARED` and what they
        rest on.

    Raises
    ------
    UsageError, EvaluationError
        Options that cannot work on these parts.
    """
    if options.variant not in VARIANTS:
        raise UsageError("Unknown variant", expected=", ".join(VARIANTS), found=repr(options.variant)[:80])
    closed, wilderness = scene.closed, scene.wilderness

    @cache
    def matched(difficult: Difficult) -> tuple[Matches, OperatingPoints]:
        matches = assign(closed, scene.inside, replace(PAPER, difficult=difficult))
        return matches, thresholds(matches, scene.inside, options.tenths)

    matches, points = matched(options.difficult)
    levels = open_set.wilderness_levels(closed.n_images, wilderness.n_images, counts=options.level_counts)
    owod, errors = measures.owod(scene.parts), measures.open_set_errors(scene.parts, points)
    found: dict[str, Measured] = {}
    for name, variant, difficult, counts in steps(list(_variants(options)), "variants"):
        if variant == OFFICIAL.name:
            one = measures.official(scene, recalls_tenths=options.tenths, counts=counts)
        else:
            one = measures.paper(scene, *matched(difficult), levels)
        found[name] = one._replace(values=[*one.values, *errors.values, *owod.values])
    similar = None if isinstance(options.similar, Path) else options.similar
    gaps = diagnosis.background_gap(closed, scene.inside, matches)
    bootstrap = _bootstrap(scene, matches, levels, options) if options.bootstrap else {"intervals": []}
    tables: dict[str, list[Record]] = {
        "images": [{"part": part, **_image_counts(truth)} for part, (truth, _) in zip(PARTS, scene.parts, strict=True)],
        "detections": [
            {"part": part, "class": name, "detections": count}
            for part, (_, one) in zip(PARTS, scene.parts, strict=True)
            for name, count in zip(
                closed.classes, np.bincount(one.label, minlength=len(closed.classes)).tolist(), strict=True
            )
        ],
        **errors.tables,
        **owod.tables,
        "diagnosis": diagnosis.diagnose(scene, matches, points, similar=similar),
        "overlaps": diagnosis.overlaps(scene, points),
        "fbeta": _fbeta(scene, matches, options),
        **(gaps or {"background_gaps": [], "background_histogram": []}),
        "intervals": bootstrap.pop("intervals"),
    }
    return Evaluated(
        found,
        {
            "variant": options.variant,
            "difficult": options.difficult,
            "level_counts": {options.level_counts: LEVEL_COUNTS[options.level_counts]},
            "definitions": measures.DEFINITIONS,
            "true_classes": list(diagnosis.column_names(scene)),
            "wilderness_order": "ascending image id",
            "fbeta_formula": {options.fbeta_formula: measures.FORMULAS[options.fbeta_formula]},
            "bootstrap": bootstrap or None,
            **tables,
            "decided_by_order": {
                "OWOD": owod.decided_by_order,
                "background gap": sum(row["decided_by_order"] for row in tables["background_gaps"]),
            },
            "undefined": {} if gaps else {"background_gaps": diagnosis.NO_BACKGROUND_SCORES},
        },
    )


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


def _variants(options: ElephantOptions) -> Iterator[tuple[str, str, Difficult, LevelCounts]]:
    """Yield name, variant, treatment of difficult objects and rule for level counts of each one asked for."""
    given, counted = options.difficult, options.level_counts
    asked: tuple[tuple[str, Difficult, LevelCounts], ...] = ((options.variant, given, counted),)
    if options.variant == "all":
        asked = (
            ("paper", "ignore", counted),
            ("paper", "count", counted),
            ("official", given, "integer"),
            ("official", given, "float32"),
        )
    for variant, difficult, counts in asked:
        name = variant + ("_difficult_counted" if (variant, difficult) == ("paper", "count") else "")
        yield name + ("_float32_counts" if counts == "float32" else ""), variant, difficult, counts


def _fbeta(scene: Scene, matches: Matches, options: ElephantOptions) -> list[Record]:
    if options.fbeta_ratios is None:
        ratios = measures.available_ratios(scene.closed.n_images, scene.wilderness.n_images)
    else:
        ratios = _texts(options.fbeta_ratios)
    betas, formula = _texts(options.betas), options.fbeta_formula
    return measures.fbeta_operating_points(scene, matches, ratios=ratios, betas=betas, formula=formula)


def _bootstrap(scene: Scene, matches: Matches, levels: open_set.Levels, options: ElephantOptions) -> dict[str, Any]:
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


def _tables(result: Result) -> Iterator[Table]:
    yield from tidy_tables(result)
    for one in SHARED:
        names = [column.name for column in one.columns]
        rows = [tuple(row[name] for name in names) for row in result.data[one.name]]
        printed = [row for row in rows if one.printed(row)] if one.printed else None
        title, file = one.title if rows else "", bool(rows) and one.name in REPORT.files
        yield Table(one.name, one.columns, rows, title, printed, file=file)
    yield order_table(result.data["decided_by_order"])


REPORT = Report(
    "elephant",
    measures.MEASURES,
    tables=_tables,
    drawings=figures.drawings,
    # 2: official: closed images without annotation leave N.
    # 3: average precision is in %.
    algorithm=3,
    # Figures have CSV files of what is drawn of the others.
    files=("measures", *(one.name for one in TABLES), "fbeta", "open_set_errors", "diagnosis", "background_gaps"),
    figures=("wilderness_curve", "error_diagnosis", "confusion", "precision_recall", "background_gap"),
    tidy=TABLES,
    places=("variant",),
)
