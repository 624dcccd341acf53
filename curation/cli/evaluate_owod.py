"""``curation evaluate owod``: the open-world metrics of one detector, task by task."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.category_id_options import add_category_ids, require_manifest_for_ids
from curation.cli.evaluate_append import Evaluated
from curation.cli.output import stage, steps, warn
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.owod.detections import TaskDetections
    from curation.evaluation.task_truth import TaskTruth
    from curation.evaluation.tasks import OwodTask
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source

Open = Callable[[Path, argparse.Namespace, str], "Source"]


def add_owod(command: argparse.ArgumentParser) -> None:
    """Declare what ``curation evaluate owod`` takes beyond the arguments of every protocol."""
    command.add_argument(
        "--manifest",
        metavar="MANIFEST",
        help="take tasks, class ids and the images of part TASK-test from it",
    )
    add_category_ids(command)
    command.add_argument(
        "--task",
        action="append",
        metavar="TASK",
        help="score this task; by default all that have detections; may be repeated",
    )
    command.add_argument(
        "--part", metavar="PART", help="image list of the manifest, for one task (default: TASK-test)"
    )
    command.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="image list without a manifest: an id a line, repeats count",
    )
    command.add_argument("--profile", choices=("clean", "ore", "owdetr", "all"), default="clean")
    command.add_argument(
        "--repeats",
        choices=("error", "keep", "drop"),
        default="error",
        help="an image list that names an image twice: refuse it, count every line as the official code does, or take "
        "each image once (default: %(default)s)",
    )


def run_owod(options: argparse.Namespace, open_truth: Open) -> Evaluated:
    """Evaluate, and write what ``--out`` asks for."""
    from curation.benchmarks.owod.evaluation import evaluate_task
    from curation.cli.evaluate_owod_files import without_columns, write_owod
    from curation.cli.evaluate_owod_tables import owod_lines

    manifest, inputs = _inputs(options, open_truth)
    profiles = ("clean", "ore", "owdetr") if options.profile == "all" else (options.profile,)
    sections: dict[str, Any] = {}
    for truth, read in steps(inputs.values(), "evaluating tasks"):
        sections |= evaluate_task(truth, read.detections, profiles)
    result = {**_about(options, manifest, inputs, profiles), **sections}
    for note in dict.fromkeys(note for section in sections.values() for note in section["notes"]):
        warn(note)
    with stage("writing"):
        written = write_owod(result, sections, options.out) if options.out else []
    lines = [*owod_lines(result, sections), *(f"wrote {path}" for path in written)]
    return Evaluated(result, without_columns(result, sections), lines)


def _inputs(
    options: argparse.Namespace, open_truth: Open
) -> tuple[Manifest | None, dict[str, tuple[TaskTruth, TaskDetections]]]:
    """Return the manifest, and ground truth and detections of each task to be scored."""
    from curation.benchmarks.owod.detections import read_task_detections
    from curation.evaluation.detections import Policy
    from curation.evaluation.task_truth import task_truth
    from curation.evaluation.tasks import numbered
    from curation.manifest.locate import load_manifest

    _check(options)
    manifest = load_manifest(options.manifest) if options.manifest else None
    opened: dict[Path, Source] = {}

    def opening(path: Path) -> Source:
        if path not in opened:
            opened[path] = open_truth(path, options, "test")
        return opened[path]

    tasks = _tasks(options, manifest, opening)
    files = _by_task(options.detections, "--detections", options.task, tasks)
    truths = _by_task(options.truth, "--truth", list(files), tasks, shared=True)
    policy = Policy(stray=options.stray, negative_sizes=options.negative_sizes, any_scores=options.any_scores)
    inputs = {}
    for one in steps([one for one in tasks if one.name in files], "reading tasks"):
        source = opening(truths[one.name])
        task = numbered(one, source, options.category_ids)
        truth = task_truth(source, task, _list_of(options, manifest, task), repeats=options.repeats)
        inputs[task.name] = truth, read_task_detections(files[task.name], truth, source, policy)
    return manifest, inputs


def _check(options: argparse.Namespace) -> None:
    require_manifest_for_ids(options)
    if options.manifest and (options.classes or options.images):
        raise UsageError(
            "--manifest names tasks and images already",
            expected="--manifest alone, or --classes and --images without it",
        )
    if options.part and not (options.manifest and options.task and len(options.task) == 1):
        raise UsageError(
            "--part chooses a list of a manifest for one task", expected="--manifest MANIFEST --task TASK"
        )


def _tasks(
    options: argparse.Namespace, manifest: Manifest | None, opening: Callable[[Path], Source]
) -> tuple[OwodTask, ...]:
    from curation.evaluation.tasks import choose_tasks, task_of_truth, tasks_of_file, tasks_of_manifest

    if manifest is not None:
        tasks = tasks_of_manifest(manifest)
    elif options.classes is not None:
        tasks = tasks_of_file(options.classes)
    else:
        if len(options.truth) > 1 or len(options.task or ()) > 1:
            raise UsageError(
                "Several tasks need a list of their classes", expected="--classes FILE or --manifest MANIFEST"
            )
        return (task_of_truth(opening(Path(options.truth[0])), (options.task or ["test"])[0]),)
    choose_tasks(tasks, options.task or ())
    return tasks


def _by_task(
    texts: Sequence[str],
    option: str,
    wanted: Sequence[str] | None,
    tasks: Sequence[OwodTask],
    *,
    shared: bool = False,
) -> dict[str, Path]:
    """Return the path of each wanted task from ``TASK=PATH`` arguments, or from one plain path.

    A plain path serves the only wanted task, or every one where it may be `shared`.
    """
    names = [task.name for task in tasks]
    found: dict[str, Path] = {}
    plain = []
    for text in texts:
        task, equals, path = text.partition("=")
        if not (equals and path and task in names):
            plain.append(text)
        elif task in found:
            raise UsageError(f"{option} is given twice for task {task}", where=text[:200])
        else:
            found[task] = Path(path)
    asked = list(wanted) if wanted else list(found) or names
    if len(plain) == 1 and not found and (shared or len(asked) == 1):
        return {task: Path(plain[0]) for task in asked}
    missing = [task for task in asked if task not in found]
    if plain or missing:
        raise UsageError(
            f"{option} does not say which task it is of"
            if plain
            else f"{option} is missing for task {', '.join(missing)}",
            where=plain[0][:200] if plain else None,
            expected=" ".join(f"{option} {task}=FILE" for task in asked[:4]),
            hint=f"one plain {option} FILE goes with --task {asked[0]}",
        )
    return {task: path for task, path in found.items() if task in asked}


def _list_of(
    options: argparse.Namespace, manifest: Manifest | None, task: OwodTask
) -> tuple[str, ...] | None:
    from curation.evaluation.task_truth import read_image_list

    if manifest is not None:
        return manifest.ids(options.part or f"{task.name}-test")
    return None if options.images is None else read_image_list(options.images)


def _about(
    options: argparse.Namespace,
    manifest: Manifest | None,
    inputs: Mapping[str, tuple[TaskTruth, TaskDetections]],
    profiles: Sequence[str],
) -> dict[str, Any]:
    """Return what the numbers rest on: version, digests of all inputs, classes by task, and what was left out."""
    from curation import __version__
    from curation.benchmarks.owod.report import DEFINITIONS
    from curation.canonical import sha256_of_file
    from curation.evaluation.outcomes import PROFILES
    from curation.evaluation.task_truth import REPEATS

    return {
        "protocol": "owod",
        "curation": __version__,
        "known_classes_from": next(iter(inputs.values()))[0].task.origin,
        "category_ids": next(iter(inputs.values()))[0].task.ids_from,
        "manifest": None
        if manifest is None
        else {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "digest": manifest.digest,
            "parts": [options.part or f"{task}-test" for task in inputs],
        },
        "option_files": {
            option: {"name": path.name, "sha256": sha256_of_file(path)}
            for option in ("classes", "images")
            if (path := getattr(options, option)) is not None
        },
        "inputs": {
            task: {
                "truth": truth.file,
                "detections": {**read.read.file, "repeated_images": read.copies or None},
            }
            for task, (truth, read) in inputs.items()
        },
        "tasks": {
            task: {
                "previous": list(truth.task.previous),
                "current": list(truth.task.current),
                "unknown": None if truth.task.rest is None else list(truth.task.rest),
            }
            for task, (truth, _) in inputs.items()
        },
        "profiles": {name: PROFILES[name].meaning for name in profiles},
        "repeats": {options.repeats: REPEATS[options.repeats]},
        "definitions": DEFINITIONS,
    }
