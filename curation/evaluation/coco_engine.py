"""Plain COCO average precision and recall by hotcoco, pycocotools, or both against each other.

hotcoco gives the numbers of pycocotools to the last bit in a small part of its time and memory (``python -m
tests.benchmarks coco_ap``). It has wheels for fewer machines (none for musl), so it stays an extra.
ultrafast-pycocotools 0.1.14 is as exact, but has no wheel for musl either, one for each Python, and takes the truth by
dicts or a path alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np

from curation.arguments import shown
from curation.errors import EngineDisagreementError, EvaluationError, MissingExtraError, UsageError
from curation.evaluation.input_order import count_tie_sensitive
from curation.evaluation.inputs import POLICY, READING, OnePart, Policy, Reading, Truth
from curation.evaluation.matching import overlapping_pairs
from curation.evaluation.measures import Measure, Measured, Value, definitions, percent
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s, classes_in_use, of_classes
from curation.evaluation.result import Column, Report, Result, Tidy
from curation.input_files import InputFile
from curation.json_keys import decode_json
from curation.memory import require_memory
from curation.progress import stage
from curation.sources.integrity import MAX_COORDINATE
from curation.sources.source import FEDERATED

Engine = Literal["hotcoco", "pycocotools", "both"]
ENGINES: tuple[str, ...] = get_args(Engine)
_SUMMARY = (
    ("AP", "average precision", "IoU 0.50:0.95, all areas, at most 100 detections an image"),
    ("AP50", "average precision at IoU 0.50", "IoU 0.50"),
    ("AP75", "average precision at IoU 0.75", "IoU 0.75"),
    ("APs", "average precision of small objects", "IoU 0.50:0.95, objects below 32^2 pixels"),
    ("APm", "average precision of medium objects", "IoU 0.50:0.95, objects of 32^2 to 96^2 pixels"),
    ("APl", "average precision of large objects", "IoU 0.50:0.95, objects above 96^2 pixels"),
    ("AR1", "average recall, 1 detection", "recall, at most 1 detection an image"),
    ("AR10", "average recall, 10 detections", "recall, at most 10 detections an image"),
    ("AR100", "average recall, 100 detections", "recall, at most 100 detections an image"),
    ("ARs", "average recall of small objects", "recall, objects below 32^2 pixels"),
    ("ARm", "average recall of medium objects", "recall, objects of 32^2 to 96^2 pixels"),
    ("ARl", "average recall of large objects", "recall, objects above 96^2 pixels"),
)
MEASURES = tuple(
    Measure(
        key,
        name,
        formula,
        unit="%",
        better="higher",
        source="cocodataset.org/#detection-eval; pycocotools, COCOeval.summarize",
        undefined="no object qualifies, crowd aside",
        ranked=key.startswith("AP") or key == "AR100",
    )
    for key, name, formula in _SUMMARY
)
STATISTICS = definitions(MEASURES)
"""The twelve numbers of COCO's summary, in its order, with their definitions."""

_AREA_WORDS = {"s": "below 32^2 pixels", "m": "of 32^2 to 96^2 pixels", "l": "above 96^2 pixels"}
_TOLERANCE = 1e-9
_BYTES_OF_A_CLASS = {"hotcoco": 400_000, "pycocotools": 220_000, "both": 400_000}
"""Measured: 10 IoUs, 101 recalls, 4 ranges of area and 3 cuts, of precision and of score, and copies of them."""
_LEAN = "; --engine pycocotools takes half of that, and longer"
_FACTS = (
    "engine", "difficult", "n_images", "n_objects", "n_detections", "left_out", "n_detections_not_labelled",
    "largest_difference",
)  # fmt: skip
_EVERYWHERE = 2.0 * MAX_COORDINATE


def evaluate(
    *,
    truth: Annotated[Truth, "FILE"],
    detections: Path,
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Policy = POLICY,
    engine: Engine | None = None,
    against: Annotated[Any, Path] = None,
) -> Result:
    """Score plain detection by the twelve COCO numbers, and the AP of each class.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON, or a dataset root
    detections : Path
        COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt); may be
        compressed by gzip
    classes : Path, optional
        {"known": [...], "unknown": [...]}; the categories of the truth by default
    reading : Reading
    policy : Policy
    engine : {"hotcoco", "pycocotools", "both"}, optional
        default: hotcoco where installed
    against : Path, mapping or sequence, optional
        numbers of another evaluator, shown beside ours: what torchmetrics' compute() returns, as JSON, or
        COCOeval.stats; -1 in it is undefined

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    MissingExtraError, EngineDisagreementError, UsageError
        As `coco_average_precision`.
    """
    given = OnePart.of(truth, detections, classes=classes, reading=reading, policy=policy)
    known = given.part.truth
    with stage("COCO evaluation"):
        found = coco_average_precision(known, given.read.detections, engine=engine)
    measured, facts = _measured(found), {name: found[name] for name in _FACTS if name in found}
    if against is not None:
        names = dict(zip(known.class_numbers, known.classes, strict=True))
        compared = compare_with_external(found, against, names)
        facts["external"] = {name: compared[name] for name in ("file", "passed_over")}
        measured = measured._replace(tables={**measured.tables, "against": compared["against"]})
    return Result(
        REPORT,
        given.about | {"definitions": STATISTICS, **facts},
        scored=[given.scored("coco", measured, {"engine": found["engine"]})],
        notes=given.notes,
    )


def _measured(found: Mapping[str, Any]) -> Measured:
    names, reasons = found["per_class"], found["undefined"]
    return Measured(
        [Value(key, percent(found[key]), n=found["n_objects"], undefined=reasons.get(key, "")) for key in STATISTICS],
        {
            "average_precision": {
                "class": list(names),
                "AP": list(map(percent, names.values())),
                "undefined": [reasons.get(name, "") for name in names],
            }
        },
        decided_by_order=found["decided_by_order"],
    )


TORCHMETRICS = dict(
    zip(
        (
            "map", "map_50", "map_75", "map_small", "map_medium", "map_large",
            "mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large",
        ),
        STATISTICS,
        strict=True,
    )
)  # fmt: skip
"""Our names of the numbers of torchmetrics' ``MeanAveragePrecision`` (1.9.0), in the order of COCO's summary."""
_UNDEFINED = -1
_WHY = "the other evaluator says -1 or null: undefined"
_EXTERNAL = (
    "a JSON object of shares from 0 to 1, -1 where undefined: map, map_50, ..., map_per_class and classes as "
    "torchmetrics has them; or COCOeval.stats, a list of twelve"
)


def compare_with_external(
    ours: Mapping[str, Any], given: Path | Mapping[str, Any] | Sequence[Any], class_numbers: Mapping[int | None, str]
) -> dict[str, Any]:
    """Return the numbers of another evaluator beside ours. Its -1 stands for undefined, and is never a number.

    Parameters
    ----------
    ours : mapping
        What `coco_average_precision` returns.
    given : Path, mapping or sequence
        What torchmetrics' ``compute()`` returns, its tensors as they are or as numbers (``.tolist()``); or the twelve
        numbers of ``COCOeval.stats``; or a JSON file of either.
    class_numbers : mapping of int or None to str
        Class of each category id, for ``map_per_class``.

    Returns
    -------
    dict
        ``file``: name and digest, None for what is in memory; ``passed_over``: what else there was; ``against``, a
        table in %: ``measure`` (``AP of CLASS`` of a class), ``ours``, ``theirs``, ``difference`` (theirs - ours), None
        where one is undefined, and ``undefined``, why the other evaluator's is.

    Raises
    ------
    MissingFileError, EvaluationError
        There is no such file, it does not hold such numbers, or one of them is no share.
    """
    where, record = "against", None
    if isinstance(given, Path):
        file = InputFile(given, kind="file of another evaluator's numbers")
        where, record = str(given), {"name": given.name, "sha256": file.sha256}
        form: Any = dict[str, Any] | list[Any]
        given = decode_json(
            file.data, form, EvaluationError, "The numbers of another evaluator cannot be read", where=where
        )
    if not isinstance(given, Mapping):
        twelve = _several(given)
        if len(twelve) != len(TORCHMETRICS):
            raise _no_numbers("These are not the twelve numbers of COCO's summary", where, f"{len(twelve)} numbers")
        given = dict(zip(TORCHMETRICS, twelve, strict=True))
    found = dict(given)
    classes, values = (_several(found.pop(name, None)) for name in ("classes", "map_per_class"))
    # Without class_metrics torchmetrics has one -1 for all classes.
    if values == [_UNDEFINED] and len(classes) != 1:
        values = []
    classes = classes if values else []
    if len(values) != len(classes) or len(set(map(str, classes))) < len(classes):
        counts = f"{len(values)} in map_per_class, classes {classes}"
        raise _no_numbers("There is not one number for each class of another evaluator", where, counts)
    numbers = [(name, _share(found.pop(key), where, key)) for key, name in TORCHMETRICS.items() if key in found]
    if not numbers:
        raise _no_numbers("There is no number of COCO's summary", where, ", ".join(map(str, found)) or "nothing")
    rows = [(name, ours[name], value) for name, value in numbers]
    for number, value in zip(classes, values, strict=True):
        share = _share(value, where, "map_per_class")
        if number in class_numbers:
            name = class_numbers[number]
            rows.append((f"AP of {name}", ours["per_class"][name], share))
    gaps = [None if own is None or other is None else other - own for _, own, other in rows]
    against = {
        "measure": [name for name, *_ in rows],
        "ours": [percent(own) for _, own, _ in rows],
        "theirs": [percent(other) for *_, other in rows],
        "difference": list(map(percent, gaps)),
        "undefined": [_WHY if other is None else "" for *_, other in rows],
    }
    strange = [f"class {one}" for one in classes if one not in class_numbers]
    return {"file": record, "passed_over": sorted(map(str, found)) + sorted(strange), "against": against}


def _several(value: Any) -> list[Any]:
    """Return the members of a list or tensor; a number alone, as torchmetrics makes of one class, is a list of one."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _share(value: Any, where: str, key: str) -> float | None:
    value = value.tolist() if hasattr(value, "tolist") else value
    if value is None or value == _UNDEFINED:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _no_numbers("A number of another evaluator is no share", f"{where}: {key}", shown(value))
    return float(value)


def _no_numbers(what: str, where: str, found: str) -> EvaluationError:
    hint = "json.dump({key: value.tolist() for key, value in metric.compute().items()}, file)"
    return EvaluationError(what, where=where, expected=_EXTERNAL, found=found[:300], hint=hint)


def coco_average_precision(
    truth: GroundTruth, detections: Detections, *, engine: Engine | None = None
) -> dict[str, Any]:
    """Return COCO's twelve numbers, and the AP of each class, of plain (closed-set) detection.

    Of a federated dataset (LVIS) an image counts for the classes that it was labelled for (`labelled`). Crowd regions
    are ignored as COCO does; *difficult* objects count as ordinary ones, because COCO knows no such
    flag; objects of unknown class (label -1) are left out. Inputs are not changed.

    Parameters
    ----------
    truth : GroundTruth
        Its `areas` decide small, medium and large; a missing (not finite) area becomes ``w*h``.
    detections : Detections
    engine : {"hotcoco", "pycocotools", "both"}, optional
        ``both`` runs the two and requires them to agree to 1e-9. By default hotcoco where it is installed, else
        pycocotools.

    Returns
    -------
    dict
        The keys of `STATISTICS` as fractions of 1, None where no object qualifies (the engines' -1); ``per_class``: AP
        by class name; ``undefined``: the reason of each None; ``engine``; ``difficult``; ``n_images``, ``n_objects``,
        ``n_detections``, ``left_out`` (objects of unknown class); ``n_detections_not_labelled`` of a federated dataset
        (see `labelled`); ``decided_by_order`` (`coco_decided_by_order`);
        ``largest_difference`` under ``both``.

    Raises
    ------
    MissingExtraError
        hotcoco was asked for and is not installed.
    EngineDisagreementError
        The two engines differ by more than 1e-9.
    UsageError
        An unknown engine.
    """
    chosen = _choose(engine)
    known = truth.label >= 0
    result: dict[str, Any] = {
        "engine": chosen,
        "difficult": "counted",
        "n_images": truth.n_images,
        "n_objects": int(known.sum()),
        "n_detections": len(detections),
        "left_out": int((~known).sum()),
    }
    if truth.federated is not None:
        truth, detections = labelled(truth, detections)
        result["n_detections_not_labelled"] = result["n_detections"] - len(detections)
    # hotcoco leaves the interpreter to others while it works.
    with ThreadPoolExecutor(1) as executor:
        by_order = executor.submit(coco_decided_by_order, truth, detections)
        found = _run(chosen, truth, detections)
    if found.difference is not None:
        result["largest_difference"] = found.difference
    result |= {name: _defined(value) for name, value in zip(STATISTICS, found.statistics, strict=True)}
    per_class: dict[str, float | None] = dict.fromkeys(truth.classes)
    for place, value in zip(found.places, found.precision.mean(axis=(0, 1)).tolist(), strict=True):
        per_class[truth.classes[place]] = _defined(value)
    result["per_class"] = per_class
    result["undefined"] = _reasons(result, per_class)
    result["decided_by_order"] = by_order.result()
    return result


def coco_precision(truth: GroundTruth, detections: Detections, *, engine: Engine | None = None) -> dict[int, Floats]:
    """Return the interpolated precision at 10 IoUs (0.50 to 0.95) and 101 recalls, shape (10, 101), by class.

    All areas, at most 100 detections a class and image. Classes go by their position in `truth`; one without objects,
    crowd aside, is not there. Under ``both`` the engines must agree to 1e-9.

    Raises
    ------
    MissingExtraError, EngineDisagreementError, UsageError, EvaluationError
        As `coco_average_precision`.
    """
    found = _run(_choose(engine), *labelled(truth, detections))
    columns = zip(found.places, np.moveaxis(found.precision, 2, 0), strict=True)
    return {place: one for place, one in columns if one[0, 0] >= 0}


def coco_decided_by_order(truth: GroundTruth, detections: Detections) -> int:
    """Return how many decisions of COCO's numbers may rest on the order of the file: groups of one class and score.

    A detection finds an object with certainty where no other one of its class overlaps any object that it overlaps by
    half; equal scores are told apart by how many of the IoUs 0.50 to 0.95 their detections then reach. All others of
    equal score, where one may be right, are taken for undecided.
    """
    truth, detections = labelled(truth, detections)
    if not (np.diff(np.sort(detections.scores)) == 0).any():
        return 0
    pairs = overlapping_pairs(truth, detections, same_class=True, mask=~truth.crowd, iou_threshold=0.5, strict=False)
    best = np.zeros(len(detections))
    np.maximum.at(best, pairs.row, pairs.iou)
    rivals = np.bincount(pairs.position, minlength=len(truth.label))
    disputed = np.zeros(len(detections), bool)
    disputed[pairs.row[rivals[pairs.position] > 1]] = True
    kind = np.searchsorted(np.linspace(0.5, 0.95, 10), best, side="right")
    return count_tie_sensitive(detections, kind, contested=disputed, free=True)


def labelled(truth: GroundTruth, detections: Detections) -> tuple[GroundTruth, Detections]:
    """Return what counts of a federated ground truth and its detections; any other comes back as it is.

    As LVIS has it, a detection counts where its image shows an object of its class, or was seen to show none; where
    not all objects of the class are boxed, what finds none is neither right nor wrong: it is ignored as in a crowd
    region, which is therefore laid over the image.
    """
    if truth.federated is None:
        return truth, detections
    n_classes = len(truth.classes)
    image, label, kind = truth.federated[truth.federated[:, 1] >= 0].T
    partly = kind == FEDERATED.index("partly boxed")
    known = truth.label >= 0
    cells = np.concatenate([image, truth.image[known]]).astype(np.int64) * n_classes
    cells += np.concatenate([label, truth.label[known]])
    cell = detections.image.astype(np.int64) * n_classes + detections.label
    empty = (detections.boxes[:, 2:] <= 0).any(axis=1)
    # No region covers what has no size.
    counted = np.isin(cell, cells) & ~(empty & np.isin(cell, cells[: len(image)][partly]))
    n = int(partly.sum())
    order = np.argsort(np.concatenate([truth.image, image[partly]]), kind="stable")
    added: dict[str, Any] = {
        "image": image[partly],
        "label": label[partly],
        "boxes": np.tile([-_EVERYWHERE, -_EVERYWHERE, 2 * _EVERYWHERE, 2 * _EVERYWHERE], (n, 1)),
        "crowd": np.ones(n, bool),
        "difficult": np.zeros(n, bool),
        "areas": np.ones(n),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(truth, name), more])[order] for name, more in added.items()
    }
    return replace(truth, **columns, original=None, federated=None), detections.take(counted)


def is_hotcoco_installed() -> bool:
    """Return whether hotcoco can be imported, without importing it."""
    return importlib.util.find_spec("hotcoco") is not None


def _choose(engine: Engine | None) -> Engine:
    if engine is None:
        return "hotcoco" if is_hotcoco_installed() else "pycocotools"
    if engine not in ENGINES:
        raise UsageError("Unknown COCO engine", expected=", ".join(ENGINES), found=repr(engine)[:80])
    if engine != "pycocotools" and not is_hotcoco_installed():
        raise MissingExtraError(
            "hotcoco is not installed",
            where=f"engine {engine}",
            hint="pip install 'curation[fast]', or choose the engine pycocotools",
        )
    return engine


class _Found(NamedTuple):
    """The twelve numbers, precision of shape (10, 101, n) of n classes, and the largest difference of two engines."""

    statistics: Floats
    places: list[int]
    precision: Floats
    difference: float | None = None


def _run(engine: Engine, truth: GroundTruth, detections: Detections) -> _Found:
    """Return the numbers, -1 where undefined, of the classes that objects or detections have.

    Engines hold 12,120 numbers for each class that they are given, several times over.
    """
    used = classes_in_use(truth, detections)
    # Two at least, where there are two: NumPy adds the numbers of a single column in another order.
    used = np.union1d(used, np.arange(min(2, len(truth.classes)))) if len(used) < 2 else used
    require_memory(
        len(used) * _BYTES_OF_A_CLASS[engine],
        f"COCO's numbers of {len(used):,} classes with objects or detections",
        hint="--classes FILE names the classes to score" + ("" if engine == "pycocotools" else _LEAN),
    )
    if len(used) < len(truth.classes):
        truth, detections = of_classes(truth, detections, used)
    statistics, precision = _engine_numbers("pycocotools" if engine == "both" else engine, truth, detections)
    difference = None
    if engine == "both":
        other, others = _engine_numbers("hotcoco", truth, detections)
        means = (precision.mean(axis=(0, 1)), others.mean(axis=(0, 1)))
        difference = _largest_difference(truth.classes, (statistics, means[0]), (other, means[1]))
    return _Found(statistics, used.tolist(), precision, difference)


def _engine_numbers(engine: str, truth: GroundTruth, detections: Detections) -> tuple[Floats, Floats]:
    """Return the twelve numbers, and the precision at each IoU, recall and class, -1 where undefined."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = (_in_hotcoco if engine == "hotcoco" else _in_pycocotools)(truth, detections)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    # precision: IoU threshold, recall, class, area range (0: all), detections an image (-1: 100).
    precision = np.asarray(evaluation.eval["precision"])[:, :, :, 0, -1]
    return np.asarray(evaluation.stats, np.float64)[:12], precision


def _in_hotcoco(truth: GroundTruth, detections: Detections) -> Any:
    """Return an evaluator of columns, of which no record is made."""
    import hotcoco

    kept = np.flatnonzero(truth.label >= 0)
    annotated = hotcoco.COCO.from_arrays(
        [{"id": number} for number in range(1, truth.n_images + 1)],
        [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        truth.image[kept].astype(np.int64) + 1,
        truth.label[kept].astype(np.int64) + 1,
        truth.boxes[kept],
        area=_sizes(truth, kept),
        iscrowd=truth.crowd[kept],
    )
    rows = np.column_stack([detections.image + 1, detections.boxes, detections.scores, detections.label + 1])
    return hotcoco.COCOeval(annotated, annotated.load_res(rows), "bbox")


def _in_pycocotools(truth: GroundTruth, detections: Detections) -> Any:
    from pycocotools.cocoeval import COCOeval

    kept = np.flatnonzero(truth.label >= 0)
    annotated = _loaded(
        truth,
        image_id=truth.image[kept] + 1,
        category_id=truth.label[kept] + 1,
        bbox=truth.boxes[kept],
        area=_sizes(truth, kept),
        iscrowd=truth.crowd[kept].astype(int),
    )
    detected = _loaded(
        truth,
        image_id=detections.image + 1,
        category_id=detections.label + 1,
        bbox=detections.boxes,
        area=detections.boxes[:, 2] * detections.boxes[:, 3],
        score=detections.scores,
        iscrowd=np.zeros(len(detections), int),
    )
    return COCOeval(annotated, detected, "bbox")


def _loaded(truth: GroundTruth, **columns: Any) -> Any:
    """Return a `COCO` object that answers only for all images and classes together: no index of records is needed."""
    from pycocotools.coco import COCO

    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    # Ids start at 1: pycocotools takes a match with annotation 0 for no match.
    annotations = [{"id": number, **dict(zip(columns, row, strict=True))} for number, row in enumerate(rows, 1)]
    dataset = COCO()
    dataset.dataset = {
        "images": [{"id": number} for number in range(1, truth.n_images + 1)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(truth.classes, 1)],
        "annotations": annotations,
    }
    dataset.imgs = {image["id"]: image for image in dataset.dataset["images"]}
    dataset.getAnnIds = lambda **_: range(len(annotations))
    dataset.loadAnns = lambda ids: annotations
    return dataset


def _sizes(truth: GroundTruth, kept: Int64s) -> Floats:
    """Return the area of some objects: as stated, else that of their box."""
    areas = truth.areas[kept]
    return np.where(np.isfinite(areas), areas, truth.boxes[kept, 2] * truth.boxes[kept, 3])


def _largest_difference(classes: tuple[str, ...], first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> float:
    names = [*STATISTICS, *(f"AP of {name}" for name in classes)]
    one, two = np.concatenate(first), np.concatenate(second)
    difference = np.abs(one - two)
    worst = int(np.argmax(difference))
    if not difference[worst] <= _TOLERANCE:
        raise EngineDisagreementError(
            "pycocotools and hotcoco disagree",
            where=names[worst],
            expected=f"the same number to {_TOLERANCE:g}",
            found=f"pycocotools {one[worst]!r}, hotcoco {two[worst]!r}",
            hint="report this with your files; --engine pycocotools gives the reference numbers",
        )
    return float(difference[worst])


def _defined(value: float) -> float | None:
    return None if value < 0 else float(value)


def _reasons(result: dict[str, Any], per_class: dict[str, float | None]) -> dict[str, str]:
    reasons = {}
    for name in STATISTICS:
        if result[name] is None:
            size = _AREA_WORDS.get(name[-1])
            reasons[name] = f"no object {size}, crowd aside" if size else "no object of a known class, crowd aside"
    reasons |= {name: "no object of this class, crowd aside" for name, ap in per_class.items() if ap is None}
    return reasons


REPORT = Report(
    "coco",
    MEASURES,
    # 2: numbers are in %.
    algorithm=2,
    files=("measures", "average_precision", "against"),
    places=(),
    tidy=(
        Tidy(
            "average_precision",
            (Column("class"), Column("AP", "%"), Column("undefined", text=False)),
            title="AP of each class in %",
        ),
        Tidy(
            "against",
            (
                Column("measure", head=""),
                Column("ours", "%"),
                Column("theirs", "%"),
                Column("difference", "%", show="+.2f"),
                Column("undefined", head="theirs is undefined"),
            ),
            title="Against another evaluator, in %",
        ),
    ),
)
