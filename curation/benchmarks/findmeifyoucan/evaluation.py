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
from curation.benchmarks.findmeifyoucan.layout import config_words
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
    MARKERS,
    SERIES,
    SMALL,
    add_key,
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
    known_classes,
    manifest_record,
    remembered_truth,
)
from curation.evaluation.matching import assign
from curation.evaluation.measures import Measure, Measured, Value, definitions
from curation.evaluation.open_world import CLEAN
from curation.evaluation.problem import Floats, GroundTruth, KnownClasses, class_file
from curation.evaluation.readers import read_detections
from curation.evaluation.resample import GENERATOR
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Tidy, stem_of, truth_digests
from curation.evaluation.score_files import unlike_precision
from curation.evaluation.tables import in_unit, sign_of
from curation.evaluation.truth import Part, ground_truth
from curation.evaluation.variants import select
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.object_rows import row_files
from curation.sources.source import Source

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

NO_KNOWN = KnownClasses((), (), "none: every object of an OOD split is unknown")
PLACES = 3
"""Decimals of rates in a result: the code prints as many."""
NO_OBJECTS = "N_U is 0: the split has no objects"
ONLY = "ood"
"""Name of a split without a name."""
MEASURES = fact(__package__, "measures", tuple[Measure, ...])
UNKNOWN_IF = "score < threshold (strict)"
BEST = "the highest confidence at which mAP50 on the ID test is highest: that of its last true positive"
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
"""Tables of a result."""
BINS = 60
_TAIL = 0.001


def detail(measured: Measured | None, name: str) -> float | None:
    """Return a number of the table ``details``, or None if it is undefined or was not measured."""
    table = measured.tables["details"] if measured else {"detail": (), "value": ()}
    return dict(zip(table["detail"], table["value"], strict=True)).get(name)


def _drawings(result: Result) -> Iterator[Figure]:
    for variant in dict.fromkeys(row.variant for row in result.scored):
        values: dict[str, dict[str, dict[str, float | None]]] = {}
        for row in result.scored:
            if row.variant == variant and row.found is not None:
                numbers = {value.measure: value.value for value in row.found.values if value.measure in _DRAWN}
                values.setdefault(row.score or UNNAMED, {})[row.split] = numbers
        if len({split for by_split in values.values() for split in by_split}) > 1:
            yield Figure(f"measures_{variant}", partial(measures_figure, values, variant=variant))
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


_DRAWN = ("AUROC", "FPR95", "nOSE", "AP_U", "P_U", "R_U")


def measures_figure(
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]], stem: Path, *, variant: str = ""
) -> list[Path]:
    """Draw measures of separation and of detection, split by split: a panel for each measure, a line for each score.

    Parameters
    ----------
    values : mapping of score to split to measure to float or None
        AUROC and FPR95 as shares, nOSE, AP_U, P_U and R_U in percent, as a result has them; None where undefined.
    stem : Path
        Path without suffix.
    variant : str
        Variant of the open-set measures, for the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    splits = list(dict.fromkeys(split for by_split in values.values() for split in by_split))
    units = {measure.base: measure.unit for measure in MEASURES}

    def percent(score: str, split: str, name: str) -> float:
        value = in_unit(values[score].get(split, {}).get(name), units[name], "%")
        return math.nan if value is None else float(value)

    rows = [
        (score, split, name, by_measure.get(name))
        for score, by_split in values.items()
        for split, by_measure in by_split.items()
        for name in _DRAWN
    ]

    def draw() -> matplotlib.figure.Figure:
        figure, axes = small_multiples(len(_DRAWN), height=1.9, sharex=True)
        for axis, name in zip(axes, _DRAWN, strict=True):
            for number, score in enumerate(values):
                axis.plot(
                    range(len(splits)), [percent(score, split, name) for split in splits],
                    color=SERIES[number % len(SERIES)], marker=MARKERS[number % len(MARKERS)], label=plain(score),
                    linestyle=("-", "--", ":")[number // len(SERIES) % 3], linewidth=1.2, clip_on=False,
                )  # fmt: skip
            is_better = next(measure.better for measure in MEASURES if measure.base == name)
            axis.set(title=f"{name} {sign_of(is_better, '%')}", xlim=(-0.3, len(splits) - 0.7))
            axis.set_ylim(bottom=0)
            axis.set_xticks(range(len(splits)), [plain(split, 24) for split in splits], rotation=90)
        add_key(figure, axes[:1])
        set_title(figure, "OOD scores over the splits", variant and f"open-set measures: variant {variant}")
        return figure

    return save_figure(draw, stem, ("score", "split", "measure", "value"), rows)


def ood_histograms(
    scores: Mapping[str, tuple[Floats, Floats]], thresholds: Mapping[str, float | None], method: str, stem: Path
) -> list[Path]:
    """Draw the distributions of ID and OOD scores of each split, with the threshold between known and unknown.

    Parameters
    ----------
    scores : mapping of split to (ID scores, OOD scores)
        Not all empty; a split that lacks either has no panel, and the title names it. The outermost 0.1 % at each end
        are counted in the first and the last bin.
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
    figures=("scores_*", "measures_*"),
    tidy=TABLES,
    places=("split", "score", "variant"),
)


@dataclass(frozen=True, kw_only=True)
class OodOptions:
    """Options of the evaluation.

    Attributes
    ----------
    variant : {"official", "paper", "all"}
        variant of the open-set metrics
    threshold : str
        zscore (the code), quantile (the paper), or a number; unknown: score < threshold
    fpr : {"first", "nearest", "ood_positive"}
        rule behind FPR95; the result holds all three
    t_star : str
        the detector's confidence cut: detections below it are left out; best: at the best mAP of the ID test, for
        which --id-truth is needed, and the ID detections as --scores
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
    id_truth: Path | None = None,
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
        COCO JSON, a dataset root, or the published dataset, of which SPLIT (coco-far) names a configuration (default:
        the sources that the manifest remembers)
    detections : Path, or mapping of str to Path
        COCO results JSON with ood_score, or records by image
    id_scores : Path, or mapping of str to Path
        OOD scores of the detections on the ID test set: JSON, .npy, .csv, or their detections file
    id_truth : Path, optional
        ground truth of the ID test set, for --set t_star=best
    classes : Path, optional
        {"known": [...], "unknown": [...]}
    reading : Reading
    policy : Policy
    manifest : str or Manifest, optional
        of each truth take the images of part SPLIT of this manifest
    score : sequence of str
        evaluate this OOD score (repeatable; default: ood_score, else all that both files have)
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
        Options contradict each other; a file does not exist or has invalid content.

    Examples
    --------
    >>> import curation, numpy, pandas, pathlib, tempfile
    >>> elk = {"image_id": 1, "category": "elk", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
    >>> detections = [{"image_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9, "ood_score": 0.2}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     id_scores = pathlib.Path(folder) / "id_scores.npy"
    ...     numpy.save(id_scores, [0.9, 0.8, 0.7])
    ...     result = curation.evaluate.findmeifyoucan(
    ...         truth=pandas.DataFrame([elk]), detections=detections, id_scores=id_scores, variant="official"
    ...     )
    >>> result["AUROC"], result["R_U"]
    (1.0, 100.0)
    """
    loaded = load_manifest(manifest) if isinstance(manifest, str) else manifest
    parts = () if loaded is None else tuple(part.name for part in loaded.header.parts)
    files: dict[str, Path] = by_name(detections, "--detections", "split", parts, unnamed=ONLY)
    names = tuple(files)
    if loaded is not None and isinstance(truth, Mapping) and not truth:
        truth = {name: remembered_truth(loaded, [name]) for name in names}
    truths: dict[str, Truth] = by_name(truth, "--truth", "split", parts or names, requested=names, shared=True)
    id_files: dict[str, Path] = by_name(id_scores, "--scores", "split", names, requested=names, shared=True)
    cuts = _cuts(options.t_star, id_truth, id_files, classes, reading, policy)
    class_reading = _classes(classes, id_classes, official_compat=official_compat)
    splits = {}
    for name in steps(names, "reading splits"):
        t_star = cuts[name]
        source = _of_split(reading, truths[name], name)
        part = ground_truth(source, NO_KNOWN, None if loaded is None else loaded.ids(name))
        read = read_ood_detections(files[name], part.truth, policy, classes=class_reading, t_star=t_star)
        read, ids = paired(read, read_id_scores(id_files[name], t_star=t_star, classes=class_reading))
        remarks = check_apart(read, ids, shared=shared_ids)
        methods = choose_methods(read, ids, score or None)
        remarks += _unlike(read, ids, methods)
        splits[name] = _Split(part, read, ids, methods, (*read.notes, *ids.notes, *remarks))
    about = _about(loaded, splits, options, cuts, {"classes": classes, "id_truth": id_truth}, class_reading, shared_ids)
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
            operating_point={
                "t_star": f"best, {cuts[name]:.7g}" if options.t_star == "best" else str(options.t_star or None),
                "threshold": str(detail(measured, "threshold")),
            },
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


def _of_split(reading: Reading, truth: Truth, split: str) -> Source:
    """Return the source of a split: of the published dataset, the configuration that the split names."""
    configs = row_files(truth) if isinstance(truth, Path) else {}
    fitting = [config for config in configs if set(config_words(split)) <= set(config_words(config))]
    return (replace(reading, image_set=fitting[0]) if len(fitting) == 1 else reading).open(truth)


def _cuts(
    text: str,
    id_truth: Path | None,
    id_files: Mapping[str, Path],
    classes: Path | None,
    reading: Reading,
    policy: Policy,
) -> dict[str, float | None]:
    """Return the confidence cut of each split, or None if no cut is requested."""
    if (text == "best") != (id_truth is not None):
        raise UsageError(
            "--set t_star=best and --id-truth need each other",
            expected="--set t_star=best --id-truth FILE --scores ID-DETECTIONS",
            found="--id-truth alone" if id_truth else "--set t_star=best alone",
        )
    if id_truth is None:
        return dict.fromkeys(id_files, _t_star(text))
    by_file = {path: best_t_star(id_truth, path, classes, reading, policy) for path in dict.fromkeys(id_files.values())}
    return {name: by_file[path] for name, path in id_files.items()}


def best_t_star(
    truth: Truth, detections: Path, classes: Path | None = None, reading: Reading = READING, policy: Policy = POLICY
) -> float:
    """Return the highest confidence cut at which mAP on the ID test is highest (IoU 0.5, area under the curve).

    A lower cut adds detections below all others, and AP is the area under the envelope of precision: it never falls,
    and rises with each true positive. So mAP is highest at every cut up to the lowest confidence of a true positive.

    Parameters
    ----------
    truth : Path or Source
        Objects of the ID test set.
    detections : Path
        Boxes, classes and confidences of the detector before any cut.
    classes : Path, optional
        The ID classes; by default the categories of the truth.

    Raises
    ------
    UsageError
        The file holds scores alone.
    EvaluationError
        No detection matches an object.
    """
    if detections.suffix.lower() in (".npy", ".npz", ".csv"):
        raise UsageError(
            "--set t_star=best needs the ID detections themselves",
            where=str(detections),
            expected="--scores FILE with image_id, bbox, category_id or category, score and ood_score or scores",
        )
    source = reading.open(truth)
    part = ground_truth(source, known_classes(source, classes=classes))
    read = read_detections(detections, part.truth, policy).detections
    correct = assign(part.truth, read, CLEAN).outcome == 1
    if not correct.any():
        raise EvaluationError(
            "No detection matches an object of the ID test, so no cut has a best mAP",
            where=f"{detections}: {len(read)} detections",
            expected="detections and truth of the same ID test set",
        )
    return float(read.scores[correct].min())


def _t_star(text: str) -> float | None:
    if not text:
        return None
    value = decimal_value(text)
    if not math.isfinite(value):
        raise UsageError("--set t_star is not a number", expected="a confidence such as 0.39, or best", found=text[:80])
    return value


def _classes(classes: Path | None, k: int | None, *, official_compat: bool) -> ClassReading:
    if classes is not None:
        listed = len(class_file(classes).known)
        if k not in (None, listed):
            raise UsageError("--set id_classes and --classes disagree", expected=f"{listed} classes", found=str(k))
        k = listed
    return ClassReading(k, official_compat)


def _about(
    manifest: Manifest | None,
    splits: Mapping[str, _Split],
    options: OodOptions,
    cuts: Mapping[str, float | None],
    files: Mapping[str, Path | None],
    reading: ClassReading,
    shared_ids: str,
) -> dict[str, Any]:
    """Return the facts behind the numbers: versions, rules, digests, and counts of records left out."""
    rule = options.threshold if options.threshold in THRESHOLD_RULES else "given"
    return {
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "known_classes_from": NO_KNOWN.origin,
        "manifest": manifest_record(manifest, parts=list(splits)),
        "option_files": file_records(files),
        "inputs": {name: split.file for name, split in splits.items()},
        "variants": {variant.name: variant.meaning for variant in select(VARIANTS, options.variant)},
        "settings": {
            "positive_class": "ID (higher score = ID), except in FPR95_ood_positive",
            "threshold": {"rule": rule, "meaning": THRESHOLD_RULES[rule], "unknown": UNKNOWN_IF},
            "fpr": {"rule": options.fpr, "meaning": DEFINITIONS[FPR_KEYS[options.fpr]]},
            "t_star": options.t_star or None,
            **({"t_star_by_split": dict(cuts), "t_star_meaning": BEST} if options.t_star == "best" else {}),
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
        Name of the score.

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
        sample = ImageSample.from_matches(truth, detections, id_scores, method, outcomes)
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

    ``threshold_margin`` is the distance to the nearest OOD score: a smaller change of the threshold changes no
    detection. ``pct_images_without_predictions`` has 2 decimals (Table 1 of the paper).
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
    read: ReadOodDetections, id_scores: IdScores, requested: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """Return the scores that both files have, or the `requested` ones; see `paired` for files without names.

    The order is that of `requested`, else: scores that the files name, then those computed from logits.

    Raises
    ------
    EvaluationError
        A score is missing from one of the files, or they have none in common.
    """
    ood_names, id_names = list(read.detections.scores), list(id_scores.scores)
    common = [name for name in ood_names if name in id_names]
    missing = [name for name in requested or () if name not in common]
    if missing or not common:
        raise EvaluationError(
            f"The score {missing[0]!r} is not in both files" if missing else "The files have no OOD score in common",
            where=f"{read.name} and {id_scores.name}"[:300],
            expected="a score with the same name in both: ood_score, or scores: {NAME: number}, of each detection",
            found=f"detections: {', '.join(ood_names) or 'none'}; ID: {', '.join(id_names) or 'none'}"[:300],
            hint="curation scores --test NPZ --out FILE computes MSP, energy and others from logits and features",
        )
    if requested:
        return tuple(dict.fromkeys(requested))
    return (UNNAMED,) if UNNAMED in common else tuple(common)


def paired(read: ReadOodDetections, id_scores: IdScores) -> tuple[ReadOodDetections, IdScores]:
    """Return both inputs with equal names: a score without a name takes the only name of the other file.

    A detections file without records takes the names of the ID scores.
    """
    oods, ids = dict(read.detections.scores), dict(id_scores.scores)
    if not len(read.detections) and not oods:
        oods = {name: np.empty(0) for name in ids}
    elif UNNAMED in oods and UNNAMED not in ids and len(ids) == 1:
        oods = {next(iter(ids)): oods[UNNAMED]}
    elif UNNAMED in ids and UNNAMED not in oods and len(oods) == 1:
        ids = {next(iter(oods)): ids[UNNAMED]}
    return replace(read, detections=replace(read.detections, scores=oods)), replace(id_scores, scores=ids)


def _unlike(read: ReadOodDetections, ids: IdScores, methods: Sequence[str]) -> list[str]:
    """Return a warning about scores with different precision in the two files."""
    pairs = [
        {
            f"the ID file {ids.name}": (ids.stored, ids.scores[method]),
            f"the OOD file {read.name}": ("float64", read.detections.scores[method]),
        }
        for method in methods
    ]
    return sorted({warning for pair in pairs if (warning := unlike_precision(pair))})


def check_apart(read: ReadOodDetections, id_scores: IdScores, *, shared: str = "error") -> list[str]:
    """Return warnings about images that the ID file and the OOD file share.

    Parameters
    ----------
    shared : {"error", "report"}
        Use ``report`` if equal ids of two datasets mean different images (VOC 000009, COCO 9).

    Raises
    ------
    EvaluationError
        Both are the same file, the logits have different lengths, or they share images under ``error``.
    """
    if read.sha256 == id_scores.sha256 and read.rows:
        raise EvaluationError(
            "The ID scores and the OOD detections are the same file",
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
            hint="--on-error shared-ids=report, if equal numbers mean different images (VOC 000009 and COCO 9)",
        )
    return [message]
