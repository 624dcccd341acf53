"""``curation baseline``: reference methods of the papers, from saved predictions to COCO results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines, warn
from curation.cli.outputs import OutputFolder
from curation.errors import PredictionError

if TYPE_CHECKING:
    from curation.benchmarks.osod3.truth import OpenSetClasses, OpenSetTruth
    from curation.cli.baseline_methods import Variant
    from curation.sources.source import Source

_METHODS = {
    "naive": "a box whose two best classes are nearly equal is unknown (Rectifying Open-Set Object Detection, 4.2)",
    "cross-nms": "suppression between known and unknown boxes (the same, 4.4)",
    "cec": "class-specific expelling classifier (Revisiting Open World Object Detection, 4.2)",
    "pad": "unknown proposals confirmed by auxiliary ones (the same, 4.1, equation 4)",
    "dropout": "stochastic passes merged by region (The Overlooked Elephant of Object Detection, 3.2)",
}

_PARAMETERS = {
    "naive": ("floor", "nms", "compare_background"),
    "cross-nms": ("reading",),
    "cec": ("phi", "unknown_score"),
    "pad": ("top",),
    "dropout": ("floor", "nms"),
}
"""What a result states beside the value that varies."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation baseline``: one sub-command a method."""
    methods = parser.add_subparsers(dest="method", metavar="METHOD", required=True)
    for name, summary in _METHODS.items():
        method = methods.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        several = name == "dropout"
        method.add_argument(
            "file",
            type=Path,
            nargs="+" if several else None,
            metavar="FILE",
            help="COCO results"
            if name == "cross-nms"
            else 'JSON list of {"image_id", "bbox", "scores": [...]}'
            + ("; one file a pass, each record with its region" if several else ""),
        )
        _add_method(method, name)
        method.add_argument(
            "--classes",
            type=Path,
            metavar="FILE",
            help='{"known": [...], "unknown": [...]}; known in the order of the scores',
        )
        method.add_argument(
            "--manifest",
            metavar="MANIFEST",
            help="take classes from it, known ones in the order of their index; with --truth, score on its images "
            "under its label view",
        )
        method.add_argument(
            "--part",
            default="test",
            metavar="PART",
            help="image list of the manifest (default: %(default)s)",
        )
        method.add_argument(
            "--truth",
            type=Path,
            metavar="FILE",
            help="COCO JSON: take category ids from it, and score the outcome",
        )
        method.add_argument(
            "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
        )
        method.add_argument(
            "--out",
            type=OutputFolder((f"{name}-*.json",), ("sweep",)),
            required=True,
            metavar="DIR",
            help="folder of results files",
        )
        method.add_argument("--json", action="store_true", help="print what was made as JSON")


def _add_method(method: argparse.ArgumentParser, name: str) -> None:
    if name == "naive":
        method.add_argument(
            "--gamma", required=True, metavar="G,G", help="ratios below which a box is unknown"
        )
        method.add_argument("--compare-background", action="store_true")
    if name in ("naive", "dropout"):
        method.add_argument(
            "--floor", type=float, default=0.05, help="of class scores (default: %(default)s)"
        )
        method.add_argument(
            "--nms", type=float, default=0.5, help="IoU within a label (default: %(default)s)"
        )
    if name == "cross-nms":
        method.add_argument(
            "--iou", required=True, metavar="T,T", help="IoU above which one of the two boxes goes"
        )
        method.add_argument("--reading", choices=("pairwise", "greedy"), default="pairwise")
    if name == "cec":
        method.add_argument(
            "--training", type=Path, required=True, metavar="FILE", help="scores on training images"
        )
        method.add_argument(
            "--training-truth", type=Path, required=True, metavar="FILE", help="their COCO JSON"
        )
        method.add_argument("--alpha", default="0.5", metavar="A,A", help="default: %(default)s")
        method.add_argument(
            "--phi", type=float, default=0.9, help="IoU of calibration pairs (default: %(default)s)"
        )
        method.add_argument("--unknown-score", choices=("one", "max_score"), default="one")
    if name == "pad":
        method.add_argument(
            "--auxiliary", type=Path, required=True, metavar="FILE", help="boxes of any other method"
        )
        method.add_argument("--theta", default="0.7", metavar="T,T", help="default: %(default)s")
        method.add_argument("--top", type=int, default=50, help="boxes of an image (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Apply the method for every value of its parameter, write results, and score them where a truth is given."""
    from curation.cli.baseline_methods import apply, classes_of, truth_of

    classes, manifest = classes_of(options)
    applied = apply(options, classes)
    source, truth = truth_of(options, classes, manifest)
    if truth is not None:
        _check_images(applied.variants, truth)
    for note in applied.notes:
        warn(note)
    written, rows = _write(options, classes, source, applied.variants)
    scored = [_score(truth, source, path) for path in written] if truth and source else []
    sweep = list(zip([one.value for one in applied.variants], scored, strict=True)) if scored else []
    if sweep:
        written += _sweep(options, sweep)
    inputs = [*applied.inputs, *((one.name, one.sha256) for one in (source.files if source else ()))]
    result = _result(options, classes, inputs, applied.notes, rows, sweep, written)
    result["manifest"] = manifest and {
        "name": manifest.header.name,
        "version": manifest.header.version,
        "digest": manifest.digest,
        "part": options.part,
    }
    emit(result, [*_lines(result), *(f"wrote {path}" for path in written)], as_json=options.json)
    return 0


def _check_images(variants: Sequence[Variant], truth: OpenSetTruth) -> None:
    """Refuse boxes on other images before anything is written."""
    import numpy as np

    from curation.evaluation.detections import RawColumns, locate

    vectors = variants[0].vectors
    columns = RawColumns(vectors.boxes, np.empty(0), vectors.name, "record", 0)
    _, found = locate(vectors.image_ids, truth.truth, columns)
    if not found.all():
        place = int(np.argmin(found))
        raise PredictionError(
            "A box lies on an image that is not in the truth",
            where=columns.place(place),
            expected=f"one of its {truth.truth.n_images} images",
            found=f"image_id {vectors.image_ids[place]!s:.80}; {int((~found).sum())} such boxes",
        )


def _write(
    options: argparse.Namespace, classes: OpenSetClasses, source: Source | None, variants: Sequence[Variant]
) -> tuple[list[Path], list[dict[str, Any]]]:
    from curation.baselines.score_vectors import write_results
    from curation.cli.baseline_methods import category_ids
    from curation.storage import remove_abandoned

    remove_abandoned(options.out)
    ids = category_ids(classes, source)
    names = (*classes.known, "unknown")
    written, rows = [], []
    for one in variants:
        path = options.out / f"{options.method}-{one.value.replace('/', '_')}.json"
        numbers = [ids[name] for name in names]
        write_results(one.vectors, one.found, names, numbers, path, one.columns)
        written.append(path)
        unknown = int((one.found.label == len(classes.known)).sum())
        rows.append({"value": one.value, "file": path.name, "boxes": len(one.found.row), "unknown": unknown})
    return written, rows


def _score(truth: OpenSetTruth | None, source: Source | None, path: Path) -> dict[str, Any]:
    from curation.benchmarks.osod3.evaluation import average_precisions
    from curation.benchmarks.owod.detections import read_task_detections
    from curation.evaluation.detections import Policy

    if truth is None or source is None:
        return {}
    read = read_task_detections(path, truth.task, source, Policy(any_scores=True))
    return average_precisions(truth, read.detections)


def _sweep(options: argparse.Namespace, sweep: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Path]:
    from curation.benchmarks.osod3.figures import sweep_figure

    parameter = {"naive": "gamma", "cross-nms": "IoU", "cec": "alpha", "pad": "theta"}.get(options.method, "")
    rows = [(value, found["AP_known"], found["AP_unk"]) for value, found in sweep]
    return sweep_figure(parameter or "setting", {options.method: rows}, options.out / "sweep")


def _result(
    options: argparse.Namespace,
    classes: OpenSetClasses,
    inputs: Sequence[tuple[str, str]],
    notes: Sequence[str],
    rows: Sequence[dict[str, Any]],
    sweep: Sequence[tuple[str, Mapping[str, Any]]],
    written: Sequence[Path],
) -> dict[str, Any]:
    from curation import __version__

    scores = {value: {name: found[name] for name in ("AP_known", "AP_unk")} for value, found in sweep}
    return {
        "curation": __version__,
        "method": options.method,
        "meaning": _METHODS[options.method],
        "inputs": [{"name": name, "sha256": digest} for name, digest in inputs],
        "parameters": {name: getattr(options, name) for name in _PARAMETERS[options.method]},
        "known": list(classes.known),
        "settings": [{**row, **scores.get(row["value"], {})} for row in rows],
        "notes": list(notes),
        "written": [path.name for path in written],
    }


def _lines(result: Mapping[str, Any]) -> list[str]:
    rows = tuple(
        (
            row["value"],
            f"{row['boxes']:,}",
            f"{row['unknown']:,}",
            *("-" if row.get(name) is None else f"{row[name]:.2f}" for name in ("AP_known", "AP_unk")),
        )
        for row in result["settings"]
    )
    return table_lines(Table(result["meaning"], ("setting", "boxes", "unknown", "AP_known", "AP_unk"), rows))
