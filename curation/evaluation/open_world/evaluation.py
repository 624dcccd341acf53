"""The open-world metrics of one detector, task by task: one section a task and profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from curation.errors import UsageError
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
    require_manifest_for_ids,
)
from curation.evaluation.open_world.measures import evaluate_task, single_outcomes
from curation.evaluation.open_world.report import DEFINITIONS
from curation.evaluation.problem import (
    ClassRoles,
    choose_tasks,
    numbered,
    task_of_truth,
    tasks_of_file,
    tasks_of_manifest,
)
from curation.evaluation.readers import TaskDetections, read_task_detections
from curation.evaluation.result import Data, Report, Result
from curation.evaluation.truth import REPEATS, Repeats, TaskTruth, read_image_list, task_truth
from curation.evaluation.variants import Rules
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import steps
from curation.sources.source import Source

_COLUMNS = ("WI_points", "unknown_curve")
"""What has an entry for each object found: CSV files and figures hold it, JSON does not."""


def evaluation_as(
    report: Report,
    variants: Mapping[str, Rules],
    *,
    more: Callable[[Data], dict[str, Any]] | None = None,
    notes: tuple[str, ...] = (),
) -> Callable[..., Result]:
    """Return the function that scores open-world detection for a benchmark; its signature declares the options.

    Parameters
    ----------
    report : Report
        As `curation.evaluation.open_world.report.report_as` makes it.
    variants : mapping of str to Rules
        The first is the default.
    more : callable, optional
        ``more(section)``: further numbers of a section.
    notes : tuple of str
        What a reader of every result must know.
    """

    def evaluate(
        *,
        truth: Annotated[Mapping[str, Truth] | Truth, "[TASK=]FILE"],
        detections: Annotated[Mapping[str, Path] | Path, "[TASK=]FILE"],
        manifest: Annotated[Manifest | str | None, "MANIFEST"] = None,
        category_ids: CategoryIds | None = None,
        task: Annotated[tuple[str, ...], "TASK"] = (),
        part: Annotated[str | None, "PART"] = None,
        classes: Path | None = None,
        images: Path | None = None,
        profile: str | tuple[str, ...] = next(iter(variants)),
        repeats: Repeats = "error",
        reading: Reading = READING,
        policy: Policy = POLICY,
    ) -> Result:
        """Score open-world detection: UR, UDR, UDP, A-OSE, wilderness impact, mAP of previous and current classes.

        Parameters
        ----------
        truth : Path or Source, or mapping of str to such
            COCO JSON, or a dataset root; of one task, or of all
        detections : Path, or mapping of str to Path
            COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt);
            may be compressed by gzip
        manifest : Manifest or str, optional
            take tasks, class ids and the images of part TASK-test from it
        category_ids : {"manifest", "truth"}, optional
            of the detections: those of the manifest's classes or those of the ground truth; to be chosen where the two
            differ
        task : sequence of str
            score this task; by default all that have detections; may be repeated
        part : str, optional
            image list of the manifest, for one task (default: TASK-test)
        classes : Path, optional
            {"tasks": [{"name": "t1", "prev": [...], "cur": [...], "rest": [...]}]}
        images : Path, optional
            image list without a manifest: an id a line, repeats count
        profile : str or tuple of str
            variant of the metrics
        repeats : {"error", "keep", "drop"}
            an image list that names an image twice: refuse it, count every line as the official code does, or take each
            image once
        reading : Reading
        policy : Policy
            detections of classes that are unknown in the task are strays too

        Returns
        -------
        Result
            Sections ``TASK/PROFILE``.

        Raises
        ------
        UsageError, MissingFileError, EvaluationError, PredictionError
            Options do not fit together; a file is not there, or does not hold what it should.
        """
        _check(manifest, classes, images, part, task)
        require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
        taken = load_manifest(manifest) if isinstance(manifest, str) else manifest
        opening = reading.opener()
        tasks = _tasks(truth, task, taken, classes, opening)
        names = [one.name for one in tasks]
        hint = f"one plain --detections FILE goes with --task {(task or names)[0]}"
        files: dict[str, Path] = by_name(detections, "--detections", "task", names, wanted=task, hint=hint)
        truths: dict[str, Truth] = by_name(truth, "--truth", "task", names, wanted=list(files), shared=True)
        wanted = tuple(variants) if profile == "all" else (profile,) if isinstance(profile, str) else profile
        rules = [variants[one] for one in wanted]
        inputs: dict[str, tuple[TaskTruth, TaskDetections]] = {}
        told = list(notes)
        for one in steps([one for one in tasks if one.name in files], "reading tasks"):
            source = opening(truths[one.name])
            numbers = numbered(one, source, category_ids)
            lines = _list_of(taken, part, images, numbers, source, reading)
            source, remarks = reading.boxed(source, taken, lines)
            told += remarks
            found = task_truth(source, numbers, lines, repeats=repeats)
            inputs[numbers.name] = (
                found,
                read_task_detections(files[numbers.name], found, source, reading.policy_of(policy)),
            )
        whole: dict[str, Any] = {}
        for found, read in steps(inputs.values(), "evaluating tasks"):
            whole |= evaluate_task(found, read.detections, rules)
        if more is not None:
            for section in whole.values():
                section |= more(section)
        return Result(
            report,
            _about(taken, part, inputs, rules, repeats, {"classes": classes, "images": images}),
            {
                name: {key: entry for key, entry in section.items() if key not in _COLUMNS}
                for name, section in whole.items()
            },
            columns={name: {key: section[key] for key in _COLUMNS} for name, section in whole.items()},
            notes=[*told, *(note for section in whole.values() for note in section["notes"])],
            outcomes=lambda: {
                f"{one}/{each.name}": [single_outcomes(found, read.detections, each)]
                for one, (found, read) in inputs.items()
                for each in rules
            },
        )

    # The variants of a benchmark are data, and the words of an option at once.
    choice: Any = Literal
    names = (*variants, "all")
    evaluate.__annotations__["profile"] = choice[names] | tuple[choice[names], ...]
    return evaluate


def _check(manifest: object, classes: object, images: object, part: str | None, task: Sequence[str]) -> None:
    if manifest and (classes or images):
        raise UsageError(
            "--manifest names tasks and images already",
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
    else:
        if isinstance(truth, Mapping) or len(task) > 1:
            raise UsageError(
                "Several tasks need a list of their classes", expected="--classes FILE or --manifest MANIFEST"
            )
        return (task_of_truth(opening(truth), (task or ("test",))[0]),)
    choose_tasks(tasks, task)
    return tasks


def _list_of(
    manifest: Manifest | None,
    part: str | None,
    images: Path | None,
    task: ClassRoles,
    source: Source,
    reading: Reading,
) -> tuple[str, ...] | None:
    if manifest is not None:
        return reading.listed(manifest, part or f"{task.name}-test")
    return reading.images_of(source) if images is None else read_image_list(images)


def _about(
    manifest: Manifest | None,
    part: str | None,
    inputs: Mapping[str, tuple[TaskTruth, TaskDetections]],
    rules: Sequence[Rules],
    repeats: str,
    option_files: Mapping[str, Path | None],
) -> dict[str, Any]:
    """Return what the numbers rest on: digests of all inputs, classes by task, and what was left out."""
    first = next(iter(inputs.values()))[0].task
    files = {
        task: {"truth": truth.file, "detections": {**read.read.file, "repeated_images": read.copies or None}}
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
        "profiles": {one.name: one.meaning for one in rules},
        "repeats": {repeats: REPEATS[repeats]},
        "definitions": DEFINITIONS,
    }
