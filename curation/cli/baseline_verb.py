"""``curation baseline``: reference methods of the papers, from saved predictions to COCO results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from curation.cli.options import CacheOption
from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OutputFolder
from curation.cli.signature import summary_of
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


@dataclass(frozen=True, kw_only=True)
class Method(CacheOption):
    """What every method is given.

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
    file
        JSON list of {"image_id", "bbox", "scores": [...]}
    out
        folder of results files
    """

    classes: Path | None = None
    manifest: Annotated[str | None, "MANIFEST"] = None
    part: Annotated[str, "PART"] = "test"
    truth: Path | None = None
    out: Annotated[Path, "DIR"]

    name: ClassVar[str]
    varies: ClassVar[str] = "setting"
    """What a sweep goes through."""
    stated: ClassVar[tuple[str, ...]] = ()
    """What a result states beside the value that varies."""

    @abstractmethod
    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply the method, once for each value of its parameter."""

    def run(self) -> Answer:
        """Apply the method for every value of its parameter, write results, and score them where a truth is given."""
        classes, manifest = _classes_of(self)
        applied = self.apply(classes)
        source, truth = _truth_of(self, classes, manifest)
        if truth is not None:
            _check_images(applied.variants, truth)
        for note in applied.notes:
            warn(note)
        written, rows = _write(self, classes, source, applied.variants)
        scored = [_score(truth, source, path) for path in written] if truth and source else []
        sweep = list(zip([one.value for one in applied.variants], scored, strict=True)) if scored else []
        if sweep:
            written += _sweep(self, sweep)
        inputs = [*applied.inputs, *((one.name, one.sha256) for one in (source.files if source else ()))]
        result = _result(self, classes, inputs, applied.notes, rows, sweep, written)
        result["manifest"] = manifest and {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "digest": manifest.digest,
            "part": self.part,
        }
        return Answer(result, [*_lines(result), *(f"wrote {path}" for path in written)])


@dataclass(frozen=True)
class Naive(Method):
    """A box whose two best classes are nearly equal is unknown (Rectifying Open-Set Object Detection, 4.2).

    Attributes
    ----------
    gamma
        ratios below which a box is unknown
    compare_background
        whether the background is one of the two
    floor
        of class scores
    nms
        IoU within a label
    """

    file: Path
    _: KW_ONLY
    out: Annotated[Path, OutputFolder(("naive-*.json",), ("sweep",)), "DIR"]
    gamma: Annotated[str, "G,G"]
    compare_background: bool = False
    floor: float = 0.05
    nms: float = 0.5

    name = "naive"
    varies = "gamma"
    stated = ("floor", "nms", "compare_background")

    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply it for every value of its parameter."""
        from curation.baselines.score_vectors import read_score_vectors
        from curation.baselines.unknown_boxes import NaiveOptions, naive_unknown

        vectors = read_score_vectors(self.file, n_classes=len(classes.known))
        background = self.compare_background
        variants = [
            Variant(
                text,
                vectors,
                naive_unknown(vectors, NaiveOptions(value, self.floor, self.nms, compare_background=background)),
            )
            for text, value in _numbers(self.gamma, "--gamma")
        ]
        return Applied(variants, _files(vectors))


@dataclass(frozen=True)
class CrossNms(Method):
    """Suppression between known and unknown boxes (the same, 4.4).

    Attributes
    ----------
    file
        COCO results
    iou
        IoU above which one of the two boxes goes
    reading
        each pair on its own, or from the highest score down
    """

    file: Path
    _: KW_ONLY
    out: Annotated[Path, OutputFolder(("cross-nms-*.json",), ("sweep",)), "DIR"]
    iou: Annotated[str, "T,T"]
    reading: Literal["pairwise", "greedy"] = "pairwise"

    name = "cross-nms"
    varies = "IoU"
    stated = ("reading",)

    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply it for every value of its parameter."""
        from curation.baselines.score_vectors import Labelled, read_labelled
        from curation.baselines.suppression import keep_across_kinds

        source, _ = _truth_of(self, classes, None)
        ids = None if source is None else _category_ids(classes, source)
        vectors, found = read_labelled(self.file, classes.known, ids)
        unknown = found.label == len(classes.known)
        variants = []
        for text, value in _numbers(self.iou, "--iou"):
            kept = keep_across_kinds(vectors.image, vectors.boxes, found.scores, unknown, value, self.reading)
            variants.append(Variant(text, vectors, Labelled(found.row[kept], found.label[kept], found.scores[kept])))
        return Applied(variants, _files(vectors))


@dataclass(frozen=True)
class Expelling(Method):
    """Class-specific expelling classifier (Revisiting Open World Object Detection, 4.2).

    Attributes
    ----------
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

    file: Path
    _: KW_ONLY
    out: Annotated[Path, OutputFolder(("cec-*.json",), ("sweep",)), "DIR"]
    training: Path
    training_truth: Path
    alpha: Annotated[str, "A,A"] = "0.5"
    phi: float = 0.9
    unknown_score: Literal["one", "max_score"] = "one"

    name = "cec"
    varies = "alpha"
    stated = ("phi", "unknown_score")

    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply it for every value of its parameter."""
        import numpy as np

        from curation.baselines.score_vectors import read_score_vectors
        from curation.baselines.unknown_boxes import calibrate, expel
        from curation.evaluation.problem import KnownClasses
        from curation.evaluation.readers import RawColumns, locate
        from curation.evaluation.truth import ground_truth
        from curation.sources.opening import open_source

        vectors = read_score_vectors(self.file, n_classes=len(classes.known))
        training = read_score_vectors(self.training, n_classes=len(classes.known))
        source = open_source(self.training_truth, dataset="coco", part="train", cache=not self.no_cache)
        known = KnownClasses(classes.known, tuple(range(len(classes.known))), Path(str(self.classes)).name)
        truth = ground_truth(source, known).truth
        place, found = locate(
            training.image_ids,
            truth,
            RawColumns(training.boxes, np.empty(0), str(self.training), "record", 0),
        )
        if not found.all():
            raise PredictionError(
                "A training box lies on an image that is not in the training truth",
                where=f"{self.training}: record {int(np.argmin(found))}",
                found=str(training.image_ids[int(np.argmin(found))])[:80],
            )
        thresholds = calibrate(training, place.astype(np.int64), truth, phi=self.phi)
        variants = [
            Variant(text, vectors, expel(vectors, thresholds, alpha=value, unknown=self.unknown_score))
            for text, value in _numbers(self.alpha, "--alpha")
        ]
        inputs = [*_files(vectors, training), *((one.name, one.sha256) for one in source.files)]
        return Applied(variants, inputs, _uncalibrated(thresholds.uncalibrated))


@dataclass(frozen=True)
class Confirmed(Method):
    """Unknown proposals confirmed by auxiliary ones (the same, 4.1, equation 4).

    Attributes
    ----------
    auxiliary
        boxes of any other method
    theta
        IoU from which on one confirms another
    top
        boxes of an image
    """

    file: Path
    _: KW_ONLY
    out: Annotated[Path, OutputFolder(("pad-*.json",), ("sweep",)), "DIR"]
    auxiliary: Path
    theta: Annotated[str, "T,T"] = "0.7"
    top: int = 50

    name = "pad"
    varies = "theta"
    stated = ("top",)

    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply it for every value of its parameter."""
        import numpy as np

        from curation.baselines.score_vectors import Labelled, read_score_vectors
        from curation.baselines.unknown_boxes import confirm

        vectors = read_score_vectors(self.file)
        auxiliary = read_score_vectors(self.auxiliary)
        if vectors.objectness is None:
            raise PredictionError(
                "The proposals have no objectness",
                where=str(self.file),
                expected="objectness in every record",
            )
        number = {image: place for place, image in enumerate(dict.fromkeys((*vectors.image_ids, *auxiliary.image_ids)))}
        image, other = (np.array([number[one] for one in each.image_ids], np.int64) for each in (vectors, auxiliary))
        variants = []
        for text, value in _numbers(self.theta, "--theta"):
            rows = confirm(
                image,
                vectors.boxes,
                vectors.objectness,
                other,
                auxiliary.boxes,
                auxiliary.objectness,
                theta=value,
                top=self.top,
            )
            labels = np.full(len(rows), len(classes.known), np.int64)
            variants.append(Variant(text, vectors, Labelled(rows, labels, vectors.objectness[rows])))
        return Applied(variants, _files(vectors, auxiliary))


@dataclass(frozen=True)
class Dropout(Method):
    """Stochastic passes merged by region (The Overlooked Elephant of Object Detection, 3.2).

    Attributes
    ----------
    file
        JSON list of {"image_id", "bbox", "scores": [...]}; one file a pass, each record with its region
    floor
        of class scores
    nms
        IoU within a label
    """

    file: tuple[Path, ...]
    _: KW_ONLY
    out: Annotated[Path, OutputFolder(("dropout-*.json",), ("sweep",)), "DIR"]
    floor: float = 0.05
    nms: float = 0.5

    name = "dropout"
    stated = ("floor", "nms")

    def apply(self, classes: OpenSetClasses) -> Applied:
        """Apply it for every value of its parameter."""
        from curation.baselines.score_vectors import read_score_vectors
        from curation.baselines.suppression import detections_of, merge_passes

        passes = [read_score_vectors(path, n_classes=len(classes.known)) for path in self.file]
        merged = merge_passes(passes)
        found = detections_of(merged, floor=self.floor, iou=self.nms)
        entropy = [value if value == value else None for value in merged.entropy.tolist()]
        columns = {"passes": merged.passes.tolist(), "entropy": entropy}
        return Applied([Variant("merged", merged.vectors, found, columns)], _files(*passes))


METAVAR = "METHOD"
COMMANDS = {one.name: one for one in (Naive, CrossNms, Expelling, Confirmed, Dropout)}


def _files(*several: ScoreVectors) -> list[tuple[str, str]]:
    return [(one.name, one.sha256) for one in several]


def _uncalibrated(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (f"no training box meets an object of {shown}: such a class never expels, so that no box at all is unknown",)


def _numbers(text: str, option: str) -> list[tuple[str, float]]:
    try:
        found = [(word.strip(), float(word)) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or len({word for word, _ in found}) < len(found) or any(value != value for _, value in found):
        raise UsageError(f"{option} is not a list of numbers", expected=f"{option} 0.5,0.7,0.9", found=text[:80])
    return found


def _classes_of(method: Method) -> tuple[OpenSetClasses, Manifest | None]:
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

    if (method.classes is None) == (method.manifest is None):
        raise UsageError(
            "Nothing says which classes are known and unknown"
            if method.classes is None
            else "Two options name the classes",
            expected="--classes FILE, or --manifest MANIFEST",
        )
    if method.classes is not None:
        return classes_of_file(method.classes, "test"), None
    manifest = load_manifest(method.manifest or "")
    classes = classes_of_manifest(manifest, "test")
    index = dict(classes.numbers or ())
    return replace(classes, known=tuple(sorted(classes.known, key=index.__getitem__))), manifest


def _truth_of(
    method: Method, classes: OpenSetClasses, manifest: Manifest | None
) -> tuple[Source | None, OpenSetTruth | None]:
    """Return the truth that ``--truth`` names, if any, and its objects as the case and a manifest's view see them."""
    from curation.benchmarks.osod3.truth import open_set_truth, truth_view
    from curation.sources.opening import open_source

    if method.truth is None:
        return None, None
    source = open_source(method.truth, dataset="coco", part="test", cache=not method.no_cache)
    if manifest is None:
        return source, open_set_truth(source, classes)
    ids, view = manifest.ids(method.part), truth_view(manifest, method.part)
    return source, open_set_truth(source, classes, ids, view=view)


def _category_ids(classes: OpenSetClasses, source: Source | None) -> dict[str, int]:
    """Return the category ids of known classes and unknown: the truth's, else the manifest's, else 1 to K, and -1."""
    if source is None:
        numbers = classes.numbers or tuple((name, number) for number, name in enumerate(classes.known, 1))
        return {**dict(numbers), "unknown": -1}
    aliases = dict(classes.aliases)
    columns = zip(source.categories.names, source.categories.numbers, strict=True)
    own = {aliases.get(name, name): number for name, number in columns}
    return {name: own[name] for name in classes.known} | {"unknown": own.get("unknown", -1)}


def _check_images(variants: Sequence[Variant], truth: OpenSetTruth) -> None:
    """Refuse boxes on other images before anything is written."""
    import numpy as np

    from curation.evaluation.readers import RawColumns, locate

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
    method: Method, classes: OpenSetClasses, source: Source | None, variants: Sequence[Variant]
) -> tuple[list[Path], list[dict[str, Any]]]:
    from curation.baselines.score_vectors import write_results
    from curation.storage import remove_abandoned

    remove_abandoned(method.out)
    ids = _category_ids(classes, source)
    names = (*classes.known, "unknown")
    written, rows = [], []
    for one in variants:
        path = method.out / f"{method.name}-{one.value.replace('/', '_')}.json"
        numbers = [ids[name] for name in names]
        write_results(one.vectors, one.found, names, numbers, path, one.columns)
        written.append(path)
        unknown = int((one.found.label == len(classes.known)).sum())
        rows.append({"value": one.value, "file": path.name, "boxes": len(one.found.row), "unknown": unknown})
    return written, rows


def _score(truth: OpenSetTruth | None, source: Source | None, path: Path) -> dict[str, Any]:
    from curation.benchmarks.osod3.evaluation import average_precisions
    from curation.evaluation.readers import Policy, read_task_detections

    if truth is None or source is None:
        return {}
    read = read_task_detections(path, truth.task, source, Policy(any_scores=True))
    return average_precisions(truth, read.detections)


def _sweep(method: Method, sweep: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Path]:
    from curation.benchmarks.osod3.figures import sweep_figure

    rows = [(value, found["AP_known"], found["AP_unk"]) for value, found in sweep]
    return sweep_figure(method.varies, {method.name: rows}, method.out / "sweep")


def _result(
    method: Method,
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
        "method": method.name,
        "meaning": summary_of(type(method)),
        "inputs": [{"name": name, "sha256": digest} for name, digest in inputs],
        "parameters": {name: getattr(method, name) for name in method.stated},
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
