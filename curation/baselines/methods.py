"""Reference methods of the papers on saved predictions: applied for each value of a parameter, written and scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.arguments import checked
from curation.baselines.score_vectors import Labelled, ScoreVectors, read_labelled, read_score_vectors, write_results
from curation.baselines.suppression import detections_of, keep_across_kinds, merge_passes
from curation.baselines.unknown_boxes import NaiveOptions, calibrate, confirm, expel, naive_unknown
from curation.benchmarks.osod3.truth import (
    OpenSetTruth,
    classes_of_file,
    classes_of_manifest,
    open_set_truth,
    truth_view,
)
from curation.errors import PredictionError, UsageError
from curation.evaluation.problem import ClassRoles, KnownClasses
from curation.evaluation.readers import Policy, RawColumns, locate, read_task_detections
from curation.evaluation.truth import ground_truth
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.given import as_source
from curation.sources.source import Source
from curation.storage import publishing_files
from curation.version import __version__

_SCORES = ("AP_known", "AP_unk")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Which classes are known and unknown, and the truth that an outcome is scored on.

    Attributes
    ----------
    classes
        {"known": [...], "unknown": [...]}; known in the order of the scores
    manifest
        take classes from it, known ones in the order of their index; with --truth, score on its images under its label
        view
    part
        image list of the manifest
    truth
        COCO JSON: take category ids from it, and score the outcome
    no_cache
        parse annotation files again, and store nothing
    """

    classes: Path | None = None
    manifest: Annotated[str | None, "MANIFEST"] = None
    part: Annotated[str, "PART"] = "test"
    truth: Path | None = None
    no_cache: bool = False

    @cached_property
    def locked(self) -> Manifest | None:
        """The manifest that is named, every digest checked."""
        return None if self.manifest is None else load_manifest(self.manifest)

    @cached_property
    def open_set(self) -> ClassRoles:
        """The classes that a file or a manifest names.

        Raises
        ------
        UsageError
            None of the two is given, or both.
        EvaluationError
            The manifest is of no open-set detection problem, or the file is no class file.
        """
        if (self.classes is None) == (self.manifest is None):
            raise UsageError(
                "Nothing says which classes are known and unknown"
                if self.classes is None
                else "Two options name the classes",
                expected="--classes FILE, or --manifest MANIFEST",
            )
        if self.locked is None:
            return classes_of_file(Path(str(self.classes)), "test")
        classes = classes_of_manifest(self.locked, "test")
        index = classes.numbers or {}
        return replace(classes, current=tuple(sorted(classes.current, key=index.__getitem__)))

    @cached_property
    def source(self) -> Source | None:
        """What the file of the truth says."""
        if self.truth is None:
            return None
        return as_source(self.truth, dataset="coco", part="test", cache=not self.no_cache)

    @cached_property
    def objects(self) -> OpenSetTruth | None:
        """The objects of the truth as the case and a manifest's view see them."""
        if self.source is None:
            return None
        if self.locked is None:
            return open_set_truth(self.source, self.open_set)
        view = truth_view(self.locked, self.part)
        return open_set_truth(self.source, self.open_set, self.locked.ids(self.part), view=view)


@dataclass(frozen=True, slots=True)
class Variant:
    """One setting of a method: its text, what the method returns, and the boxes that this refers to.

    `columns` holds what a results file says of each of these boxes beside its label and score.
    """

    value: str
    vectors: ScoreVectors
    found: Labelled
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Applied:
    """The outcome of a method.

    Attributes
    ----------
    method, meaning : str
        Its name, and what it is in one line.
    varies : str
        What a sweep goes through.
    problem : Problem
    variants : list of Variant
        One a value of what varies.
    inputs : list of tuple
        Name and digest of each file.
    stated : mapping
        What a result states beside the value that varies.
    notes : tuple of str
        What the reader has to know.
    """

    method: str
    meaning: str
    varies: str
    problem: Problem
    variants: list[Variant]
    inputs: list[tuple[str, str]]
    stated: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @checked
    def save(self, folder: Path) -> dict[str, Any]:
        """Write results files together, score them where a truth is given, and return what a result states.

        Raises
        ------
        PredictionError
            A box lies on an image that the truth has not; then nothing is written.
        """
        problem = self.problem
        classes, source, truth, manifest = problem.open_set, problem.source, problem.objects, problem.locked
        if truth is not None:
            _check_images(self.variants, truth)
        with publishing_files(folder) as new:
            paths, rows = self._write(new)
            written = list(paths)
            if truth is not None and source is not None:
                scored = [_score(truth, source, path) for path in paths]
                rows = [{**row, **{name: one[name] for name in _SCORES}} for row, one in zip(rows, scored, strict=True)]
                written += self._sweep(rows, new)
        inputs = [*self.inputs, *((one.name, one.sha256) for one in (source.files if source else ()))]
        return {
            "curation": __version__,
            "method": self.method,
            "meaning": self.meaning,
            "inputs": [{"name": name, "sha256": digest} for name, digest in inputs],
            "parameters": dict(self.stated),
            "known": list(classes.known),
            "settings": rows,
            "notes": list(self.notes),
            "written": [path.name for path in written],
            "manifest": manifest
            and {
                "name": manifest.header.name,
                "version": manifest.header.version,
                "digest": manifest.digest,
                "part": problem.part,
            },
        }

    def _write(self, folder: Path) -> tuple[list[Path], list[dict[str, Any]]]:
        known = self.problem.open_set.known
        ids = _category_ids(self.problem.open_set, self.problem.source)
        names = (*known, "unknown")
        written, rows = [], []
        for one in self.variants:
            path = folder / f"{self.method}-{one.value.replace('/', '_')}.json"
            write_results(one.vectors, one.found, names, [ids[name] for name in names], path, one.columns)
            written.append(path)
            unknown = int((one.found.label == len(known)).sum())
            rows.append({"value": one.value, "file": path.name, "boxes": len(one.found.row), "unknown": unknown})
        return written, rows

    def _sweep(self, rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
        from curation.benchmarks.osod3.figures import sweep_figure

        points = [(row["value"], *(row[name] for name in _SCORES)) for row in rows]
        return sweep_figure(self.varies, {self.method: points}, folder / "sweep")


@checked
def naive(
    file: Path,
    /,
    *,
    gamma: Annotated[str | Sequence[float], "G,G"],
    compare_background: bool = False,
    floor: float = 0.05,
    nms: float = 0.5,
    problem: Problem,
) -> Applied:
    """Call a box unknown whose two best classes are nearly equal (Rectifying Open-Set Object Detection, 4.2).

    Parameters
    ----------
    file
        JSON list of {"image_id", "bbox", "scores": [...]}
    gamma
        ratios below which a box is unknown
    compare_background
        whether the background is one of the two
    floor
        of class scores
    nms
        IoU within a label
    """
    vectors = read_score_vectors(file, n_classes=len(problem.open_set.known))
    variants = [
        Variant(
            text,
            vectors,
            naive_unknown(vectors, NaiveOptions(value, floor, nms, compare_background=compare_background)),
        )
        for text, value in _numbers(gamma, "--gamma")
    ]
    stated = {"floor": floor, "nms": nms, "compare_background": compare_background}
    return Applied("naive", _first_line(naive), "gamma", problem, variants, _files(vectors), stated)


@checked
def cross_nms(
    file: Path,
    /,
    *,
    iou: Annotated[str | Sequence[float], "T,T"],
    reading: Literal["pairwise", "greedy"] = "pairwise",
    problem: Problem,
) -> Applied:
    """Suppression between known and unknown boxes (Rectifying Open-Set Object Detection, 4.4).

    Parameters
    ----------
    file
        COCO results
    iou
        IoU above which one of the two boxes goes
    reading
        each pair on its own, or from the highest score down
    """
    classes, source = problem.open_set, problem.source
    ids = None if source is None else _category_ids(classes, source)
    vectors, found = read_labelled(file, classes.known, ids)
    unknown = found.label == len(classes.known)
    variants = []
    for text, value in _numbers(iou, "--iou"):
        kept = keep_across_kinds(vectors.image, vectors.boxes, found.scores, unknown, value, reading)
        variants.append(Variant(text, vectors, Labelled(found.row[kept], found.label[kept], found.scores[kept])))
    return Applied("cross-nms", _first_line(cross_nms), "IoU", problem, variants, _files(vectors), {"reading": reading})


@checked
def expelling(
    file: Path,
    /,
    *,
    training: Path,
    training_truth: Path,
    alpha: Annotated[str | Sequence[float], "A,A"] = "0.5",
    phi: float = 0.9,
    unknown_score: Literal["one", "max_score"] = "one",
    problem: Problem,
) -> Applied:
    """Class-specific expelling classifier (Revisiting Open World Object Detection, 4.2).

    Parameters
    ----------
    file
        JSON list of {"image_id", "bbox", "scores": [...]}
    training
        scores on training images
    training_truth
        their COCO JSON
    alpha
        shares of a class's mean score
    phi
        IoU of calibration pairs
    unknown_score
        what an unknown box scores: one, or its best class's score
    """
    classes = problem.open_set
    vectors = read_score_vectors(file, n_classes=len(classes.known))
    seen = read_score_vectors(training, n_classes=len(classes.known))
    source = as_source(training_truth, dataset="coco", part="train", cache=not problem.no_cache)
    known = KnownClasses(classes.known, tuple(range(len(classes.known))), Path(str(problem.classes)).name)
    truth = ground_truth(source, known).truth
    place, found = locate(seen.image_ids, truth, RawColumns(seen.boxes, np.empty(0), str(training), "record", 0))
    if not found.all():
        raise PredictionError(
            "A training box lies on an image that is not in the training truth",
            where=f"{training}: record {int(np.argmin(found))}",
            found=str(seen.image_ids[int(np.argmin(found))])[:80],
        )
    thresholds = calibrate(seen, place.astype(np.int64), truth, phi=phi)
    variants = [
        Variant(text, vectors, expel(vectors, thresholds, alpha=value, unknown=unknown_score))
        for text, value in _numbers(alpha, "--alpha")
    ]
    inputs = [*_files(vectors, seen), *((one.name, one.sha256) for one in source.files)]
    stated = {"phi": phi, "unknown_score": unknown_score}
    notes = _uncalibrated(thresholds.uncalibrated)
    return Applied("cec", _first_line(expelling), "alpha", problem, variants, inputs, stated, notes)


@checked
def confirmed(
    file: Path,
    /,
    *,
    auxiliary: Path,
    theta: Annotated[str | Sequence[float], "T,T"] = "0.7",
    top: int = 50,
    problem: Problem,
) -> Applied:
    """Unknown proposals confirmed by auxiliary ones (Revisiting Open World Object Detection, 4.1, equation 4).

    Parameters
    ----------
    file
        JSON list of {"image_id", "bbox", "objectness"}
    auxiliary
        boxes of any other method
    theta
        IoU from which on one confirms another
    top
        boxes of an image
    """
    known = problem.open_set.known
    vectors = read_score_vectors(file)
    others = read_score_vectors(auxiliary)
    if vectors.objectness is None:
        raise PredictionError(
            "The proposals have no objectness",
            where=str(file),
            expected="objectness in every record",
        )
    number = {image: place for place, image in enumerate(dict.fromkeys((*vectors.image_ids, *others.image_ids)))}
    image, other = (np.array([number[one] for one in each.image_ids], np.int64) for each in (vectors, others))
    variants = []
    for text, value in _numbers(theta, "--theta"):
        rows = confirm(
            image,
            vectors.boxes,
            vectors.objectness,
            other,
            others.boxes,
            others.objectness,
            theta=value,
            top=top,
        )
        labels = np.full(len(rows), len(known), np.int64)
        variants.append(Variant(text, vectors, Labelled(rows, labels, vectors.objectness[rows])))
    return Applied("pad", _first_line(confirmed), "theta", problem, variants, _files(vectors, others), {"top": top})


@checked
def dropout(
    file: tuple[Path, ...],
    /,
    *,
    floor: float = 0.05,
    nms: float = 0.5,
    problem: Problem,
) -> Applied:
    """Stochastic passes merged by region (The Overlooked Elephant of Object Detection, 3.2).

    Parameters
    ----------
    file
        JSON list of {"image_id", "bbox", "scores": [...]}; one file a pass, each record with its region
    floor
        of class scores
    nms
        IoU within a label
    """
    passes = [read_score_vectors(path, n_classes=len(problem.open_set.known)) for path in file]
    merged = merge_passes(passes)
    found = detections_of(merged, floor=floor, iou=nms)
    entropy = [value if value == value else None for value in merged.entropy.tolist()]
    columns = {"passes": merged.passes.tolist(), "entropy": entropy}
    variants = [Variant("merged", merged.vectors, found, columns)]
    stated = {"floor": floor, "nms": nms}
    return Applied("dropout", _first_line(dropout), "setting", problem, variants, _files(*passes), stated)


METHODS: Mapping[str, Callable[..., Applied]] = {
    "naive": naive,
    "cross-nms": cross_nms,
    "cec": expelling,
    "pad": confirmed,
    "dropout": dropout,
}
"""By the name that a result states."""


def _files(*several: ScoreVectors) -> list[tuple[str, str]]:
    return [(one.name, one.sha256) for one in several]


def _uncalibrated(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (f"no training box meets an object of {shown}: such a class never expels, so that no box at all is unknown",)


def _numbers(given: str | Sequence[float], option: str) -> list[tuple[str, float]]:
    text = given if isinstance(given, str) else ",".join(map(str, given))
    try:
        found = [(word.strip(), float(word)) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or len({word for word, _ in found}) < len(found) or any(value != value for _, value in found):
        raise UsageError(f"{option} is not a list of numbers", expected=f"{option} 0.5,0.7,0.9", found=text[:80])
    return found


def _category_ids(classes: ClassRoles, source: Source | None) -> dict[str, int]:
    """Return the category ids of known classes and unknown: the truth's, else the manifest's, else 1 to K, and -1."""
    if source is None:
        numbers = classes.numbers or {name: number for number, name in enumerate(classes.known, 1)}
        return {**numbers, "unknown": -1}
    aliases = classes.aliases
    columns = zip(source.categories.names, source.categories.numbers, strict=True)
    own = {aliases.get(name, name): number for name, number in columns}
    return {name: own[name] for name in classes.known} | {"unknown": own.get("unknown", -1)}


def _check_images(variants: Sequence[Variant], truth: OpenSetTruth) -> None:
    """Refuse boxes on other images before anything is written."""
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


def _score(truth: OpenSetTruth, source: Source, path: Path) -> dict[str, Any]:
    from curation.benchmarks.osod3.evaluation import average_precisions

    read = read_task_detections(path, truth.task, source, Policy(any_scores=True))
    return average_precisions(truth, read.detections)


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").partition("\n")[0].removesuffix(".")
