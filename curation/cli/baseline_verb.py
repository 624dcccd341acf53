"""``curation baseline``: reference methods of the papers, from saved predictions to COCO results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines
from curation.errors import PredictionError, UsageError

if TYPE_CHECKING:
    from curation.baselines.score_vectors import Labelled, ScoreVectors
    from curation.evaluation.osod3_truth import OpenSetClasses, OpenSetTruth
    from curation.sources.source import Source

_METHODS = {
    "naive": "a box whose two best classes are nearly equal is unknown (Rectifying Open-Set Object Detection, 4.2)",
    "cross-nms": "suppression between known and unknown boxes (the same, 4.4)",
    "cec": "class-specific expelling classifier (Revisiting Open World Object Detection, 4.2)",
    "pad": "unknown proposals confirmed by auxiliary ones (the same, 4.1, equation 4)",
    "dropout": "stochastic passes merged by region (The Overlooked Elephant of Object Detection, 3.2)",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One setting of a method: its text, what the method returns, and the boxes that this refers to."""

    value: str
    vectors: ScoreVectors
    found: Labelled


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
            "--classes", type=Path, required=True, metavar="FILE", help='{"known": [...], "unknown": [...]}; known in '
            "the order of the scores",
        )  # fmt: skip
        method.add_argument(
            "--truth",
            type=Path,
            metavar="FILE",
            help="COCO JSON: take category ids from it, and score the outcome",
        )
        method.add_argument(
            "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
        )
        method.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of results files")
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
    from curation.evaluation.osod3_truth import classes_of_file

    classes = classes_of_file(options.classes, "test")
    methods: dict[str, Callable[[argparse.Namespace, OpenSetClasses], Sequence[Variant]]] = {
        "naive": _naive,
        "cross-nms": _cross,
        "cec": _cec,
        "pad": _pad,
        "dropout": _dropout,
    }
    variants = methods[options.method](options, classes)
    source, truth = _truth(options, classes)
    written, rows = _write(options, classes, source, variants)
    scored = [_score(truth, source, path) for path in written] if truth and source else []
    sweep = list(zip([one.value for one in variants], scored, strict=True)) if scored else []
    if sweep:
        written += _sweep(options, sweep)
    result = _result(options, classes, variants, rows, sweep, written)
    emit(result, [*_lines(result), *(f"wrote {path}" for path in written)], as_json=options.json)
    return 0


def _naive(options: argparse.Namespace, classes: OpenSetClasses) -> list[Variant]:
    from curation.baselines.naive_unknown import NaiveOptions, naive_unknown
    from curation.baselines.score_vectors import read_score_vectors

    vectors = read_score_vectors(options.file, n_classes=len(classes.known))
    return [
        Variant(
            text,
            vectors,
            naive_unknown(
                vectors,
                NaiveOptions(
                    value, options.floor, options.nms, compare_background=options.compare_background
                ),
            ),
        )
        for text, value in _numbers(options.gamma, "--gamma")
    ]


def _cross(options: argparse.Namespace, classes: OpenSetClasses) -> list[Variant]:
    from curation.baselines.labelled_results import read_labelled
    from curation.baselines.score_vectors import Labelled
    from curation.baselines.suppression import keep_across_kinds

    source, _ = _truth(options, classes)
    vectors, found = read_labelled(options.file, classes.known, _ids(classes, source))
    unknown = found.label == len(classes.known)
    variants = []
    for text, value in _numbers(options.iou, "--iou"):
        kept = keep_across_kinds(vectors.image, vectors.boxes, found.scores, unknown, value, options.reading)
        variants.append(
            Variant(text, vectors, Labelled(found.row[kept], found.label[kept], found.scores[kept]))
        )
    return variants


def _cec(options: argparse.Namespace, classes: OpenSetClasses) -> list[Variant]:
    import numpy as np

    from curation.baselines.expelling import calibrate, expel
    from curation.baselines.score_vectors import read_score_vectors
    from curation.evaluation.detections import RawColumns, locate
    from curation.evaluation.truth import KnownClasses, ground_truth
    from curation.sources.opening import open_source

    vectors = read_score_vectors(options.file, n_classes=len(classes.known))
    training = read_score_vectors(options.training, n_classes=len(classes.known))
    source = open_source(options.training_truth, dataset="coco", part="train", cache=not options.no_cache)
    known = KnownClasses(classes.known, tuple(range(len(classes.known))), options.classes.name)
    truth = ground_truth(source, known).truth
    place, found = locate(
        training.image_ids,
        truth,
        RawColumns(training.boxes, np.empty(0), str(options.training), "record", 0),
    )
    if not found.all():
        raise PredictionError(
            "A training box lies on an image that is not in the training truth",
            where=f"{options.training}: record {int(np.argmin(found))}",
            found=str(training.image_ids[int(np.argmin(found))])[:80],
        )
    thresholds = calibrate(training, place.astype(np.int64), truth, phi=options.phi)
    return [
        Variant(text, vectors, expel(vectors, thresholds, alpha=value, unknown=options.unknown_score))
        for text, value in _numbers(options.alpha, "--alpha")
    ]


def _pad(options: argparse.Namespace, classes: OpenSetClasses) -> list[Variant]:
    import numpy as np

    from curation.baselines.proposal_confirmation import confirm
    from curation.baselines.score_vectors import Labelled, read_score_vectors

    vectors = read_score_vectors(options.file)
    auxiliary = read_score_vectors(options.auxiliary)
    if vectors.objectness is None:
        raise PredictionError(
            "The proposals have no objectness", where=str(options.file), expected="objectness in every record"
        )
    number = {
        image: place for place, image in enumerate(dict.fromkeys((*vectors.image_ids, *auxiliary.image_ids)))
    }
    image, other = (
        np.array([number[one] for one in each.image_ids], np.int64) for each in (vectors, auxiliary)
    )
    variants = []
    for text, value in _numbers(options.theta, "--theta"):
        rows = confirm(
            image,
            vectors.boxes,
            vectors.objectness,
            other,
            auxiliary.boxes,
            auxiliary.objectness,
            theta=value,
            top=options.top,
        )
        labels = np.full(len(rows), len(classes.known), np.int64)
        variants.append(Variant(text, vectors, Labelled(rows, labels, vectors.objectness[rows])))
    return variants


def _dropout(options: argparse.Namespace, classes: OpenSetClasses) -> list[Variant]:
    from curation.baselines.dropout_merge import detections_of, merge_passes
    from curation.baselines.score_vectors import read_score_vectors

    merged = merge_passes([read_score_vectors(path, n_classes=len(classes.known)) for path in options.file])
    return [Variant("merged", merged.vectors, detections_of(merged, floor=options.floor, iou=options.nms))]


def _numbers(text: str, option: str) -> list[tuple[str, float]]:
    try:
        found = [(word.strip(), float(word)) for word in text.split(",")]
    except ValueError:
        found = []
    if (
        not found
        or len({word for word, _ in found}) < len(found)
        or any(value != value for _, value in found)
    ):
        raise UsageError(
            f"{option} is not a list of numbers", expected=f"{option} 0.5,0.7,0.9", found=text[:80]
        )
    return found


def _truth(options: argparse.Namespace, classes: OpenSetClasses) -> tuple[Source | None, OpenSetTruth | None]:
    from curation.evaluation.osod3_truth import open_set_truth
    from curation.sources.opening import open_source

    if options.truth is None:
        return None, None
    source = open_source(options.truth, dataset="coco", part="test", cache=not options.no_cache)
    return source, open_set_truth(source, classes)


def _ids(classes: OpenSetClasses, source: Source | None) -> dict[str, int]:
    """Return the category ids of the known classes and of unknown: the truth's, else 1 to K, and -1."""
    if source is None:
        return {name: number for number, name in enumerate(classes.known, 1)} | {"unknown": -1}
    own = dict(zip(source.categories.names, source.categories.numbers, strict=True))
    return {name: own[name] for name in classes.known} | {"unknown": own.get("unknown", -1)}


def _write(
    options: argparse.Namespace, classes: OpenSetClasses, source: Source | None, variants: Sequence[Variant]
) -> tuple[list[Path], list[dict[str, Any]]]:
    from curation.baselines.score_vectors import write_results
    from curation.storage import make_folder, remove_abandoned

    make_folder(options.out)
    remove_abandoned(options.out)
    ids = _ids(classes, source)
    names = (*classes.known, "unknown")
    written, rows = [], []
    for one in variants:
        path = options.out / f"{options.method}-{one.value.replace('/', '_')}.json"
        write_results(one.vectors, one.found, names, [ids[name] for name in names], path)
        written.append(path)
        unknown = int((one.found.label == len(classes.known)).sum())
        rows.append({"value": one.value, "file": path.name, "boxes": len(one.found.row), "unknown": unknown})
    return written, rows


def _score(truth: OpenSetTruth | None, source: Source | None, path: Path) -> dict[str, Any]:
    from curation.evaluation.detections import Policy
    from curation.evaluation.osod3 import average_precisions
    from curation.evaluation.owod_detections import read_task_detections

    if truth is None or source is None:
        return {}
    read = read_task_detections(path, truth.task, source, Policy(any_scores=True))
    return average_precisions(truth, read.detections)


def _sweep(options: argparse.Namespace, sweep: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Path]:
    from curation.evaluation.osod3_figures import sweep_figure

    parameter = {"naive": "gamma", "cross-nms": "IoU", "cec": "alpha", "pad": "theta"}.get(options.method, "")
    rows = [(value, found["AP_known"], found["AP_unk"]) for value, found in sweep]
    return sweep_figure(parameter or "setting", {options.method: rows}, options.out / "sweep")


def _result(
    options: argparse.Namespace,
    classes: OpenSetClasses,
    variants: Sequence[Variant],
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
        "input": {"name": variants[0].vectors.name, "sha256": variants[0].vectors.sha256},
        "known": list(classes.known),
        "settings": [{**row, **scores.get(row["value"], {})} for row in rows],
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
