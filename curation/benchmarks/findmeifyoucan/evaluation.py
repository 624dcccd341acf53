"""All measures of an OOD split of FindMeIfYouCan, or of another pair, for each score."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.findmeifyoucan.detections import (
    UNNAMED,
    ClassReading,
    IdScores,
    OodDetections,
    ReadOodDetections,
    read_id_scores,
    read_ood_detections,
)
from curation.benchmarks.findmeifyoucan.measures import (
    FPR_KEYS,
    THRESHOLD_RULES,
    VARIANTS,
    ImageSample,
    bootstrap_intervals,
    decimal_value,
    open_set_counts,
    open_set_outcomes,
    open_set_rates,
    quantile_threshold,
    separability,
    threshold_of,
    unknown_detections,
    why_zero,
    zscore_threshold,
)
from curation.core.arguments import Replicates, Seed
from curation.core.columns import distinct
from curation.core.errors import EvaluationError, UsageError
from curation.core.figures import (
    INK,
    SERIES,
    SMALL,
    bins_of,
    label_outer,
    plain,
    save_figure,
    set_title,
    small_multiples,
)
from curation.core.process import steps
from curation.evaluation.inputs import (
    POLICY,
    READING,
    Policy,
    Reading,
    Truth,
    by_name,
    file_records,
    manifest_record,
    remembered_truth,
)
from curation.evaluation.measures import Measure, Measured, Value, definitions
from curation.evaluation.problem import Floats, GroundTruth, KnownClasses, class_names
from curation.evaluation.resample import GENERATOR
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Tidy, stem_of, truth_digests
from curation.evaluation.score_files import unlike_precision
from curation.evaluation.truth import Part, ground_truth
from curation.evaluation.variants import select
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

NO_KNOWN = KnownClasses((), (), "none: every object of an OOD split is unknown")
PLACES = 3
"""Decimals of rates in a result: the code prints as many."""
NO_OBJECTS = "N_U is 0: the split has no objects"
ONLY = "ood"
"""Name of a split that nothing names."""
MEASURES = fact(__package__, "measures", tuple[Measure, ...])
UNKNOWN_IF = "score < threshold (strict)"
DEFINITIONS = definitions(MEASURES, **fact(__package__, "definitions", dict[str, str]))
_SHOWN_DETAILS = (
    "threshold", "id_share_at_least_threshold", "images", "pct_images_without_predictions", "id_detections",
    "ood_detections", "unknown_detections",
)  # fmt: skip
TABLES = (
    Tidy(
        "details",
        (Column("detail"), Column("value", "count", show=".7g")),
        title="Thresholds and counts",
        printed=lambda row: row[0] in _SHOWN_DETAILS,
    ),
    Tidy(
        "intervals",
        (Column("measure"), *(Column(name, "score", show=".3f") for name in ("estimate", "low", "high")),
         Column("undefined", "count", text=False)),
        title="95 % bootstrap intervals over images",
    ),
)  # fmt: skip
"""What a result has beside its measures."""
BINS = 60
_TAIL = 0.001


def detail(measured: Measured | None, name: str) -> float | None:
    """Return a number of the table ``details``, None where it is undefined or nothing was measured."""
    table = measured.tables["details"] if measured else {"detail": (), "value": ()}
    return dict(zip(table["detail"], table["value"], strict=True)).get(name)


def _drawings(result: Result) -> Iterator[Figure]:
    for number, (method, by_split) in enumerate(result.columns.items(), 1):
        is_drawn = any(all(map(len, pair)) for pair in by_split.values())
        thresholds = {
            row.split: detail(row.found, "threshold") for row in result.scored if (row.score or UNNAMED) == method
        }
        is_plain = method.isascii() and method.isidentifier() and len(method) <= 40
        yield Figure(
            f"scores_{method if is_plain else number}",
            partial(ood_histograms, by_split, thresholds, method) if is_drawn else None,
            f"no histogram of {method}: a split needs ID and OOD detections",
        )


def ood_histograms(
    scores: Mapping[str, tuple[Floats, Floats]], thresholds: Mapping[str, float | None], method: str, stem: Path
) -> list[Path]:
    """Draw the distributions of ID and OOD scores of each split, with the threshold between known and unknown.

    Parameters
    ----------
    scores : mapping of split to (ID scores, OOD scores)
        Not all empty; a split that lacks either has no panel, and the title names it. The outermost 0.1 % at
        either end are counted in the first and the last bin.
    thresholds : mapping of split to float or None
    method : str
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV with the counts of each bin.
    """
    counted = {split: _histogram(*pair) for split, pair in scores.items() if all(map(len, pair))}
    lacking = [split for split in scores if split not in counted]
    note = f"; no ID or no OOD detections: {', '.join(lacking)}" if lacking else ""
    rows = [
        (split, *row, thresholds[split])
        for split, (edges, ids, oods) in counted.items()
        for row in zip(edges[:-1].tolist(), edges[1:].tolist(), ids.tolist(), oods.tolist(), strict=True)
    ]

    def draw() -> matplotlib.figure.Figure:
        figure, axes = small_multiples(len(counted), height=2.3)
        for axis, (split, histogram) in zip(axes, counted.items(), strict=True):
            _draw_histogram(axis, plain(split), histogram, thresholds[split])
        label_outer(axes, f"{plain(method)} (higher is more ID)", "share of detections (%)")
        set_title(figure, "Scores of ID and OOD detections", f"score {method}{note}")
        return figure

    header = ("split", "from", "to", "id_detections", "ood_detections", "threshold")
    return save_figure(draw, stem, header, rows)


def _histogram(ids: Floats, oods: Floats) -> tuple[Floats, Any, Any]:
    pooled = np.concatenate([ids, oods])
    low, high = np.quantile(pooled, [_TAIL, 1 - _TAIL]).tolist()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins_of(min(len(ids), len(oods)), BINS) + 1)
    counts = [np.histogram(np.clip(values, low, high), edges)[0] for values in (ids, oods)]
    return edges, counts[0], counts[1]


def _draw_histogram(axis: Axes, split: str, histogram: tuple[Floats, Any, Any], threshold: float | None) -> None:
    edges, *counts = histogram
    for values, colour, label in zip(counts, SERIES, ("ID", "OOD"), strict=False):
        share = 100 * values / values.sum()
        axis.stairs(share, edges, color=colour, fill=True, alpha=0.28)
        axis.stairs(share, edges, color=colour, linewidth=1.4, label=f"{label}, n = {int(values.sum()):,}")
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        axis.axvline(threshold, color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}")
    elif threshold is not None:
        axis.plot([], [], color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}, outside")
    axis.set_title(split)
    axis.set_ylim(0, 1.5 * axis.get_ylim()[1])
    axis.legend(loc="upper left", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")


REPORT = Report(
    "findmeifyoucan",
    MEASURES,
    drawings=_drawings,
    # 2: P_U is undefined without objects.
    algorithm=2,
    files=tuple(table.name for table in TABLES),
    figures=("scores_*",),
    tidy=TABLES,
    places=("split", "score", "variant"),
)


@dataclass(frozen=True, kw_only=True)
class OodOptions:
    """What to compute.

    Attributes
    ----------
    variant : {"official", "paper", "all"}
        variant of the open-set metrics
    threshold : str
        zscore (the code), quantile (the paper), or a number; unknown: score < threshold
    fpr : {"first", "nearest", "ood_positive"}
        rule behind FPR95; the result holds all three
    t_star : str
        the detector's confidence cut: written to the result, and detections below it are left out
    bootstrap : int
        replicates of confidence intervals
    seed : int
        of the bootstrap
    """

    variant: Literal["official", "paper", "all"] = "all"
    threshold: Annotated[str, "RULE"] = "zscore"
    fpr: Literal["first", "nearest", "ood_positive"] = "first"
    t_star: Annotated[str, "T"] = ""
    bootstrap: Replicates = 0
    seed: Seed = 0


OPTIONS = OodOptions()


@dataclass(frozen=True, slots=True)
class _Split:
    """The inputs of a split."""

    part: Part
    read: ReadOodDetections
    id_scores: IdScores
    methods: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def file(self) -> dict[str, Any]:
        return {"truth": self.part.file, "detections": self.read.file, "id_scores": self.id_scores.file}


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "[SPLIT=]FILE"] = MappingProxyType({}),
    detections: Annotated[Mapping[str, Path] | Path, "[SPLIT=]FILE"],
    id_scores: Annotated[Mapping[str, Path] | Path, "[SPLIT=]FILE"],
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Policy = POLICY,
    manifest: Annotated[str | Manifest | None, "MANIFEST"] = None,
    score: Annotated[tuple[str, ...], "NAME"] = (),
    id_classes: Annotated[int | None, Meta(ge=1), "K"] = None,
    official_compat: bool = False,
    shared_ids: Literal["error", "report"] = "error",
    options: OodOptions = OPTIONS,
) -> Result:
    """Score out-of-distribution detection: AUROC, AUPR, FPR95, nOSE, AOSE, P_U, R_U, AP_U.

    Parameters
    ----------
    truth : Path or Source, or mapping of str to such
        COCO JSON, or a dataset root (default: the sources that the manifest remembers)
    detections : Path, or mapping of str to Path
        COCO results JSON with ood_score, or records by image
    id_scores : Path, or mapping of str to Path
        OOD scores of the detections on the ID test set: JSON, .npy, .csv, or their detections file
    classes : Path, optional
        {"known": [...], "unknown": [...]}
    reading : Reading
    policy : Policy
    manifest : str or Manifest, optional
        of each truth take the images of part SPLIT of this manifest
    score : sequence of str
        evaluate this OOD score (repeatable; default: ood_score, else all that both files give)
    id_classes : int, optional
        ID classes: logits of length K + 1 end with a background column
    official_compat : bool
        as the code: class and confidence from all logits, and the background (index K) is unknown
    shared_ids : {"error", "report"}
        image ids that the ID file and the OOD file share
    options : OodOptions

    Raises
    ------
    UsageError, MissingFileError, EvaluationError, PredictionError
        Options do not fit together; a file is not there, or does not hold what it should.
    """
    loaded = load_manifest(manifest) if isinstance(manifest, str) else manifest
    parts = () if loaded is None else tuple(part.name for part in loaded.header.parts)
    files: dict[str, Path] = by_name(detections, "--detections", "split", parts, unnamed=ONLY)
    names = tuple(files)
    if loaded is not None and isinstance(truth, Mapping) and not truth:
        truth = {name: remembered_truth(loaded, [name]) for name in names}
    truths: dict[str, Truth] = by_name(truth, "--truth", "split", parts or names, wanted=names, shared=True)
    id_files: dict[str, Path] = by_name(id_scores, "--scores", "split", names, wanted=names, shared=True)
    t_star, class_reading = (_t_star(options.t_star), _classes(classes, id_classes, official_compat=official_compat))
    splits = {}
    for name in steps(names, "reading splits"):
        source = reading.open(truths[name])
        part = ground_truth(source, NO_KNOWN, None if loaded is None else loaded.ids(name))
        read = read_ood_detections(files[name], part.truth, policy, classes=class_reading, t_star=t_star)
        read, ids = paired(read, read_id_scores(id_files[name], t_star=t_star, classes=class_reading))
        remarks = check_apart(read, ids, shared=shared_ids)
        methods = choose_methods(read, ids, score or None)
        remarks += _unlike(read, ids, methods)
        splits[name] = _Split(part, read, ids, methods, (*read.notes, *ids.notes, *remarks))
    about = _about(loaded, splits, options, classes, class_reading, shared_ids)
    scored = [
        Scored(
            part=name,
            split=name,
            variant=variant,
            method=stem_of(split.read.file),
            score="" if method == UNNAMED else method,
            truth=truth_digests(about, name),
            predictions={"detections": split.read.file, "id_scores": split.id_scores.file},
            settings={
                "threshold": about["settings"]["threshold"]["rule"],
                "fpr": options.fpr,
                "official_compat": str(official_compat).lower(),
            },
            operating_point={"t_star": str(options.t_star or None), "threshold": str(detail(measured, "threshold"))},
            found=measured._replace(notes=(*split.notes, *measured.notes)),
        )
        for name, split in splits.items()
        for method in steps(split.methods, f"evaluating {name}")
        for variant, measured in evaluate_split(
            split.part.truth, split.read.detections, split.id_scores, method, options
        ).items()
    ]
    names_of_scores = dict.fromkeys(method for split in splits.values() for method in split.methods)
    return Result(
        REPORT,
        about,
        scored=scored,
        columns={
            method: {
                name: (split.id_scores.scores[method], split.read.detections.scores[method])
                for name, split in splits.items()
                if method in split.methods
            }
            for method in names_of_scores
        },
        notes=[note for row in scored if row.found for note in row.found.notes],
    )


def _t_star(text: str) -> float | None:
    if not text:
        return None
    value = decimal_value(text)
    if not math.isfinite(value):
        raise UsageError("--set t_star is not a number", expected="a confidence such as 0.39", found=text[:80])
    return value


def _classes(classes: Path | None, k: int | None, *, official_compat: bool) -> ClassReading:
    if classes is not None:
        listed = len(class_names(classes))
        if k not in (None, listed):
            raise UsageError("--set id_classes and --classes disagree", expected=f"{listed} classes", found=str(k))
        k = listed
    return ClassReading(k, official_compat)


def _about(
    manifest: Manifest | None,
    splits: Mapping[str, _Split],
    options: OodOptions,
    classes: Path | None,
    reading: ClassReading,
    shared_ids: str,
) -> dict[str, Any]:
    """Return what the numbers rest on: versions, rules, digests of all inputs, and what was left out."""
    rule = options.threshold if options.threshold in THRESHOLD_RULES else "given"
    return {
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "known_classes_from": NO_KNOWN.origin,
        "manifest": manifest_record(manifest, parts=list(splits)),
        "option_files": file_records({"classes": classes}),
        "inputs": {name: split.file for name, split in splits.items()},
        "variants": {variant.name: variant.meaning for variant in select(VARIANTS, options.variant)},
        "settings": {
            "positive_class": "ID (higher score = ID), except in FPR95_ood_positive",
            "threshold": {"rule": rule, "meaning": THRESHOLD_RULES[rule], "unknown": UNKNOWN_IF},
            "fpr": {"rule": options.fpr, "meaning": DEFINITIONS[FPR_KEYS[options.fpr]]},
            "t_star": options.t_star or None,
            "t_star_reason": None if options.t_star else "not stated: the files are taken as cut already",
            "id_classes": reading.n_classes,
            "official_compat": reading.official_compat,
            "ties": "equal confidence: by image id, then file order",
            "shared_ids": shared_ids,
        },
        "bootstrap": None
        if not options.bootstrap
        else {
            "definition": fact(__package__, "bootstrap", str),
            "generator": GENERATOR.format("image count"),
            "replicates": options.bootstrap,
            "seed": options.seed,
        },
        "definitions": DEFINITIONS,
    }


def evaluate_split(
    truth: GroundTruth, detections: OodDetections, id_scores: IdScores, method: str, options: OodOptions = OPTIONS
) -> dict[str, Measured]:
    """Return the measures of a split under a score by the name of the variant; separability is the same in all.

    Parameters
    ----------
    truth : GroundTruth
        The images and objects of the split, made with `NO_KNOWN`.
    method : str
        Which score.

    Raises
    ------
    UsageError
        No such threshold or variant.
    """
    ids, oods = id_scores.scores[method], detections.scores[method]
    threshold = threshold_of(ids, options.threshold)
    separated = separability(ids, oods)
    missing = [name for name, values in (("ID", ids), ("OOD", oods)) if not len(values)]
    values = [
        Value(name, value, n=n, undefined=f"there are no {' and no '.join(missing)} detections" if missing else "")
        for name, value, n in (
            *((name, value, len(detections)) for name, value in separated.items()),
            ("FPR95", separated[FPR_KEYS[options.fpr]], None),
        )
    ]
    details = _details(truth, detections, ids, oods, threshold)
    rules = select(VARIANTS, options.variant)
    if threshold is None:
        reason = "there are no ID scores, hence no threshold"
        values += [Value(measure.key, None, undefined=reason) for measure in MEASURES if measure.unit in ("%", "count")]
        return {rule.name: Measured(values, {"details": _table(details)}) for rule in rules}
    unknown = unknown_detections(detections, method, threshold)
    outcomes = [open_set_outcomes(truth, detections, unknown, rule) for rule in rules]
    intervals = {}
    if options.bootstrap:
        sample = ImageSample.of(truth, detections, id_scores, method, outcomes)
        intervals = bootstrap_intervals(sample, replicates=options.bootstrap, seed=options.seed)
    by_variant = {}
    for outcome in outcomes:
        rates = open_set_rates(outcome)
        rounded = {name: None if rate is None else round(rate, PLACES) for name, rate in rates.items()}
        open_set = [
            Value(name, value, n=outcome.n_objects, undefined="" if outcome.n_objects else NO_OBJECTS)
            for name, value in {**rounded, **open_set_counts(outcome)}.items()
        ]
        extra = {
            "unknown_detections": int(unknown.sum()),
            **{f"{name}_unrounded": rate for name, rate in rates.items()},
        }
        tables = {"details": _table(details | extra)}
        if intervals:
            tables["intervals"] = _intervals(intervals, outcome.rules.name)
        by_variant[outcome.rules.name] = Measured([*values, *open_set], tables, why_zero(outcome))
    return by_variant


def _details(
    truth: GroundTruth, detections: OodDetections, ids: Floats, oods: Floats, threshold: float | None
) -> dict[str, float | None]:
    """Return thresholds and counts that are the same in all variants.

    ``threshold_margin`` is the distance of the nearest OOD score: how far the threshold may move before a detection
    becomes known or unknown. ``pct_images_without_predictions`` has 2 decimals (Table 1 of the paper).
    """
    n, without = truth.n_images, truth.n_images - len(distinct(detections.image))
    return {
        "threshold": threshold,
        "threshold_margin": None if threshold is None or not len(oods) else float(np.abs(oods - threshold).min()),
        "threshold_zscore": zscore_threshold(ids),
        "threshold_quantile": quantile_threshold(ids),
        "id_share_at_least_threshold": None if threshold is None or not len(ids) else float((ids >= threshold).mean()),
        "images": n,
        "images_without_predictions": without,
        "pct_images_without_predictions": round(100 * without / n, 2) if n else None,
        "images_without_annotation": n - len(distinct(truth.image)),
        "crowd": int(truth.crowd.sum()),
        "id_detections": len(ids),
        "ood_detections": len(detections),
        "ood_detections_below_threshold": None if threshold is None else int((oods < threshold).sum()),
        "background_taken_as_unknown": int(detections.background.sum()),
    }


def _table(details: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {"detail": list(details), "value": list(details.values())}


def _intervals(intervals: Mapping[str, Mapping[str, Any]], variant: str) -> dict[str, list[Any]]:
    """Return the intervals of the scores and of a variant's rates, as columns."""
    variant_cells = {
        name.removeprefix(f"{variant}."): cell
        for name, cell in intervals.items()
        if "." not in name or name.startswith(f"{variant}.")
    }
    keys = ("estimate", "low", "high", "undefined")
    return {"measure": list(variant_cells), **{key: [cell[key] for cell in variant_cells.values()] for key in keys}}


def choose_methods(
    read: ReadOodDetections, id_scores: IdScores, wanted: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """Return the scores that both files give, or those `wanted`; see `paired` for files without names.

    The order is that of `wanted`, else: scores that the files name, then those that follow from logits.

    Raises
    ------
    EvaluationError
        A score is missing from one of the files, or they have none in common.
    """
    ours, theirs = list(read.detections.scores), list(id_scores.scores)
    common = [name for name in ours if name in theirs]
    missing = [name for name in wanted or () if name not in common]
    if missing or not common:
        raise EvaluationError(
            f"The score {missing[0]!r} is not in both files" if missing else "The files have no OOD score in common",
            where=f"{read.name} and {id_scores.name}"[:300],
            expected="a score of one name in the detections and in the ID scores",
            found=f"detections: {', '.join(ours) or 'none'}; ID: {', '.join(theirs) or 'none'}"[:300],
            hint="curation scores computes MSP, energy, GEN, kNN and others from logits and features",
        )
    if wanted:
        return tuple(dict.fromkeys(wanted))
    return (UNNAMED,) if UNNAMED in common else tuple(common)


def paired(read: ReadOodDetections, id_scores: IdScores) -> tuple[ReadOodDetections, IdScores]:
    """Return both with names that agree: a score without a name is the only one of the other file.

    A detections file without records takes the names of the ID scores.
    """
    ours, theirs = dict(read.detections.scores), dict(id_scores.scores)
    if not len(read.detections) and not ours:
        ours = {name: np.empty(0) for name in theirs}
    elif UNNAMED in ours and UNNAMED not in theirs and len(theirs) == 1:
        ours = {next(iter(theirs)): ours[UNNAMED]}
    elif UNNAMED in theirs and UNNAMED not in ours and len(ours) == 1:
        theirs = {next(iter(ours)): theirs[UNNAMED]}
    return replace(read, detections=replace(read.detections, scores=ours)), replace(id_scores, scores=theirs)


def _unlike(read: ReadOodDetections, ids: IdScores, methods: Sequence[str]) -> list[str]:
    """Return what is to be said of scores that the two files hold with unlike digits."""
    pairs = [
        {
            f"the ID file {ids.name}": (ids.stored, ids.scores[method]),
            f"the OOD file {read.name}": ("float64", read.detections.scores[method]),
        }
        for method in methods
    ]
    return sorted({warning for pair in pairs if (warning := unlike_precision(pair))})


def check_apart(read: ReadOodDetections, id_scores: IdScores, *, shared: str = "error") -> list[str]:
    """Return what to tell about images that the ID file and the OOD file share; none is the rule.

    Parameters
    ----------
    shared : {"error", "report"}
        Integer ids of two datasets may be equal and mean different images (VOC 000009, COCO 9): then ``report``.

    Raises
    ------
    EvaluationError
        They are one file, the logits have different lengths, or they share images under ``error``.
    """
    if read.sha256 == id_scores.sha256 and read.rows:
        raise EvaluationError(
            "The ID scores and the OOD detections are one file",
            where=f"{id_scores.name}, {read.name}",
            found=read.sha256,
        )
    lengths = (read.logits_length, id_scores.logits_length)
    if None not in lengths and lengths[0] != lengths[1]:
        raise EvaluationError(
            "The logits of the ID file and of the OOD file have different lengths",
            where=f"{id_scores.name}, {read.name}",
            expected="one detector's output on both",
            found=f"{lengths[1]} (ID) and {lengths[0]} (OOD)",
        )
    common = sorted(read.image_ids & set(id_scores.images or ()))
    if not common:
        return []
    message = f"the ID file and the OOD file share {len(common)} image ids: {', '.join(common[:3])}"
    if shared == "error":
        raise EvaluationError(
            "The ID file and the OOD file share images",
            where=f"{id_scores.name}, {read.name}",
            expected="no image in both",
            found=f"{len(common)}: {', '.join(common[:3])}"[:300],
            hint="where equal numbers mean different images (VOC 000009 and COCO 9): --on-error shared-ids=report",
        )
    return [message]
