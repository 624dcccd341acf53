"""All measures of the Elephant paper for a detector, as a single result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from curation.benchmarks.elephant import measures
from curation.benchmarks.elephant.bootstrap import wilderness_intervals
from curation.benchmarks.elephant.figures import background_histogram, confusion_figure, error_bars, wilderness_curve
from curation.benchmarks.elephant.measures import (
    ALL_CLASSES,
    OFFICIAL,
    OWOD,
    PAPER,
    SHARED,
    TABLE_4_BETAS,
    TABLES,
    WR1,
    Record,
)
from curation.benchmarks.rules.wilderness import level_order
from curation.core.arguments import Replicates, Seed
from curation.core.columns import distinct
from curation.core.errors import EvaluationError, UsageError
from curation.core.process import steps
from curation.evaluation import inputs, open_set
from curation.evaluation.curves import precision_recall
from curation.evaluation.figures import precision_recall_curves
from curation.evaluation.inputs import POLICY, READING, CategoryIds, Policy, Reading, Truth
from curation.evaluation.matching import Matches, OperatingPoints, assign, recall_names, tenth_names, thresholds
from curation.evaluation.measures import Measured
from curation.evaluation.open_set import LEVEL_COUNTS, LevelCounts
from curation.evaluation.outcomes import Outcomes, outcomes_by_class
from curation.evaluation.problem import Detections, GroundTruth, Scene
from curation.evaluation.readers import read_detections
from curation.evaluation.result import Figure, Report, Result, Scored, Table, stem_of, tidy_tables, truth_digests
from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
from curation.evaluation.variants import Difficult
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.source import Source

Variant = Literal["paper", "official", "all"]
VARIANTS: dict[str, str] = {
    PAPER.name: PAPER.meaning,
    OFFICIAL.name: OFFICIAL.meaning,
    "all": "both, difficult objects ignored and counted, integer and float32 level counts",
}

PARTS = ("closed", "wilderness")
RULE = "wilderness"
"""The rule of benchmarks from a user's own data."""
_TENTHS = dict(zip(tenth_names(range(1, 11)), range(1, 11), strict=True))
_BETAS = ",".join(TABLE_4_BETAS)
Texts = str | tuple[str, ...]
"""Decimal texts, with commas between them or as a tuple."""


@dataclass(frozen=True, kw_only=True)
class ElephantOptions:
    """Options of the evaluation.

    Attributes
    ----------
    variant : {"paper", "official", "all"}
        variant of the measures
    difficult : {"ignore", "count"}
        difficult objects under the paper's variant, and in all measures that use its matching
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
        published: as Table 4 prints b = 0.5, without the denominator; the threshold is that of the correct formula
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
    bootstrap: Replicates = 0
    seed: Seed = 0

    @property
    def tenths(self) -> tuple[int, ...]:
        """Return the recalls in tenths.

        Raises
        ------
        UsageError
            A recall is not one of 0.1 to 1.0, or is repeated.
        """
        recalls = _texts(self.recalls)
        if len(set(recalls)) != len(recalls) or not set(recalls) <= set(_TENTHS):
            where, expected = (
                f"--set recalls={','.join(recalls)}"[:200],
                "some of " + ", ".join(_TENTHS) + ", each once",
            )
            raise UsageError("Invalid recalls", where=where, expected=expected)
        return tuple(_TENTHS[recall] for recall in recalls)


OPTIONS = ElephantOptions()


def _texts(value: Texts) -> tuple[str, ...]:
    return tuple(value.split(",")) if isinstance(value, str) else value


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "PART=FILE"] = MappingProxyType({}),
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
        COCO JSON, or a dataset root; once for closed=, once for wilderness= (default: the sources that the manifest
        remembers)
    detections : mapping of str to Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by
        gzip; once for closed=, once for wilderness=
    classes : Path, optional
        {"known": [...], "unknown": [...]}; by default those of the manifest, else the categories of the closed truth
    reading : Reading
    policy : Policy
    manifest : str or Manifest, optional
        take its classes, and of each truth only the images of its lists
    category_ids : {"truth", "manifest"}, optional
        with --manifest, the category ids of the detections: those of the truth file (default if it has ids), or the
        indices of the manifest
    wilderness_part : str
        part of the manifest
    options : ElephantOptions

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file does not exist or has invalid content.
    UsageError
        Options contradict each other.

    Examples
    --------
    >>> import curation, pandas
    >>> owl = {"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
    >>> elk = {**owl, "image_id": 2, "category": "elk"}
    >>> truth = {"closed": pandas.DataFrame([owl]), "wilderness": pandas.DataFrame([elk])}
    >>> found, wrong = {**owl, "score": 0.9}, {**elk, "category": "owl", "score": 0.8}
    >>> detections = {"closed": pandas.DataFrame([found]), "wilderness": pandas.DataFrame([wrong])}
    >>> result = curation.evaluate.elephant(truth=truth, detections=detections)
    >>> result["mAP11"], result["AOSE@all"]
    (100.0, 1)
    """
    inputs.require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    loaded = load_manifest(manifest) if isinstance(manifest, str) else manifest
    part_of = _parts_by_name(loaded, wilderness_part)
    names = tuple(part_of)
    files: dict[str, Path] = inputs.by_name(detections, "--detections", "part", names, requested=names)
    sources = _sources(truth, loaded, part_of, reading)
    known = inputs.known_classes(sources["closed"], classes=classes, manifest=loaded, category_ids=category_ids)
    lists = _lists(loaded, part_of, sources)
    parts = {name: ground_truth(sources[name], known, lists.get(name)) for name in names}
    check_closed(parts["closed"])
    for name in names[1:]:
        check_wilderness(parts[name])
    others = dict.fromkeys(names[1:], parts["closed"]) | {"closed": parts[names[1]]}
    read = {
        name: read_detections(files[name], parts[name].truth, policy, others=others[name].truth)
        for name in steps(names, "reading detections")
    }
    closed, inside = parts["closed"].truth, read["closed"].detections
    wild = [(parts[name].truth, read[name].detections) for name in names[1:]]
    order, wilderness, outside = _wilderness(loaded, wild)
    scene = Scene(closed, inside, wilderness, outside)
    facts = inputs.about(
        known,
        {name: {"truth": parts[name].file, "detections": read[name].file} for name in names},
        manifest=inputs.manifest_record(loaded, wilderness_part=wilderness_part),
        option_files={"classes": classes},
    )
    listed = _ratio_parts(loaded, wilderness_part, wilderness)
    evaluated = evaluate_elephant(scene, options, part=wilderness_part, listed=listed, order=order)
    scored = [
        Scored(
            part=" + ".join(parts_of_row),
            variant=variant,
            method=stem_of(read["closed"].file),
            truth=truth_digests(facts, *slots),
            predictions={slot: read[slot].file for slot in slots},
            operating_point=point,
            # A class file replaces the manifest's classes: its digest is part of the truth.
            pinned=classes is None,
            found=of_part,
        )
        for variant, measured in evaluated.variants.items()
        for parts_of_row, slots, point, of_part in zip(
            (["closed"], ["closed", wilderness_part]),
            (["closed"], names),
            ({}, {"recalls": ", ".join(tenth_names(options.tenths))}),
            measures.by_part(measured),
            strict=True,
        )
    ]
    return Result(
        REPORT,
        {
            **facts,
            "variants": {name: VARIANTS[name.partition("_")[0]] for name in evaluated.variants},
            **evaluated.shared,
        },
        scored=scored,
        columns=lambda: precision_recall(
            closed.classes, inside, assign(closed, inside, replace(PAPER, difficult=options.difficult))
        ),
        outcomes=lambda: {PAPER.name: elephant_outcomes(scene, options, part=wilderness_part)},
    )


def _parts_by_name(manifest: Manifest | None, wilderness_part: str) -> dict[str, str]:
    """Return the names of truth and detections, ``closed`` first, with the part of the manifest for each.

    If the wilderness of a manifest has several sources, it is given by source.
    """
    if manifest is None:
        if wilderness_part != "wilderness":
            raise UsageError("--part wilderness=PART needs a manifest", expected="--manifest MANIFEST with a part PART")
        return {name: name for name in PARTS}
    several = manifest.part(wilderness_part).sources if manifest.header.rule.protocol == RULE else ()
    return {"closed": "closed"} | dict.fromkeys(several if len(several) > 1 else PARTS[1:], wilderness_part)


def _sources(
    truth: Mapping[str, Truth] | Truth, manifest: Manifest | None, part_of: Mapping[str, str], reading: Reading
) -> dict[str, Source]:
    """Return the truth: the files that are given, else the sources that the manifest remembers."""
    needed = PARTS if manifest is None else ()
    files: dict[str, Any] = inputs.by_name(truth, "--truth", "part", tuple(part_of), requested=needed)
    sources = {}
    if manifest is not None and len(part_of) > len(PARTS):
        # The datasets of the manifest determine the ids.
        names = [name for name in part_of if name != "closed"]
        slots = [slot for slot in manifest.slots if slot.name in names]
        sources = manifest.open_sources({name: files[name] for name in names if name in files}, slots=slots)
    for name in steps([name for name in part_of if name not in sources], "reading ground truth"):
        part = [part_of[name]]
        sources[name] = reading.open(files[name], name) if name in files else inputs.remembered_truth(manifest, part)
    return sources


def _lists(
    manifest: Manifest | None, part_of: Mapping[str, str], sources: Mapping[str, Source]
) -> dict[str, tuple[str, ...]]:
    """Return the ids of a manifest by the name of truth and detections."""
    if manifest is None:
        return {}
    _, *names = part_of
    part = part_of[names[0]]
    closed, wilderness = manifest.ids("closed"), manifest.ids(part)
    if part == WR1 and len(wilderness) < len(closed):
        raise EvaluationError(
            "There are fewer wilderness images than closed ones",
            where=f"part wr1 of {manifest.header.name}",
            expected=f"{len(closed)} images",
            found=str(len(wilderness)),
            hint="--part wilderness=wilderness takes all of them",
        )
    number, _ = positions_of(wilderness, [sources[name] for name in names])
    # An image that no source has is reported when the first source is read.
    owners = np.maximum(number, 0)
    ids = np.array(wilderness, object)
    return {"closed": closed} | {name: tuple(ids[owners == position].tolist()) for position, name in enumerate(names)}


def _wilderness(
    manifest: Manifest | None, parts: Sequence[tuple[GroundTruth, Detections]]
) -> tuple[str, GroundTruth, Detections]:
    """Return a description of the order of the wilderness images, and truth and detections in this order."""
    if manifest is None or manifest.header.rule.protocol != RULE:
        [(truth, detections)] = parts
        return "ascending image id", truth, detections
    description, order = level_order(manifest, [image for truth, _ in parts for image in truth.image_ids])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    starts = np.cumsum([0, *(truth.n_images for truth, _ in parts)])
    moved = [boxes.on(rank[start:]) for (_, boxes), start in zip(parts, starts, strict=False)]
    joined = moved[0] if len(moved) == 1 else Detections.joined(moved)
    return description, GroundTruth.joined([truth for truth, _ in parts], rank), joined


def _ratio_parts(manifest: Manifest | None, part: str, wilderness: GroundTruth) -> tuple[measures.Added, ...]:
    """Return the images of each list of a wilderness ratio, all of which are scored."""
    if manifest is None:
        return ()
    names = [entry.name for entry in manifest.header.parts if entry.subset_of == "wilderness" and entry.name != part]
    added = []
    for name in names if manifest.header.rule.protocol == RULE else [WR1]:
        listed = set(manifest.lists.get(name, ()))
        images = np.array([image in listed for image in wilderness.image_ids], bool)
        added += [measures.Added(name, images)] if 0 < len(listed) == int(images.sum()) else []
    return tuple(added)


class Evaluated(NamedTuple):
    """Output of `evaluate_elephant`: measurements of each variant, and facts that all variants share."""

    variants: dict[str, Measured]
    shared: dict[str, Any]


def evaluate_elephant(
    scene: Scene,
    options: ElephantOptions = OPTIONS,
    *,
    part: str = "wilderness",
    listed: Sequence[measures.Added] = (),
    order: str = "ascending image id",
) -> Evaluated:
    """Return every number of the protocol as rows; undefined ones are None with a reason.

    Parameters
    ----------
    part : str
        Name of the wilderness images of the scene.
    listed : sequence of Added
        Lists of wilderness ratios; ``wr1`` among them defines the wilderness images of ``diagnosis``.
    order : str
        Description of the order of the wilderness images.

    Returns
    -------
    Evaluated
        The requested variants: ``paper``, ``paper_difficult_counted``, ``official``, ``official_float32_counts``,
        ``paper_float32_counts``, …. Shared are the rows of `measures.SHARED` and the settings behind them.

    Raises
    ------
    UsageError, EvaluationError
        The options do not fit these parts.
    """
    closed, wilderness = scene.closed, scene.wilderness

    @cache
    def matched(difficult: Difficult) -> tuple[Matches, OperatingPoints]:
        matches = assign(closed, scene.inside, replace(PAPER, difficult=difficult))
        return matches, thresholds(matches, scene.inside, options.tenths)

    matches, points = matched(options.difficult)
    levels = open_set.wilderness_levels(closed.n_images, wilderness.n_images, counts=options.level_counts)
    wr1 = next((added for added in listed if added.name == WR1), None)
    added = measures.at_ratio_1(scene) if wr1 is None else wr1
    # A list of the whole part would repeat the rows of its levels.
    listed = [each for each in listed if not each.images.all()]
    owod, errors = measures.owod(scene.parts), measures.open_set_errors(scene.parts, points)
    variants: dict[str, Measured] = {}
    for name, variant, difficult, counts in steps(list(_variants(options)), "variants"):
        if variant == OFFICIAL.name:
            measured = measures.official(scene, recalls_tenths=options.tenths, counts=counts, listed=listed)
        else:
            measured = measures.paper(scene, *matched(difficult), levels, listed)
        variants[name] = measured._replace(values=[*measured.values, *errors.values, *owod.values])
    gaps = measures.background_gap(closed, scene.inside, matches)
    bootstrap: dict[str, Any] = {"intervals": []}
    if options.bootstrap:
        bootstrap = wilderness_intervals(
            scene,
            matches,
            levels=dict(zip(levels.names, levels.images.tolist(), strict=True)),
            recalls_tenths=options.tenths,
            replicates=options.bootstrap,
            seed=options.seed,
            difficult=options.difficult,
            listed=wr1,
        )
    tables: dict[str, list[Record]] = {
        "images": [
            {
                "part": name,
                "images": truth.n_images,
                "without_annotation": truth.n_images - len(distinct(truth.image)),
                "objects": len(truth.label),
                "known": int((truth.label >= 0).sum()),
                "unknown": int((truth.label < 0).sum()),
                "difficult": int(truth.difficult.sum()),
                "crowd": int(truth.crowd.sum()),
            }
            for name, (truth, _) in zip(("closed", part), scene.parts, strict=True)
        ],
        "detections": [
            {"part": of_part, "class": name, "detections": count}
            for of_part, (_, boxes) in zip(("closed", part), scene.parts, strict=True)
            for name, count in zip(
                closed.classes, np.bincount(boxes.label, minlength=len(closed.classes)).tolist(), strict=True
            )
        ],
        **errors.tables,
        **owod.tables,
        "diagnosis": measures.error_kinds(scene, matches, points, added),
        "overlaps": measures.class_overlaps(scene, points, added),
        "fbeta": measures.fbeta_operating_points(
            scene,
            matches,
            ratios=None if options.fbeta_ratios is None else _texts(options.fbeta_ratios),
            betas=_texts(options.betas),
            formula=options.fbeta_formula,
        ),
        **(gaps or {"background_gaps": [], "background_histogram": []}),
        "intervals": bootstrap.pop("intervals"),
    }
    return Evaluated(
        variants,
        {
            "variant": options.variant,
            "difficult": options.difficult,
            "level_counts": {options.level_counts: LEVEL_COUNTS[options.level_counts]},
            "definitions": measures.DEFINITIONS,
            "true_classes": list(measures.column_names(scene)),
            "wilderness_order": order,
            "fbeta_formula": {options.fbeta_formula: measures.FORMULAS[options.fbeta_formula]},
            "bootstrap": bootstrap or None,
            **tables,
            "undefined": {}
            if gaps
            else {"background_gaps": "the detections carry no background_score (only softmax detectors have one)"},
        },
    )


def elephant_outcomes(
    scene: Scene, options: ElephantOptions = OPTIONS, *, part: str = "wilderness"
) -> tuple[Outcomes, ...]:
    """Return the outcomes of the detections of both parts, matched by the paper's rules, with the count of A-OSE.

    ``kept_at`` marks the detections at or above the closed set's threshold of a recall; on the wilderness these
    are the FP_o of wilderness impact.
    """
    rules = replace(PAPER, difficult=options.difficult)
    points = thresholds(assign(scene.closed, scene.inside, rules), scene.inside, options.tenths)
    limits = dict(zip(recall_names(points), points.threshold, strict=True))
    outcomes = []
    for name, (truth, detections) in zip(("closed", part), scene.parts, strict=True):
        kept_at = {recall: detections.scores >= limit[detections.label] for recall, limit in limits.items()}
        outcomes.append(outcomes_by_class(truth, detections, rules, strict=OWOD.strict, part=name, kept_at=kept_at))
    return tuple(outcomes)


def _variants(options: ElephantOptions) -> Iterator[tuple[str, str, Difficult, LevelCounts]]:
    """Yield name, variant, treatment of difficult objects and rule for level counts of each requested variant."""
    difficult_rule, counted = options.difficult, options.level_counts
    variants: list[tuple[str, Difficult, LevelCounts]] = [(options.variant, difficult_rule, counted)]
    if options.variant == "all":
        variants = [("paper", "ignore", counted), ("paper", "count", counted)]
        variants += [("official", difficult_rule, "integer"), ("official", difficult_rule, "float32")]
    for variant, difficult, counts in variants:
        name = variant + ("_difficult_counted" if (variant, difficult) == ("paper", "count") else "")
        yield name + ("_float32_counts" if counts == "float32" else ""), variant, difficult, counts


def drawings(result: Result) -> Iterator[Figure]:
    """Yield the figures of a result: those of its first variant, and those of its closed matching."""
    data, first = result.data, next(scored for scored in result.scored if scored.found.tables)
    method, tables = first.method, first.found.tables if first.found else {}
    by_name = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in tables.items()
    }
    recalls = dict.fromkeys(row["recall"] for row in data["diagnosis"])
    recall = "0.3" if "0.3" in recalls else next(iter(recalls))
    overlaps = [row for row in data["overlaps"] if row["recall"] == recall]
    # The part with wilderness images, if there are enough.
    part = data["diagnosis"][-1]["part"]
    lies_on = [row for row in overlaps if row["part"] == part]
    known = [row["class"] for row in by_name["classes"]]
    # The intervals belong to the paper's variant.
    bands = {method: data["intervals"]} if first.variant.startswith(PAPER.name) else None
    marks = {method: by_name["operating_points"]} if "operating_points" in by_name else None
    has_errors = any(
        row["correct"] is not None and row["class"] != ALL_CLASSES
        for row in data["diagnosis"]
        if row["recall"] == recall
    )
    note = f"variant {first.variant.replace('_', ' ')}"
    curve = partial(wilderness_curve, {method: by_name}, intervals=bands, note=note)
    bars = partial(error_bars, data["diagnosis"], method, recall=recall)
    curves = partial(precision_recall_curves, {method: result.columns}, thresholds=marks, note="closed set")
    gaps = partial(background_histogram, data["background_gaps"], data["background_histogram"])
    yield Figure("wilderness_curve", curve)
    yield Figure("error_diagnosis", bars if has_errors else None)
    yield Figure("confusion", partial(confusion_figure, lies_on, known, data["true_classes"], note=f"recall {recall}"))
    yield Figure("precision_recall", curves if result.columns else None)
    yield Figure("background_gap", gaps if data["background_histogram"] else None)


def _tables(result: Result) -> Iterator[Table]:
    yield from tidy_tables(result)
    for table in SHARED:
        names = [column.name for column in table.columns]
        rows = [tuple(row[name] for name in names) for row in result.data[table.name]]
        printed = [row for row in rows if table.printed(row)] if table.printed else None
        title, file = table.title if rows else "", bool(rows) and table.name in REPORT.files
        yield Table(table.name, table.columns, rows, title, printed, file=file)


REPORT = Report(
    "elephant",
    measures.MEASURES,
    tables=_tables,
    drawings=drawings,
    # 2: official: closed images without annotation leave N.
    # 3: average precision is in %.
    # 4: measures of the closed set have separate rows; wr1 is the manifest's list.
    algorithm=4,
    # The other tables are in the CSV files of the figures.
    files=("measures", *(table.name for table in TABLES), "fbeta", "open_set_errors", "diagnosis", "background_gaps"),
    figures=("wilderness_curve", "error_diagnosis", "confusion", "precision_recall", "background_gap"),
    tidy=TABLES,
    places=("variant",),
)
