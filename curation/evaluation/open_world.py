"""Open-world detection by tasks: unknown recall and precision, wilderness impact, A-OSE, AP of old and new classes.

`evaluate_task` yields rows of a task under each variant; `evaluation_as` returns a benchmark's ``evaluate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import UsageError
from curation.core.process import steps
from curation.evaluation.curves import average_precision
from curation.evaluation.inputs import (
    POLICY,
    READING,
    CategoryIds,
    Policy,
    Reading,
    Truth,
    about,
    by_name,
    manifest_record,
    remembered_truth,
    require_manifest_for_ids,
)
from curation.evaluation.matching import assign, positives
from curation.evaluation.measures import Measure, Measured, Value, facts_of, sum_in_order
from curation.evaluation.open_set import (
    Targets,
    TaskOutcomes,
    impact_at_recalls,
    operating_curve,
    pairs_on,
    recall_points,
    targets,
    unknown_by_class,
    unknown_counts,
)
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import (
    UNKNOWN,
    ClassRoles,
    Detections,
    GroundTruth,
    choose_tasks,
    numbered,
    task_of_truth,
    tasks_of_file,
    tasks_of_manifest,
)
from curation.evaluation.readers import Accepted, ReadDetections, read_task_detections
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Tidy, stem_of, truth_digests
from curation.evaluation.truth import REPEATS, Repeats, TaskTruth, read_image_list, task_truth
from curation.evaluation.variants import Rules, offer, round_as_text, select
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

CLEAN = Rules(
    name="clean",
    meaning="continuous boxes, IoU >= 0.5 with the best object that is still free, crowd and difficult regions "
    "ignored, area AP, undefined is null",
    taken="best_free",
    crowd="cover",
)
TEXT = Rules(
    name="text",
    meaning="voc_eval: scores to 3 and corners to 1 decimal, whole ground-truth corners, IoU > 0.5 with the "
    "object of highest IoU of the class, crowd regions ordinary, difficult ones ignored",
    overlap=">",
    crowd="ordinary",
    text=True,
    nothing="zero",
    impact_without_objects=True,
)
"""Rules of codes that write detections as VOC's text files; benchmarks derive their variants from it."""
SCORE_FREE = replace(
    CLEAN,
    name="score-free",
    meaning=f"detections without scores, in file order: {CLEAN.meaning}; AP and wilderness impact are undefined",
    scoreless=True,
)
GROUPS = {"both": ("previous", "current"), "prev": ("previous",), "cur": ("current",), "unknown": (UNKNOWN,)}
"""Roles of the classes that a mean is over."""
_FACTS = facts_of(__name__)
DEFINITIONS: dict[str, str] = _FACTS["definitions"]
MEASURES = tuple(
    Measure(formula=DEFINITIONS[row.pop("definition", row["key"].partition("@")[0])], **row)
    for row in _FACTS["measures"]
)
_NO_UNKNOWN = "no unknown object counts in the task"
_NO_CLASSES = "no such class has objects"
_OF_SCORES = ("impact", "unknown_curve")


def end_measures(source: str, keys: Mapping[str, str]) -> tuple[Measure, ...]:
    """Return the declarations of precision and recall over all detections, for a benchmark that reports them.

    Parameters
    ----------
    source : str
    keys : mapping of str to str
        Name of each of `GROUPS` in `source`.
    """
    return tuple(
        Measure(
            f"{key}_{group}", f"{name} at the end of the list, {called}", formula, "%", "higher", source, _NO_CLASSES
        )
        for group, called in keys.items()
        for key, (name, formula) in _FACTS["at_the_end"].items()
    )


TABLES = (
    Tidy("classes", (
        Column("class"), Column("role"), Column("n", "count", "objects"), Column("detections", "count"),
        Column("AP", "%"), Column("tp", "count", "TP"), Column("fp", "count", "FP"), Column("ignored", "count"),
        Column("max_recall", "ratio", "max recall"), Column("on_unknown", "count", "on unknown"),
        Column("left_out", text=False),
    ), title="Classes"),
    Tidy("unknown_classes", (
        Column("original_class"), Column("num_unknown_gt", "count", "objects"), Column("TP_u", "count"),
        Column("FN_u", "count", text=False), Column("FN_u_star", "count"),
        Column("FN_u_star_excl_known_tp", "count", text=False), *(Column(rate, "%") for rate in ("UR", "UDR", "UDP")),
        *(Column(f"{rate}_excl_known_tp", "%", text=False) for rate in ("UDR", "UDP")),
        Column("AOSE_objects", "count", "A-OSE objects"), Column("AOSE", "count", "A-OSE detections"),
    ), title="Unknown objects by original class"),
    Tidy("impact", (
        Column("recall"), Column("WI", "ratio"), Column("WI_closed_set_denominator", "ratio", text=False),
        *(Column(name, "count", text=False) for name in ("on_unknown", "kept", "kept_closed")),
        Column("classes", "count", text=False), Column("classes_reaching", "count", "classes reaching it"),
        Column("never_reached_by", head="read at their highest recall"),
    ), title="Wilderness impact", printed=lambda row: row[0][-1] == "0" and row[0] != "1.00"),
    Tidy("counts", (Column("count"), Column("value"))),
    Tidy("unknown_curve", tuple(map(Column, (
        "score", "TP_u", "unknown_detections", "UR", "P_unknown", "FN_u_star", "UDR", "UDP",
    ))), json=False),
)  # fmt: skip
"""Tables of a result besides its measures: a row for each class, original class, recall or threshold."""


@dataclass(frozen=True)
class TaskScene:
    """Truth and detections of a task under a variant, with cached intermediate results.

    Attributes
    ----------
    truth : TaskTruth
    unfiltered : Detections
        Labels as in `truth`; the last is unknown.
    rules : Rules
    """

    truth: TaskTruth
    unfiltered: Detections
    rules: Rules

    @cached_property
    def detections(self) -> Detections:
        """The scored detections; a variant may set a minimum score for those of known classes."""
        if self.rules.known_score_min < 0:
            return self.unfiltered
        return self.unfiltered.take(
            (self.unfiltered.label == self.truth.unknown) | (self.unfiltered.scores > self.rules.known_score_min)
        )

    @cached_property
    def compared(self) -> tuple[GroundTruth, Detections]:
        """Truth and detections with the compared boxes: unchanged, or as the official evaluator reads them.

        It reads tenths of a pixel, which are whole numbers here, so that IoU is exact. Corners of the ground truth are
        ``int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)``, inclusive, truncated by `int`. Boxes that were such
        corners in the annotation file are not changed. Left and upper edges of detections may be moved in addition.
        """
        objects, shift, detections = self.truth.truth, self.rules.box_offset, self.detections
        if not self.rules.text:
            return objects, detections
        x, y, w, h = objects.boxes.T
        further = np.where(self.truth.voc_corners[objects.image], 0, 1)
        left, top = np.trunc(x + 1) - 1, np.trunc(y + 1) - 1
        right, bottom = np.trunc(x + w + further), np.trunc(y + h + further)
        corners = np.stack([left, top, right - left, bottom - top], axis=1)
        moved = detections.boxes + np.array([shift, shift, -shift, -shift]) if shift else detections.boxes
        text = round_as_text(replace(detections, boxes=moved))
        return replace(objects, boxes=corners * 10), replace(text, boxes=np.rint(text.boxes * 10))

    @cached_property
    def outcomes(self) -> TaskOutcomes:
        """The outcome of each detection, and the unknown objects that detections of known classes overlap."""
        rules, unknown_label = self.rules, self.truth.unknown
        objects, detections = self.compared
        matches = assign(objects, detections, rules)
        positive = positives(objects, rules)
        unknown = objects.label == unknown_label
        known_rows = np.flatnonzero(detections.label < unknown_label)
        # The official A-OSE and WI also count overlaps with difficult unknown objects.
        pairs = pairs_on(objects, detections, unknown if rules.text else unknown & positive, rules, known_rows)
        lines = self.truth.lines[objects.image[positive]]
        return TaskOutcomes(
            label=detections.label,
            scores=detections.scores,
            outcome=matches.outcome,
            n_positive=np.bincount(objects.label[positive], lines, len(objects.classes)).astype(np.int64),
            target=unknown & positive,
            taken=matches.truth,
            pairs=pairs,
        )

    def single_outcomes(self) -> Outcomes:
        """Return the outcome of each detection and object."""
        outcomes, objects = self.outcomes, self.truth.truth
        return Outcomes.from_matches(
            objects,
            self.detections,
            self.rules,
            outcome=outcomes.outcome,
            taken=outcomes.taken,
            pairs=outcomes.pairs,
            unknown=objects.label == self.truth.unknown,
            counted=positives(objects, self.rules),
            compared=self.compared,
        )


def evaluate_task(
    truth: TaskTruth, detections: Detections, variants: Sequence[Rules] = (CLEAN,)
) -> dict[str, Measured]:
    """Return the measurements of a task by variant: `MEASURES` as rows, and `TABLES`.

    Parameters
    ----------
    truth : TaskTruth
    detections : Detections
        Labels as in `truth`; the last is unknown.
    variants : sequence of Rules
    """
    scenes: dict[Rules, TaskScene] = {}
    measured = {}
    for rules in variants:
        # Variants that differ only in AP share everything else.
        same = replace(rules, name="", meaning="", average_precision="area")
        scene = scenes.setdefault(same, TaskScene(truth, detections, rules))
        measured[rules.name] = _measured(scene, rules)
    return measured


def _measured(scene: TaskScene, rules: Rules) -> Measured:
    truth, outcomes = scene.truth, scene.outcomes
    points = recall_points(
        outcomes, truth.unknown, without_objects=rules.impact_without_objects, added=rules.added_objects
    )
    names = truth.truth.classes
    unknowns = targets(truth, outcomes, added=rules.added_objects)
    classes = _classes(truth, outcomes, rules)
    classes["left_out"] = [
        ""
        if number in points or number == truth.unknown
        else "no detections"
        if n or rules.impact_without_objects
        else "no objects"
        for number, n in enumerate(classes["n"])
    ]
    # The official code prints this for a denominator of 0, and without detections.
    nothing = 0.0 if rules.nothing == "zero" or not len(outcomes.label) else None
    impact = impact_at_recalls(points, names)
    for name in ("WI", "WI_closed_set_denominator"):
        # The code prints 0 if no class has detections; it has 0 / 0 if the first detections of all are ignored.
        read = impact[name] if points else [nothing] * len(impact[name])
        impact[name] = read if outcomes.target.any() else [None] * len(read)
    counts = _counts(truth, outcomes)
    originals = (unknown_by_class(truth, outcomes, unknowns) if outcomes.target.any() else None) or {}
    tables = {
        "classes": classes,
        "unknown_classes": {
            "original_class": list(originals),
            **{key: [row[key] for row in originals.values()] for key in next(iter(originals.values()), ())},
        },
        "impact": impact,
        "counts": {"count": list(counts), "value": list(counts.values())},
        "unknown_curve": operating_curve(unknowns, outcomes, truth.unknown),
    }
    values = [*_means(classes), *_unknown(outcomes, unknowns, classes, nothing), *_impact_values(impact, outcomes)]
    notes = _notes(truth, classes, counts, rules, has_unknown=bool(outcomes.target.any()))
    retained = {name: table for name, table in tables.items() if name != "unknown_classes" or originals}
    if rules.scoreless:
        classes["AP"] = [None] * len(names)
        retained = {name: retained[name] for name in retained if name not in _OF_SCORES}
        reason = "it needs scores, which this variant passes over"
        values = [
            row._replace(value=None, undefined=reason) if row.measure.startswith(("mAP", "AP_", "WI")) else row
            for row in values
        ]
    return Measured(values, retained, list(notes))


def _classes(truth: TaskTruth, outcomes: TaskOutcomes, rules: Rules) -> dict[str, list[Any]]:
    """Return a row a class, unknown last: AP in percent, None without objects."""
    names, n = truth.truth.classes, outcomes.n_positive.tolist()
    precisions: list[float | None] = []
    for number, rows in outcomes.ranked:
        rows = rows[outcomes.outcome[rows] >= 0]
        ap = average_precision(outcomes.scores[rows], outcomes.outcome[rows] == 1, n[number], rules)
        precisions.append(100 * ap if n[number] else None)

    def count(rows: Any) -> list[int]:
        return list(np.bincount(outcomes.label[rows], minlength=len(names)).tolist())

    tp, task = count(outcomes.outcome == 1), truth.task
    return {
        "class": list(names),
        "role": [*("previous" for _ in task.previous), *("current" for _ in task.current), UNKNOWN],
        "n": n,
        "detections": count(slice(None)),
        "AP": precisions,
        "tp": tp,
        "fp": count(outcomes.outcome == 0),
        "ignored": count(outcomes.outcome < 0),
        "max_recall": [right / size if size else None for right, size in zip(tp, n, strict=True)],
        "on_unknown": [*count(outcomes.on_unknown)[:-1], None],
    }


def _means(classes: Mapping[str, Sequence[Any]]) -> Iterator[Value]:
    """Yield AP, and precision and recall over all detections, as means over the classes of each group."""
    rows = list(zip(*(classes[name] for name in ("role", "AP", "tp", "fp", "n")), strict=True))
    for group, roles in GROUPS.items():
        inside = [row for row in rows if row[0] in roles]
        counted = [row for row in inside if row[4]]
        reason = "no class has objects" if inside else "there are no such classes"
        numbers = {
            "AP_unknown" if group == "unknown" else f"mAP_{group}": [ap for _, ap, *_ in counted],
            f"P50_{group}": [100 * tp / (tp + fp) if tp + fp else 0.0 for _, _, tp, fp, _ in counted],
            f"R50_{group}": [100 * tp / n for _, _, tp, _, n in counted],
        }
        for key, each in numbers.items():
            undefined = _NO_UNKNOWN if key == "AP_unknown" else reason
            yield Value(key, sum_in_order(each) / len(each) if each else None, undefined=undefined)


def _unknown(
    outcomes: TaskOutcomes, unknowns: Targets, classes: Mapping[str, Any], nothing: float | None
) -> Iterator[Value]:
    """Yield the counts and rates of unknown objects."""
    defined = bool(outcomes.target.any())
    counts = unknown_counts(unknowns)
    counts["AOSE"] = int(outcomes.on_unknown.sum())
    for key, value in counts.items():
        number = None if key.startswith("AOSE") and not defined else value
        n = counts["num_unknown_gt"] if key in ("UR", "UDR") else None
        yield Value(key, number, n=n, undefined="TP_u + FN_u_star is 0" if defined else _NO_UNKNOWN)
    called = classes["tp"][-1] + classes["fp"][-1]
    yield Value("P_unknown", 100 * counts["TP_u"] / called if called else nothing)


def _impact_values(impact: Mapping[str, Any], outcomes: TaskOutcomes) -> Iterator[Value]:
    undefined = "the denominator is 0" if outcomes.target.any() else _NO_UNKNOWN
    index_of = {f"0.{tenths}": 10 * tenths - 1 for tenths in range(1, 10)}
    for name in ("WI", "WI_closed_set_denominator"):
        yield Value(name, impact[name][index_of["0.8"]], undefined=undefined)
    for recall, at in index_of.items():
        yield Value("WI_at_recall", impact["WI"][at], {"recall": recall}, undefined=undefined)


def _counts(truth: TaskTruth, outcomes: TaskOutcomes) -> dict[str, Any]:
    objects, lines = truth.truth, int(truth.lines.sum())
    is_unknown = outcomes.label == truth.unknown
    per_image = {"all": len(is_unknown), "known": int((~is_unknown).sum()), "unknown": int(is_unknown.sum())}
    return {
        "images": objects.n_images,
        "lines": lines,
        "images_without_annotation": objects.n_images - len(distinct(objects.image)),
        "objects": len(objects.label),
        "unknown_objects": int((objects.label == truth.unknown).sum()),
        "crowd": int(objects.crowd.sum()),
        "difficult": int(objects.difficult.sum()),
        "detections": len(outcomes.label),
        **{f"detections_per_image_{kind}": n / lines if lines else None for kind, n in per_image.items()},
        "FP_u": int((is_unknown & (outcomes.outcome == 0)).sum()),
    }


def _notes(
    truth: TaskTruth,
    classes: Mapping[str, Sequence[Any]],
    counts: Mapping[str, Any],
    rules: Rules,
    *,
    has_unknown: bool,
) -> Iterator[str]:
    empty = [name for name, n in zip(classes["class"][:-1], classes["n"], strict=False) if not n]
    if empty:
        first = "; WI counts the first detection of each, as the code does" * rules.impact_without_objects
        yield f"{len(empty)} known classes have no objects and are left out: {', '.join(empty)}{first}"
    if counts["detections"] and not classes["detections"][-1] and has_unknown:
        yield 'no detection has class "unknown", so UR is 0'
    if not counts["detections"]:
        yield "there are no detections: precision and WI are given as 0, as the official code does"
    if rules.text and counts["crowd"]:
        yield f"{counts['crowd']} crowd regions count as ordinary objects, as in the official files"
    if truth.repeats == "keep" and truth.repeated_lines:
        yield f"{truth.repeated_lines} repeated lines of the image list count again: they lower recall"


def _settings_of(rules: Rules) -> dict[str, str]:
    """Return a description of the rules of a variant."""
    in_floats = rules.average_precision == "eleven_point_in_floats"
    return {
        "meaning": rules.meaning,
        "iou": "> 0.5" if rules.text else ">= 0.5",
        "boxes": "scores .3f, corners .1f, whole ground-truth corners" if rules.text else "continuous",
        "crowd": "ordinary objects" if rules.text else "ignored",
        "difficult": "ignored (A-OSE and WI count overlaps with them)" if rules.text else "ignored",
        "average_precision": "11-point, recalls k * 0.1 in floating point" if in_floats else "area",
        "ties": "equal scores in input order",
        "WI_recall": "0.8",
        "FN_u_star": "known true positives included",
        **({"known_scores": f"> {rules.known_score_min}"} if rules.known_score_min >= 0 else {}),
        **({"left_and_upper_edges": f"+{rules.box_offset} once more"} if rules.box_offset else {}),
        **({"recall": f"found / (objects + {rules.added_objects:g})"} if rules.added_objects else {}),
        **({"WI_without_objects": "first detection"} if rules.impact_without_objects else {}),
    }


def _drawings(result: Result) -> Iterator[Figure]:
    from curation.evaluation.figures import impact_figure, unknown_figure

    for variant in dict.fromkeys(scored.variant for scored in result.scored):
        tasks = {
            scored.task: scored.found
            for scored in result.scored
            if scored.variant == variant and "impact" in scored.found.tables
        }
        is_drawn = any(measured.value("num_unknown_gt") for measured in tasks.values())
        missing = "" if is_drawn else f"no figures for variant {variant}: no task has unknown objects"
        # The first figure gives the reason for both.
        for name, figure, why in (
            ("wilderness_impact", impact_figure, missing),
            ("unknown_recall_precision", unknown_figure, ""),
        ):
            yield Figure(f"{name}_{variant}", partial(figure, tasks, variant) if is_drawn else None, why)


def report_as(benchmark: str, *, more: tuple[Measure, ...] = (), algorithm: int = 1) -> Report:
    """Return the report of open-world results under the name of a benchmark, with `more` measures."""
    return Report(
        benchmark,
        (*MEASURES, *more),
        drawings=_drawings,
        algorithm=algorithm,
        files=("measures", *(table.name for table in TABLES)),
        figures=("wilderness_impact_*", "unknown_recall_precision_*"),
        tidy=TABLES,
    )


def evaluation_as(report: Report, variants: Iterable[Rules], notes: tuple[str, ...] = ()) -> Callable[..., Result]:
    """Return the function that scores open-world detection for a benchmark; its signature declares the options.

    Parameters
    ----------
    report : Report
        Result of `report_as`.
    variants : iterable of Rules
        The first is the default.
    notes : tuple of str
        Sentences for the reader of every result.
    """
    known = {rules.name: rules for rules in variants}

    def evaluate(
        *,
        truth: Annotated[Mapping[str, Truth] | Truth, "[TASK=]FILE"] = MappingProxyType({}),
        detections: Annotated[Mapping[str, Path] | Path, "[TASK=]FILE"],
        manifest: Annotated[Manifest | str | None, "MANIFEST"] = None,
        category_ids: CategoryIds | None = None,
        task: Annotated[tuple[str, ...], "TASK"] = (),
        part: Annotated[str | None, "PART"] = None,
        classes: Path | None = None,
        images: Path | None = None,
        variant: str | tuple[str, ...] = next(iter(known)),
        repeats: Repeats = "error",
        reading: Reading = READING,
        policy: Policy = POLICY,
    ) -> Result:
        """Score open-world detection: UR, UDR, UDP, A-OSE, wilderness impact, mAP of previous and current classes.

        Parameters
        ----------
        truth : Path or Source, or mapping of str to such
            COCO JSON, or a dataset root, for one task or for all (default: the test source that the manifest remembers)
        detections : Path, or mapping of str to Path
            COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
            (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
        manifest : Manifest or str, optional
            take tasks, class ids and the images of part TASK-test from it
        category_ids : {"manifest", "truth"}, optional
            category ids of the detections: those of the manifest's classes or those of the ground truth (default: those
            of the truth, if it has any)
        task : sequence of str
            score this task (default: all that have detections; repeatable)
        part : str, optional
            image list of the manifest, for one task (default: TASK-test)
        classes : Path, optional
            {"tasks": [{"name": "t1", "prev": [...], "cur": [...], "rest": [...]}]}
        images : Path, optional
            image list without a manifest: an id a line, repeats count
        variant : str or tuple of str
            variant of the metrics; score-free, alone, for detections without scores
        repeats : {"error", "keep", "drop"}
            an image list that names an image twice: refuse it, count every line as the official code does, or take each
            image once
        reading : Reading
        policy : Policy
            detections of classes that are unknown in the task are strays too

        Returns
        -------
        Result
            Scored are ``TASK/VARIANT``.

        Raises
        ------
        UsageError, MissingFileError, EvaluationError, PredictionError
            Options do not fit together; or a file is missing or invalid.

        Examples
        --------
        >>> import curation, pandas
        >>> owl = {"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}
        >>> elk = {**owl, "x": 30, "category": "unknown"}
        >>> found = pandas.DataFrame([{**owl, "score": 0.9}, {**elk, "score": 0.8}])
        >>> result = curation.evaluate.{benchmark}(truth=pandas.DataFrame([owl, elk]), detections=found)
        >>> result["mAP_both"], result["UR"]
        (100.0, 100.0)
        """
        scoreless = variant in (SCORE_FREE.name, (SCORE_FREE.name,))
        rules = (SCORE_FREE,) if scoreless else select(known, variant)
        _check(manifest, classes, images, part, task)
        require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
        opened = load_manifest(manifest) if isinstance(manifest, str) else manifest
        opening = reading.opener()
        if isinstance(truth, Mapping) and not truth:
            known_tasks = tasks_of_manifest(opened) if opened else ()
            chosen_tasks = choose_tasks(known_tasks, task) if opened and task else known_tasks
            parts = [part] if part else [f"{entry.name}-test" for entry in chosen_tasks]
            truth = remembered_truth(opened, parts)
        tasks = _tasks(truth, task, opened, classes, opening)
        names = [entry.name for entry in tasks]
        hint = f"--task {(task or names)[0]} goes with one plain --detections FILE"
        files: dict[str, Path] = by_name(detections, "--detections", "task", names, requested=task, hint=hint)
        truths: dict[str, Truth] = by_name(truth, "--truth", "task", names, requested=list(files), shared=True)
        inputs: dict[str, tuple[TaskTruth, ReadDetections]] = {}
        all_notes = list(notes)
        for chosen in steps([entry for entry in tasks if entry.name in files], "reading tasks"):
            source = opening(truths[chosen.name])
            numbers = numbered(chosen, source, category_ids)
            lines = _lines(opened, part or f"{numbers.name}-test", images)
            task_objects = task_truth(source, numbers, lines, repeats=repeats)
            read = read_task_detections(
                files[numbers.name], task_objects, source, policy, accepted=Accepted(scoreless=scoreless)
            )
            if scoreless:
                read = replace(read, detections=read.detections.unscored())
            inputs[numbers.name] = task_objects, read
        facts = _about(opened, part, inputs, rules, repeats, {"classes": classes, "images": images})
        scored = [
            Scored(
                part=name if opened is None else part or f"{name}-test",
                task=name,
                variant=variant,
                method=stem_of(facts["inputs"][name]["detections"]),
                truth=truth_digests(facts, name) | {"task": facts["tasks"][name]},
                predictions={name: facts["inputs"][name]["detections"]},
                settings={"task": name, "repeats": repeats},
                operating_point={key: facts["variants"][variant][key] for key in ("WI_recall", "iou")},
                found=measured,
            )
            for name, (task_objects, read) in steps(inputs.items(), "evaluating tasks")
            for variant, measured in evaluate_task(task_objects, read.detections, rules).items()
        ]
        return Result(
            report,
            facts,
            scored=scored,
            notes=[*all_notes, *(note for entry in scored if entry.found for note in entry.found.notes)],
            outcomes=lambda: {
                f"{name}/{each.name}": [TaskScene(task_objects, read.detections, each).single_outcomes()]
                for name, (task_objects, read) in inputs.items()
                for each in rules
            },
        )

    offer(evaluate, (*known, SCORE_FREE.name))
    return evaluate


def _check(manifest: object, classes: object, images: object, part: str | None, task: Sequence[str]) -> None:
    if manifest and (classes or images):
        raise UsageError(
            "--manifest already defines tasks and images",
            expected="--manifest alone, or --classes and --lists without it",
        )
    if part and not (manifest and len(task) == 1):
        raise UsageError("--part chooses a list of a manifest for one task", expected="--manifest MANIFEST --task TASK")


def _tasks(
    truth: Mapping[str, Truth] | Truth,
    task: Sequence[str],
    manifest: Manifest | None,
    classes: Path | None,
    opening: Callable[[Truth], Source],
) -> tuple[ClassRoles, ...]:
    if manifest is not None:
        tasks = tasks_of_manifest(manifest)
    elif classes is not None:
        tasks = tasks_of_file(classes)
    elif isinstance(truth, Mapping) or len(task) > 1:
        raise UsageError("Several tasks need a list of their classes", expected="--classes FILE or --manifest MANIFEST")
    elif task and Path(task[0]).suffix in (".toml", ".json"):
        raise UsageError(
            "--task names a task, not a file",
            expected="t1",
            found=task[0],
            hint="--task NAME --manifest MANIFEST, or --task NAME --classes FILE",
        )
    else:
        return (task_of_truth(opening(truth), (task or ("test",))[0]),)
    choose_tasks(tasks, task)
    return tasks


def _lines(manifest: Manifest | None, part: str, images: Path | None) -> tuple[str, ...] | None:
    """Return the ids of the images to score, an entry for each line of their list; None for all of a source."""
    if manifest is not None:
        return manifest.ids(part)
    return None if images is None else read_image_list(images)


def _about(
    manifest: Manifest | None,
    part: str | None,
    inputs: Mapping[str, tuple[TaskTruth, ReadDetections]],
    rules: Sequence[Rules],
    repeats: str,
    option_files: Mapping[str, Path | None],
) -> dict[str, Any]:
    """Return the facts about the inputs: digests, classes by task, and the numbers of records left out."""
    first = next(iter(inputs.values()))[0].task
    files = {
        task: {"truth": truth.file, "detections": {**read.file, "repeated_images": read.copies or None}}
        for task, (truth, read) in inputs.items()
    }
    record = manifest_record(manifest, parts=[part or f"{task}-test" for task in inputs])
    return about(first, files, manifest=record, option_files=option_files) | {
        "tasks": {
            task: {
                "previous": list(truth.task.previous),
                "current": list(truth.task.current),
                "unknown": None if truth.task.rest is None else list(truth.task.rest),
            }
            for task, (truth, _) in inputs.items()
        },
        "variants": {variant.name: _settings_of(variant) for variant in rules},
        "repeats": {repeats: REPEATS[repeats]},
        "definitions": DEFINITIONS,
    }
