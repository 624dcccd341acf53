"""Open-set detection with defined unknowns: the ground truth of a case, and the measures of a detector.

Average precision of known classes and of ``unknown``; A-OSE and WI as functions of the confidence threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from curation.benchmarks.benchmark import benchmark_facts, fact
from curation.core.errors import EvaluationError, UsageError
from curation.core.figures import (
    MARKERS,
    SERIES,
    add_key,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)
from curation.core.process import steps
from curation.evaluation.coco_precision import coco_precision
from curation.evaluation.inputs import (
    READING,
    CategoryIds,
    Policy,
    Reading,
    Truth,
    by_name,
    manifest_record,
    remembered_truth,
    require_manifest_for_ids,
)
from curation.evaluation.matching import assign, positives
from curation.evaluation.measures import Measure, Measured, Value, formulas
from curation.evaluation.open_set import counts_at_thresholds, lies_on, pairs_on
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import (
    UNKNOWN,
    Bools,
    ClassRoles,
    Detections,
    GroundTruth,
    Stray,
    class_file,
    files_of,
    numbered,
)
from curation.evaluation.readers import Boxes, ReadDetections, read_task_detections
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Table, Tidy, stem_of, tidy_tables
from curation.evaluation.truth import TaskTruth, task_truth
from curation.evaluation.variants import Rules, select
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

AVERAGES = ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75")
MEASURES = fact(__package__, "measures", tuple[Measure, ...])
DEFINITIONS = formulas(MEASURES, "AP_known", "AP_unk", "AOSE", "FP_open", "WI", "WI_all_fp")


TABLES = (
    Tidy("thresholds", (
        Column("theta", show="g"), *(Column(name, "count") for name in ("TP", "FP", "AOSE", "FP_open")),
        *(Column(name, "ratio", text=name[0] == "W") for name in ("WI", "WI_all_fp", "P_K", "P_KU")),
    ), title="Detections of known classes with score >= theta", printed=lambda row: round(100 * row[0]) % 20 == 0),
    Tidy("average_precision", (Column("class"), Column("AP", "%"))),
    Tidy("counts", (Column("count"), Column("value"))),
)  # fmt: skip
"""Further tables of a result, with a row for each threshold, class or count."""

Crowd = Literal["ignore", "keep", "drop"]
CROWD, OUTSIDE, _TAXONOMY_NOTES = (fact(__package__, key, dict[str, str]) for key in ("crowd", "outside", "taxonomies"))


@dataclass(frozen=True, slots=True)
class TruthView:
    """Treatment of objects of a truth, in addition to the role of their class (known, unknown, outside).

    Attributes
    ----------
    crowd : {"ignore", "keep", "drop"}
        Group boxes; see `CROWD`.
    ignored : tuple of str
        Classes whose objects are ignored regions of unknown, regardless of other outside classes: inner nodes.
    marked_ignored : bool
        Whether objects that the truth marks ``ignore`` or ``difficult`` are ignored regions of their class, or ordinary
        objects as in COCO. An exported truth has such marks on objects that its view ignores, such as drawings.
    """

    crowd: Crowd = "ignore"
    ignored: tuple[str, ...] = ()
    marked_ignored: bool = False


def truth_view(manifest: Manifest, part: str) -> TruthView:
    """Return the view of a manifest's part as the evaluation applies it."""
    view = manifest.part(part).view
    ignored = [entry.name for entry in manifest.header.classes if getattr(view, entry.role) == "ignore"]
    crowd: Crowd = "keep" if view.crowd == "keep" else "drop" if view.crowd == "drop" else "ignore"
    return TruthView(crowd, tuple(ignored), "ignore" in (view.difficult, view.depiction))


Outside = Literal["delete", "ignore"]
TAXONOMIES = ("OSOD-I", "OSOD-II", "OSOD-III")


Variant = Literal["clean", "voc"]
ONLY = "test"
"""Name of the case if there is only one."""
VARIANTS = {rules["name"]: Rules(**rules) for rules in benchmark_facts(__package__)["variants"]}
THETAS = tuple(f"{step / 20:.2f}" for step in range(21))


def thresholds_of(thetas: Sequence[str]) -> list[float]:
    """Return confidence thresholds from decimal numbers; raise `UsageError` if they do not ascend."""
    try:
        values = [float(theta) for theta in thetas]
    except ValueError:
        values = []
    if not values or not all(np.isfinite(values)) or values != sorted(set(values)):
        raise UsageError(
            "Invalid confidence thresholds",
            expected="finite decimal numbers in ascending order",
            found=", ".join(thetas)[:80],
        )
    return values


@dataclass(frozen=True, slots=True)
class OpenSetTruth:
    """The ground truth of a case.

    Attributes
    ----------
    classes : ClassRoles
    task : TaskTruth
        Its last class is ``unknown``. Outside objects are removed, or ignored regions of ``unknown``.
    outside : {"delete", "ignore"}
    outside_objects : int
    crowd : {"ignore", "keep", "drop"}
    crowd_objects : int
        Number of group boxes of the source.
    ignored_objects : int
        Number of objects that the view ignores because of their class or mark.
    """

    classes: ClassRoles
    task: TaskTruth
    outside: Outside
    outside_objects: int
    crowd: Crowd = "ignore"
    crowd_objects: int = 0
    ignored_objects: int = 0

    @property
    def truth(self) -> GroundTruth:
        """The objects as columns."""
        return self.task.truth

    @property
    def unknown(self) -> int:
        """Label of unknown objects and detections."""
        return self.task.unknown

    @property
    def file(self) -> dict[str, Any]:
        """The record of this input in a result."""
        truth = self.truth
        counted = ~truth.crowd
        return {
            **self.task.part.file,
            "known_objects": int((counted & (truth.label < self.unknown)).sum()),
            "unknown_objects": int((counted & (truth.label == self.unknown)).sum()),
            "outside": self.outside,
            "outside_objects": self.outside_objects,
            "crowd": CROWD[self.crowd],
            "crowd_objects": self.crowd_objects,
            "ignored_objects": self.ignored_objects,
        }


def open_set_classes(origin: Path | Manifest, name: str) -> ClassRoles:
    """Return the classes of a JSON file ``{"known": [...], "unknown": [...]}``, or of a manifest by role.

    Classes of a manifest in another role are outside.

    Raises
    ------
    MissingFileError
        The file does not exist.
    EvaluationError
        The file has another form, has no known class, lists a class twice, or names an unknown taxonomy; or the
        manifest is not an open-set detection problem: the classes of an earlier task would be outside.
    """
    if isinstance(origin, Manifest):
        header = origin.header
        where, taxonomy = f"{header.name} {header.version}", str(header.taxonomy)
        known, unknown = ([entry for entry in header.classes if entry.role == role] for role in ("known", "unknown"))
        numbers = {entry.name: entry.index for entry in known}
        aliases = {alias: entry.name for entry in header.classes for alias in entry.aliases}
        names = tuple(numbers), tuple(entry.name for entry in unknown)
        classes = ClassRoles(name, (), *names, f"manifest {where}", numbers, aliases=aliases, taxonomy=taxonomy)
    else:
        listed = class_file(origin)
        where, taxonomy = str(origin), listed.taxonomy or "OSOD-III"
        classes = ClassRoles(name, (), listed.known, listed.unknown, origin.name, taxonomy=taxonomy)
    if taxonomy not in TAXONOMIES or UNKNOWN in (*classes.known, *classes.unknown) or not classes.known:
        raise EvaluationError(
            "The classes are not those of an open-set detection problem",
            where=where,
            expected=f"taxonomy one of {', '.join(TAXONOMIES)}, at least one known class, none of them 'unknown'",
            found=f"{taxonomy[:80]}, {len(classes.known)} known classes",
            hint="--classes FILE in place of --manifest" if isinstance(origin, Manifest) else None,
        )
    return classes


def open_set_truth(
    source: Source,
    classes: ClassRoles,
    ids: Sequence[str] | None = None,
    *,
    outside: Outside = "delete",
    view: TruthView | None = None,
    category_ids: CategoryIds | None = None,
) -> OpenSetTruth:
    """Return the ground truth of a case on the images of a list (all of the source by default).

    As in the authors' evaluator (*Rectifying Open-Set Object Detection*), a box keeps the name of its known class,
    becomes ``unknown`` if its class is one of the unknown ones, and is removed otherwise; a category ``unknown`` of an
    exported truth is unknown. A manifest's view decides on group boxes, marked objects and ignored classes.
    `category_ids` chooses the numbering of its detections (`curation.evaluation.problem.numbered`).

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        The source lacks an image of the list, a category of a known class, or every category of an unknown one.
    """
    # Classes that are neither known nor unknown are outside: this is not an error.
    task = numbered(replace(classes, rest=None), source, category_ids)
    truth = task_truth(source, task, ids)
    spelled = {classes.aliases.get(name, name) for name in source.categories.names}
    if classes.unknown and UNKNOWN not in spelled and not spelled & set(classes.unknown):
        raise EvaluationError(
            "The truth has no category of any unknown class",
            where=files_of(source),
            expected="unknown, or one of: " + ", ".join(classes.unknown)[:300],
            found=", ".join(source.categories.names)[:300],
        )
    view = view or TruthView()
    others = _outside(truth, classes, classes.unknown)
    ignored = others & ~_outside(truth, classes, (*classes.unknown, *view.ignored))
    others &= ~ignored
    if view.marked_ignored:
        ignored |= truth.truth.difficult & ~others
    grouped = truth.truth.crowd
    retained = ~(grouped & (view.crowd == "drop"))
    flagged = grouped & (view.crowd == "ignore") | ignored
    if outside == "delete":
        retained &= ~others
    else:
        flagged |= others
    changed = _retained_objects(replace(truth.truth, crowd=flagged), retained)
    reduced = replace(truth, part=replace(truth.part, truth=changed))
    counts = int(others.sum()), view.crowd, int(grouped.sum()), int(ignored.sum())
    return OpenSetTruth(classes, reduced, outside, *counts)


def _outside(truth: TaskTruth, classes: ClassRoles, inside: Sequence[str]) -> Bools:
    """Return a mask of the objects whose class is neither known nor in `inside`."""
    aliases = classes.aliases
    originals = truth.truth.original or ()
    unknown = {*inside, "", UNKNOWN}
    strange = np.array([aliases.get(name, name) not in unknown for name in originals], np.bool_)
    return strange & (truth.truth.label == truth.unknown) if len(strange) else np.zeros(len(truth.truth.label), bool)


def _retained_objects(truth: GroundTruth, rows: Bools) -> GroundTruth:
    names = ("image", "label", "boxes", "crowd", "difficult", "areas")
    columns: dict[str, Any] = {name: getattr(truth, name)[rows] for name in names}
    original = None if truth.original is None else tuple(compress(truth.original, rows))
    return replace(truth, **columns, original=original)


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "[CASE=]FILE"] = MappingProxyType({}),
    detections: Annotated[Mapping[str, Path] | Path, "[CASE=]FILE"],
    classes: Annotated[Mapping[str, Path] | Path | None, "[CASE=]FILE"] = None,
    manifest: Annotated[Mapping[str, str] | Manifest | str | None, "[CASE=]MANIFEST"] = None,
    category_ids: CategoryIds | None = None,
    part: Annotated[str, "PART"] = ONLY,
    outside: Outside = "delete",
    variant: Literal["clean", "voc", "all"] | tuple[Variant, ...] = "clean",
    thetas: Annotated[str | None, "T,T"] = None,
    stray: Stray = "error",
    other_classes: Stray = "error",
    negative_sizes: Boxes = "error",
    reading: Reading = READING,
) -> Result:
    """Score open-set detection with defined unknowns: AP of known and unknown, A-OSE and WI over the threshold.

    ``CASE=`` before a file distinguishes rotations or cases.

    Parameters
    ----------
    truth : Path or Source, or mapping of str to such
        COCO JSON, or a dataset root (default: the source that each manifest remembers)
    detections : Path, or mapping of str to Path
        COCO results JSON: category_id or category, `unknown` included
    classes : Path, or mapping of str to Path, optional
        {"known": [...], "unknown": [...]}
    manifest : Manifest or str, or mapping of str to such, optional
        take classes and images from it
    category_ids : {"manifest", "truth"}, optional
        of the detections: those of the manifest's classes or those of the ground truth; required if the two differ
    part : str
        image list of the manifests
    outside : {"delete", "ignore"}
        objects of other classes: removed as in the paper's code, or ignored regions
    variant : {"clean", "voc", "all"}, or several of them
        matching behind A-OSE and WI
    thetas : str, optional
        confidence thresholds (default: 0, 0.05, ... 1)
    stray : {"error", "drop"}
        detections on images that the ground truth lacks: refuse, or leave out and report
    other_classes : {"error", "drop"}
        detections of classes that the ground truth lacks: refuse, or leave out and report
    negative_sizes : {"error", "empty"}
        detected boxes of negative size: refuse, or take as empty and report
    reading : Reading

    Returns
    -------
    Result
        Scored are ``CASE/VARIANT``; ``over_cases`` has mean and deviation of AP over the cases.

    Raises
    ------
    UsageError, MissingFileError, EvaluationError, PredictionError
        Options contradict each other; a file does not exist or has invalid content.

    Examples
    --------
    >>> import curation, pandas, pathlib, tempfile
    >>> owl = {"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
    >>> truth = pandas.DataFrame([owl, {**owl, "category": "elk", "x": 30}])
    >>> found = pandas.DataFrame([{**owl, "score": 0.9}, {**owl, "category": "unknown", "x": 30, "score": 0.8}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classes = pathlib.Path(folder) / "classes.json"
    ...     _ = classes.write_text('{"known": ["owl"], "unknown": ["elk"]}')
    ...     result = curation.evaluate.osod3(truth=truth, detections=found, classes=classes)
    >>> round(result["AP_unk"], 6), result["AOSE"]
    (100.0, 0)
    """
    files: dict[str, Path] = by_name(detections, "--detections", "case", unnamed=ONLY)
    names = list(files)
    require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    chosen, manifests = _classes(classes, manifest, names)
    if isinstance(truth, Mapping) and not truth:
        truth = {case: remembered_truth(manifests.get(case), [part]) for case in names}
    truths: dict[str, Truth] = by_name(truth, "--truth", "case", names, requested=names, shared=True)
    # Scores are not bounded: the paper's unknown score is a sum of three.
    policy = Policy(stray=stray, other_classes=other_classes, negative_sizes=negative_sizes, any_scores=True)
    opening = reading.opener()
    inputs = {}
    for case, path in steps(files.items(), "reading cases"):
        source = opening(truths[case])
        of_case = manifests.get(case)
        ids = None if of_case is None else of_case.ids(part)
        view = None if of_case is None else truth_view(of_case, part)
        case_truth = open_set_truth(source, chosen[case], ids, outside=outside, view=view, category_ids=category_ids)
        inputs[case] = case_truth, read_task_detections(path, case_truth.task, source, policy)
    variants = select(VARIANTS, variant)
    values = thresholds_of(THETAS if thetas is None else [text.strip() for text in thetas.split(",")])
    facts = _about(inputs, manifests, variants, part)
    scored = [
        Scored(
            part=part if case in manifests else case,
            case=case,
            variant=variant,
            method=stem_of(facts["inputs"][case]["detections"]),
            truth={"truth": case_truth.file, "classes": facts["classes"][case]},
            predictions={case: facts["inputs"][case]["detections"]},
            settings={"outside": OUTSIDE[outside].split(":")[0], "theta": f"{_floor(values):g}"},
            manifest=facts["manifests"].get(case),
            found=measured,
        )
        for case, (case_truth, read) in steps(inputs.items(), "evaluating cases")
        for variant, measured in evaluate_case(case_truth, read.detections, variants, values).items()
    ]
    return Result(
        REPORT,
        facts | {"over_cases": over_cases({row.case: row.found for row in scored})},
        scored=scored,
        notes=[note for row in scored for note in row.found.notes],
        outcomes=lambda: {
            f"{case}/{rules.name}": [case_outcomes(case_truth, read.detections, rules)]
            for case, (case_truth, read) in inputs.items()
            for rules in variants
        },
    )


def _classes(
    classes: Mapping[str, Path] | Path | None, manifest: Mapping[str, str] | Manifest | str | None, cases: Sequence[str]
) -> tuple[dict[str, ClassRoles], dict[str, Manifest]]:
    if bool(classes) == bool(manifest):
        raise UsageError(
            "Two options name the classes" if classes else "The known and unknown classes are missing",
            expected="--classes FILE, or --manifest MANIFEST",
        )
    if classes:
        paths: dict[str, Path] = by_name(classes, "--classes", "case", cases, requested=cases, shared=True)
        return {case: open_set_classes(path, case) for case, path in paths.items()}, {}
    by_case: dict[str, Any] = by_name(manifest, "--manifest", "case", cases, requested=cases, shared=True)
    manifests = {case: load_manifest(lists) if isinstance(lists, str) else lists for case, lists in by_case.items()}
    return {case: open_set_classes(lists, case) for case, lists in manifests.items()}, manifests


def _about(
    inputs: Mapping[str, tuple[OpenSetTruth, ReadDetections]],
    manifests: Mapping[str, Manifest],
    variants: Sequence[Rules],
    part: str,
) -> dict[str, Any]:
    """Return the facts behind the numbers: digests of all inputs, and the classes of each case."""
    truths = {case: truth for case, (truth, _) in inputs.items()}
    return {
        "known_classes_from": ", ".join(dict.fromkeys(truth.classes.origin for truth in truths.values())),
        "manifest": None,
        "manifests": {case: manifest_record(manifest, part=part) for case, manifest in manifests.items()},
        "inputs": {case: {"truth": truth.file, "detections": read.file} for case, (truth, read) in inputs.items()},
        "category_ids": {case: truth.task.task.ids_from for case, truth in truths.items()},
        "classes": {
            case: {"known": [*truth.classes.known], "unknown": [*truth.classes.unknown], "from": truth.classes.origin}
            for case, truth in truths.items()
        },
        "taxonomies": {case: truth.classes.taxonomy for case, truth in truths.items()},
        "outside": {truth.outside: OUTSIDE[truth.outside] for truth in truths.values()},
        "variants": {rules.name: rules.meaning for rules in variants},
        "definitions": DEFINITIONS,
    }


def evaluate_case(
    truth: OpenSetTruth,
    detections: Detections,
    variants: Sequence[Rules] = (VARIANTS["clean"],),
    thetas: Sequence[float] = thresholds_of(THETAS),
) -> dict[str, Measured]:
    """Return the measures of a case by the name of the variant; AP is the same in all.

    Parameters
    ----------
    truth : OpenSetTruth
    detections : Detections
        Labels of `OpenSetTruth.truth`: the last one is unknown.
    variants : sequence of Rules
        The matching behind A-OSE and WI.
    thetas : sequence of float
        Confidence thresholds, ascending.
    """
    averages = average_precisions(truth, detections)
    per_class = averages.pop("AP_per_class")
    is_first = truth.classes.taxonomy == "OSOD-I"
    missing = {
        "AP_known": "no object of a known class, crowd aside",
        "AP_unk": _TAXONOMY_NOTES["OSOD-I"] if is_first else "no unknown object, crowd aside",
    }
    note = _TAXONOMY_NOTES.get(truth.classes.taxonomy)
    counts = {
        "images": truth.truth.n_images,
        "objects": truth.file["known_objects"] + truth.file["unknown_objects"],
        "unknown_objects": truth.file["unknown_objects"],
        "outside_objects": truth.outside_objects,
        "detections": len(detections),
        "unknown_detections": int((detections.label == truth.unknown).sum()),
    }
    values = [
        Value(name, value, undefined=missing[name.rstrip("057")] if value is None else "")
        for name, value in averages.items()
    ]
    by_variant = {}
    for rules in variants:
        curve = _threshold_curve(truth, detections, rules, thetas)
        point = next(row for row in curve if row["theta"] == _floor(thetas))
        errors = [Value(name, point[name], n=counts["unknown_objects"]) for name in ("AOSE", "FP_open")]
        tables = {
            "average_precision": {"class": list(per_class), "AP": list(per_class.values())},
            "thresholds": {name: [row[name] for row in curve] for name in curve[0]},
            "counts": {"count": list(counts), "value": list(counts.values())},
        }
        impact = [Value(name, point[name]) for name in ("WI", "WI_all_fp")]
        notes = [note] if note else []
        by_variant[rules.name] = Measured([*values, *errors, *impact], tables, notes)
    return by_variant


def _floor(thetas: Sequence[float]) -> float:
    """Return the threshold of the reported A-OSE and WI: the usual floor of detectors, else the lowest requested."""
    return 0.05 if 0.05 in thetas else thetas[0]


def _threshold_curve(
    truth: OpenSetTruth, detections: Detections, rules: Rules, thetas: Sequence[float]
) -> list[dict[str, Any]]:
    """Return A-OSE and WI of the detections of known classes with score >= theta, for each theta.

    Matching proceeds by falling score, so a threshold does not change the match of a kept detection.
    """
    known = detections.label < truth.unknown
    matches = assign(truth.truth, detections, rules)
    is_open = lies_on(truth.truth, detections, _unknown_objects(truth), rules)
    return counts_at_thresholds(detections.scores[known], matches.outcome[known], is_open[known], thetas)


def average_precisions(truth: OpenSetTruth, detections: Detections) -> dict[str, Any]:
    """Return AP of the known classes and of unknown, over IoU 0.50:0.95 and at 0.50 and 0.75, in percent.

    A class without objects other than crowd has no AP and is not in the mean; one without detections has AP 0.
    """
    precision = coco_precision(truth.truth, detections)
    names = truth.truth.classes
    result: dict[str, Any] = {}
    for suffix, rows in (("", slice(None)), ("50", slice(0, 1)), ("75", slice(5, 6))):
        each = [
            float(100 * precision[label][rows].mean()) if label in precision else None for label in range(len(names))
        ]
        if truth.classes.taxonomy == "OSOD-I":
            each[truth.unknown] = None
        defined = [value for value in each[: truth.unknown] if value is not None]
        result[f"AP_known{suffix}"] = float(np.mean(defined)) if defined else None
        result[f"AP_unk{suffix}"] = each[truth.unknown]
        if not suffix:
            result["AP_per_class"] = dict(zip(names, each, strict=True))
    return result


def case_outcomes(truth: OpenSetTruth, detections: Detections, rules: Rules) -> Outcomes:
    """Return the outcome of each detection and object, as A-OSE and WI of a variant count them."""
    unknown = _unknown_objects(truth)
    matches = assign(truth.truth, detections, rules)
    return Outcomes.from_matches(
        truth.truth,
        detections,
        rules,
        outcome=matches.outcome,
        taken=matches.truth,
        pairs=pairs_on(truth.truth, detections, unknown, rules, np.flatnonzero(detections.label < truth.unknown)),
        unknown=unknown,
        counted=positives(truth.truth, rules),
    )


def _unknown_objects(truth: OpenSetTruth) -> Bools:
    return np.asarray((truth.truth.label == truth.unknown) & ~truth.truth.crowd)


def over_cases(cases: Mapping[str, Measured]) -> dict[str, Any]:
    """Return mean and standard deviation of every AP over the cases, with ddof 0 (default) and 1, and their number.

    The paper prints mean and deviation over 4 (Open Images, CUB) or 3 (MTSD) cases without stating which deviation.
    """
    summary: dict[str, Any] = {}
    for name in AVERAGES:
        by_case = {case: measured.value(name) for case, measured in cases.items()}
        values = [float(value) for value in by_case.values() if value is not None]
        summary[name] = {
            "n": len(values),
            "mean": float(np.mean(values)) if values else None,
            "std_population": float(np.std(values)) if values else None,
            "std_sample": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "left_out": [case for case, value in by_case.items() if value is None],
        }
    return summary


def _tables(result: Result) -> Iterator[Table]:
    yield from tidy_tables(result)
    over = result.data["over_cases"]
    columns = Column("measure"), *(Column(name, "%") for name in ("mean", "std_population", "std_sample"))
    rows = [(name, *(row[column.name] for column in columns[1:])) for name, row in over.items()]
    title = "Mean and standard deviation over cases" if max(row["n"] for row in over.values()) > 1 else ""
    yield Table("over_cases", columns, rows, title=title)


def _drawings(result: Result) -> Iterator[Figure]:
    for variant in result.data["variants"]:
        draw = partial(threshold_figure, _curves(result, variant), variant=variant)
        yield Figure(f"open_set_error_{variant}", draw)


def _curves(result: Result, variant: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return the rows of the table ``thresholds`` of each case under a variant."""
    return {
        (scored.case,): [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for scored in result.scored
        if scored.variant == variant and scored.found is not None
        for table in (scored.found.tables["thresholds"],)
    }


_COLUMNS = ("theta", "AOSE", "WI", "WI_all_fp")
_MOST_MARKED = 40
_Curves = Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]


def threshold_figure(curves: _Curves, stem: Path, *, variant: str = "") -> list[Path]:
    """Draw A-OSE and WI as functions of the confidence threshold (Fig. 3 of the paper).

    Parameters
    ----------
    curves : mapping of tuple of str to rows
        Rows of the table ``thresholds`` by case, with a colour for each; or by detector and case, with a colour for
        each detector and dashes for each case.
    stem : Path
        Path without suffix.
    variant : str
        Variant of the numbers, for the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    columns = ("detector", "case")[-len(next(iter(curves), ("",))) :]
    rows = [(*key, *(row[name] for name in _COLUMNS)) for key, curve in curves.items() for row in curve]
    return save_figure(partial(_draw_thresholds, curves, variant), stem, (*columns, *_COLUMNS), rows)


def detectors_figure(results: Mapping[str, Result], stem: Path, *, variant: str = "clean") -> list[Path]:
    """Draw A-OSE and WI over the confidence threshold for several detectors: colours are detectors, dashes cases.

    Parameters
    ----------
    results : mapping of str to Result
        Results of the same benchmark, by the name of the detector.
    stem : Path
        Path without suffix.
    variant : str

    Returns
    -------
    list of Path
        PNG, SVG, CSV.

    Raises
    ------
    UsageError
        A result lacks the variant.
    """
    curves = {
        (name, *case): rows for name, result in results.items() for case, rows in _curves(result, variant).items()
    }
    if lacking := [name for name in results if not any(name == detector for detector, _ in curves)]:
        raise UsageError(
            "A result has no curve of this variant", where=lacking[0][:80], expected=f"--variant {variant}, or all",
            found=", ".join(results[lacking[0]].data["variants"]),
        )  # fmt: skip
    return threshold_figure(curves, stem, variant=variant)


def _draw_thresholds(curves: _Curves, variant: str) -> Canvas:
    """Draw a line for each case, or for each detector and case."""
    colours, cases = (list(dict.fromkeys(key[at] for key in curves)) for at in (0, -1))
    figure, (errors, impact) = small_multiples(2, height=2.3)
    for key, rows in curves.items():
        *detector, case = key
        label = [*map(plain, detector), *([f"case {plain(case)}"] if not detector or len(cases) > 1 else [])]
        colour, dashes = colours.index(key[0]), cases.index(case) * len(detector)
        thetas = [row["theta"] for row in rows]
        # The numbers are counted at the marked thresholds and change somewhere between them, so lines are steps.
        style: dict[str, Any] = {
            "color": SERIES[colour % len(SERIES)],
            "label": ", ".join(label),
            "linestyle": ("-", "--", ":", "-.")[dashes % 4],
            "drawstyle": "steps-post",
            "marker": MARKERS[colour % len(MARKERS)],
            "markersize": 4 if len(rows) <= _MOST_MARKED else 0,
            "clip_on": False,
        }
        errors.plot(thetas, [row["AOSE"] for row in rows], **style)
        impact.plot(thetas, [float("nan") if row["WI"] is None else row["WI"] for row in rows], **style)
    errors.set(title="Open-set errors (A-OSE)", ylabel="detections of known classes\non unknown objects")
    whole_numbers(errors)
    impact.set(title="Wilderness impact (WI)", ylabel="WI")
    for axes in (errors, impact):
        axes.set_xlabel("confidence threshold θ")
        axes.set_ylim(0, 1.05 * max(axes.get_ylim()[1], 1e-9))
    add_key(figure, [errors])
    set_title(figure, "Open-set error over the confidence threshold", variant and f"variant {variant}")
    return figure


REPORT = Report(
    "osod3",
    MEASURES,
    tables=_tables,
    drawings=_drawings,
    files=tuple(table.name for table in TABLES),
    figures=("open_set_error_*",),
    tidy=TABLES,
    places=("case", "variant"),
)
