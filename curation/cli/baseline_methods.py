"""The reference methods of ``curation baseline``: each for every value of its parameter."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from curation.errors import PredictionError, UsageError

if TYPE_CHECKING:
    from curation.baselines.score_vectors import Labelled, ScoreVectors
    from curation.benchmarks.osod3.truth import OpenSetClasses, OpenSetTruth
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Variant:
    """One setting of a method: its text, what the method returns, and the boxes that this refers to.

    `columns` holds what a results file says of each of these boxes beside its label and score.
    """

    value: str
    vectors: ScoreVectors
    found: Labelled
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a method, the files it came from (name and digest), and what the reader has to know."""

    variants: list[Variant]
    inputs: list[tuple[str, str]]
    notes: tuple[str, ...] = ()


def apply(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    """Apply the method that was asked for, once for each value of its parameter."""
    methods: dict[str, Callable[[argparse.Namespace, OpenSetClasses], Applied]] = {
        "naive": _naive,
        "cross-nms": _cross,
        "cec": _cec,
        "pad": _pad,
        "dropout": _dropout,
    }
    return methods[options.method](options, classes)


def _files(*several: ScoreVectors) -> list[tuple[str, str]]:
    return [(one.name, one.sha256) for one in several]


def _naive(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    from curation.baselines.score_vectors import read_score_vectors
    from curation.baselines.unknown_boxes import NaiveOptions, naive_unknown

    vectors = read_score_vectors(options.file, n_classes=len(classes.known))
    background = options.compare_background
    variants = [
        Variant(
            text,
            vectors,
            naive_unknown(
                vectors, NaiveOptions(value, options.floor, options.nms, compare_background=background)
            ),
        )
        for text, value in _numbers(options.gamma, "--gamma")
    ]
    return Applied(variants, _files(vectors))


def _cross(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    from curation.baselines.score_vectors import Labelled, read_labelled
    from curation.baselines.suppression import keep_across_kinds

    source, _ = truth_of(options, classes, None)
    ids = None if source is None else category_ids(classes, source)
    vectors, found = read_labelled(options.file, classes.known, ids)
    unknown = found.label == len(classes.known)
    variants = []
    for text, value in _numbers(options.iou, "--iou"):
        kept = keep_across_kinds(vectors.image, vectors.boxes, found.scores, unknown, value, options.reading)
        variants.append(
            Variant(text, vectors, Labelled(found.row[kept], found.label[kept], found.scores[kept]))
        )
    return Applied(variants, _files(vectors))


def _cec(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    import numpy as np

    from curation.baselines.score_vectors import read_score_vectors
    from curation.baselines.unknown_boxes import calibrate, expel
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
    variants = [
        Variant(text, vectors, expel(vectors, thresholds, alpha=value, unknown=options.unknown_score))
        for text, value in _numbers(options.alpha, "--alpha")
    ]
    inputs = [*_files(vectors, training), *((one.name, one.sha256) for one in source.files)]
    return Applied(variants, inputs, _uncalibrated(thresholds.uncalibrated))


def _uncalibrated(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (
        f"no training box meets an object of {shown}: such a class never expels, so that no box at all is unknown",
    )


def _pad(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    import numpy as np

    from curation.baselines.score_vectors import Labelled, read_score_vectors
    from curation.baselines.unknown_boxes import confirm

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
    return Applied(variants, _files(vectors, auxiliary))


def _dropout(options: argparse.Namespace, classes: OpenSetClasses) -> Applied:
    from curation.baselines.score_vectors import read_score_vectors
    from curation.baselines.suppression import detections_of, merge_passes

    passes = [read_score_vectors(path, n_classes=len(classes.known)) for path in options.file]
    merged = merge_passes(passes)
    found = detections_of(merged, floor=options.floor, iou=options.nms)
    entropy = [value if value == value else None for value in merged.entropy.tolist()]
    columns = {"passes": merged.passes.tolist(), "entropy": entropy}
    return Applied([Variant("merged", merged.vectors, found, columns)], _files(*passes))


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


def classes_of(options: argparse.Namespace) -> tuple[OpenSetClasses, Manifest | None]:
    """Return the classes that ``--classes`` or ``--manifest`` names, and that manifest.

    Raises
    ------
    UsageError
        None of the two is given, or both.
    EvaluationError
        The manifest is of no open-set detection problem, or the file is no class file.
    """
    from curation.benchmarks.osod3.truth import classes_of_file, classes_of_manifest
    from curation.manifest.locate import load_manifest

    if (options.classes is None) == (options.manifest is None):
        raise UsageError(
            "Nothing says which classes are known and unknown"
            if options.classes is None
            else "Two options name the classes",
            expected="--classes FILE, or --manifest MANIFEST",
        )
    if options.classes is not None:
        return classes_of_file(options.classes, "test"), None
    manifest = load_manifest(options.manifest)
    classes = classes_of_manifest(manifest, "test")
    index = dict(classes.numbers or ())
    return replace(classes, known=tuple(sorted(classes.known, key=index.__getitem__))), manifest


def truth_of(
    options: argparse.Namespace, classes: OpenSetClasses, manifest: Manifest | None
) -> tuple[Source | None, OpenSetTruth | None]:
    """Return the truth that ``--truth`` names, if any, and its objects as the case and a manifest's view see them."""
    from curation.benchmarks.osod3.truth import open_set_truth
    from curation.benchmarks.osod3.view import truth_view
    from curation.sources.opening import open_source

    if options.truth is None:
        return None, None
    source = open_source(options.truth, dataset="coco", part="test", cache=not options.no_cache)
    if manifest is None:
        return source, open_set_truth(source, classes)
    ids, view = manifest.ids(options.part), truth_view(manifest, options.part)
    return source, open_set_truth(source, classes, ids, view=view)


def category_ids(classes: OpenSetClasses, source: Source | None) -> dict[str, int]:
    """Return the category ids of known classes and unknown: the truth's, else the manifest's, else 1 to K, and -1."""
    if source is None:
        numbers = classes.numbers or tuple((name, number) for number, name in enumerate(classes.known, 1))
        return {**dict(numbers), "unknown": -1}
    aliases = dict(classes.aliases)
    columns = zip(source.categories.names, source.categories.numbers, strict=True)
    own = {aliases.get(name, name): number for name, number in columns}
    return {name: own[name] for name in classes.known} | {"unknown": own.get("unknown", -1)}
