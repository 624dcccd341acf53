"""Plain COCO average precision and recall by hotcoco, pycocotools, or both against each other.

hotcoco gives the numbers of pycocotools to the last bit in a small part of its time and memory (``python -m
tests.benchmarks coco-small``). It has wheels for fewer machines (none for musl), so it stays an extra.
ultrafast-pycocotools 0.1.14 is as exact, and tests compare with it; but it has no wheel for musl either, one for each
Python, and takes the truth by dicts or a path alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np

from curation.errors import EngineDisagreementError, MissingExtraError, UsageError
from curation.evaluation import federated
from curation.evaluation.federated import KEYS, NO_FREQUENCY, Limit, counted, require_federated, thirteen
from curation.evaluation.input_order import count_tie_sensitive
from curation.evaluation.inputs import LISTED, POLICY, READING, Listed, OnePart, Policy, Reading, Truth
from curation.evaluation.matching import assign, overlapping_pairs
from curation.evaluation.measures import Measure, Measured, Scored, Value, definitions, percent
from curation.evaluation.mends import VALUES, is_form
from curation.evaluation.other_evaluators import compare_with_external
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import Detections, Floats, GroundTruth, Int64s, classes_in_use, of_classes
from curation.evaluation.readers import ACCEPTED, Accepted
from curation.evaluation.result import Column, Report, Result, Tidy
from curation.evaluation.score_free import LMMS, LMMS_MEANING, MATCHING, lmms_numbers, score_free
from curation.evaluation.score_free import MEASURES as SCORE_FREE_MEASURES
from curation.evaluation.score_free import TABLES as SCORE_FREE_TABLES
from curation.evaluation.variants import Rules
from curation.evaluation.voc import outcomes_by_class
from curation.memory import require_memory
from curation.progress import stage
from curation.sources.integrity import MAX_COORDINATE
from curation.sources.source import FEDERATED
from curation.wording import counted as counted_words

Variant = Literal[
    "coco", "coco-federated", "lvis", "lvis-fixed", "score-free", "score-free-best", "score-free-in-order", "lmms-eval",
    "all",
]  # fmt: skip
VARIANTS: dict[str, str] = {
    "coco": "COCO: every image counts for every class, 100 detections an image and class",
    "coco-federated": "LVIS's rules for images and classes under COCO's limit of 100 detections an image and class",
    "lvis": "LVIS AP: a limit of detections an image over all classes, then what images were labelled for",
    "lvis-fixed": "Fixed AP: a limit of detections a class over all images, then what images were labelled for",
    **{name: f"boxes without scores; {rule}" for name, rule in MATCHING.items()},
    LMMS: LMMS_MEANING,
}
"""What each variant does."""
_LIMITED = ("lvis", "lvis-fixed")
_SCORELESS = (*MATCHING, LMMS)
Engine = Literal["hotcoco", "pycocotools", "both"]
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
_MOST = 100
_RULES = Rules(name="coco", taken="best_free", crowd="cover", difficult="count")
_BYTES_OF_A_CLASS = {"hotcoco": 150_000, "pycocotools": 110_000, "both": 180_000}
"""Measured: 10 IoUs, 101 recalls and 4 ranges of area, of precision and of score, and copies of them."""
_LEAN = "; --engine pycocotools takes three quarters of that, and longer"
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
    variant: tuple[Variant, ...] | Variant = (),
    image_limit: int = 300,
    class_limit: int = 10_000,
    boxes: str = ACCEPTED.boxes,
    reading: Reading = READING,
    policy: Policy = POLICY,
    listed: Listed = LISTED,
    engine: Engine | None = None,
    against: Annotated[Any, Path] = None,
) -> Result:
    """Score plain detection by COCO AP, LVIS AP, Fixed AP, or without scores, and each class.

    Parameters
    ----------
    truth : Path or Source
        COCO JSON, or a dataset root
    detections : Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
    classes : Path, optional
        {"known": [...], "unknown": [...]}; the categories of the truth by default
    variant : str or tuple of str, optional
        variant of the measures, repeatable (default: coco; of an LVIS truth coco-federated): coco, as pycocotools;
        coco-federated, LVIS's rules for images and classes under COCO's limit; lvis; lvis-fixed; score-free,
        score-free-best and score-free-in-order, for detections without scores; lmms-eval, that harness's rule; all that
        suit the files
    image_limit : int
        of variant lvis: detections of an image that count
    class_limit : int
        of variant lvis-fixed: detections of a class that count
    boxes : str
        form of all boxes of the detections: LAYOUT or LAYOUT:UNIT, such as xyxy or xyxy:0-1000
    reading : Reading
    policy : Policy
    listed : Listed
    engine : {"hotcoco", "pycocotools", "both"}, optional
        default: hotcoco where installed
    against : Path, mapping, sequence or object, optional
        numbers of another evaluator, shown beside ours: COCOeval.stats, or those of torchmetrics, supervision,
        Ultralytics or LVIS, as JSON or CSV; -1 in it is undefined

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    MissingExtraError, EngineDisagreementError, UsageError
        As `coco_average_precision`.
    """
    asked = (variant,) if isinstance(variant, str) else variant or ("",)
    if min(image_limit, class_limit) < 1 or not is_form(boxes):
        raise UsageError(
            "Invalid setting", where="--set", expected=f"limits of at least 1; boxes={VALUES['boxes']}", found=boxes
        )
    is_scoreless = asked == ("all",) or all(name in _SCORELESS for name in asked)
    accepted = Accepted(
        scoreless=is_scoreless,
        other_classes="all" in asked or any(name in _LIMITED for name in asked),
        folded=asked == (LMMS,),
        boxes=boxes,
        bounded=is_scoreless or boxes != ACCEPTED.boxes,
    )
    given = OnePart.of(
        truth, detections, classes=classes, reading=reading, policy=policy, listed=listed, accepted=accepted
    )
    variants = _variants(asked, given)
    limits = {"lvis": Limit("image", image_limit), "lvis-fixed": Limit("class", class_limit)}
    scored, facts, said, notes = [], dict[str, Any](), dict[str, Any](), [*given.notes]
    with stage("COCO evaluation"):
        for name in variants:
            new, found = _scored(given, name, limits.get(name), engine)
            scored.append(new)
            said[name] = {"meaning": VARIANTS[name], **new.settings}
            facts = {key: found[key] for key in _FACTS if key in found} | facts
            if against is not None and name not in _SCORELESS and "external" not in facts:
                known = dict(zip(given.part.truth.class_numbers, given.part.truth.classes, strict=True))
                compared = compare_with_external(found, against, known)
                facts["external"] = {key: compared[key] for key in ("file", "passed_over")}
                tables = {**new.found.tables, "against": compared["against"]}
                scored[-1] = replace(new, found=new.found._replace(tables=tables))
            notes += new.found.notes
    if against is not None and "external" not in facts:
        raise UsageError("--against goes with variants that read scores", found=", ".join(variants))
    keys = {row.measure for entry in scored for row in entry.found.values}
    meanings = {key: text for key, text in definitions(REPORT.measures).items() if key in keys}
    return Result(
        REPORT if len(variants) == 1 else replace(REPORT, places=("variant",)),
        given.about | {"definitions": meanings, **facts} | ({} if variants == ("coco",) else {"variants": said}),
        scored=scored,
        notes=notes,
        outcomes=(lambda: {"coco": [_outcomes(given)]}) if variants == ("coco",) else None,
    )


def _outcomes(given: OnePart) -> Outcomes:
    """Return what became of the 100 detections of highest score in each image and class, at each IoU."""
    truth, detections = replace(given.part.truth, federated=None), given.read.detections
    detections = detections.take(detections.label >= 0)
    order = np.lexsort((-detections.scores, detections.label, detections.image))
    cell = detections.image[order].astype(np.int64) * len(truth.classes) + detections.label[order]
    rank = np.arange(len(order)) - np.searchsorted(cell, cell)
    detections = detections.take(np.sort(order[rank < _MOST]))
    levels = [assign(truth, detections, _RULES, iou=float(iou)).outcome for iou in np.linspace(0.5, 0.95, 10)]
    return replace(outcomes_by_class(truth, detections, _RULES), outcome_at=np.stack(levels))


def _variants(asked: tuple[str, ...], given: OnePart) -> tuple[str, ...]:
    """Return the variants that were asked for, or that suit the files."""
    federated = given.part.truth.federated is not None
    if asked == ("",):
        return ("coco-federated" if federated else "coco",)
    if "all" not in asked:
        if "coco-federated" in asked:
            require_federated(given.part.truth)
        return asked
    if np.isnan(given.read.detections.scores).any():
        return tuple(MATCHING)
    return ("coco", "coco-federated", *_LIMITED) if federated else ("coco",)


def _scored(given: OnePart, name: str, limit: Limit | None, engine: Engine | None) -> tuple[Scored, dict[str, Any]]:
    """Return what one variant measured, and what else there is to know of it."""
    truth, detections = given.part.truth, given.read.detections
    if name in MATCHING:
        measured = score_free(truth, detections, name)
        settings = {"iou": ">= 0.5", "matching": MATCHING[name], "boxes": given.form}
        stated = int(np.isfinite(detections.scores).sum())
        note = f"variant {name} passes over the scores that {stated} of {len(detections)} detections state"
        measured = measured._replace(notes=[note] if stated else [])
        return replace(given.scored(name, measured, {}), settings=settings), {}
    of_classes = detections.take(detections.label >= 0)
    if name == LMMS:
        found = coco_average_precision(truth, of_classes.unscored(), engine=engine)
        measured = _measured(found)
        kept = [value for value in measured.values if value.measure in ("AP", "AP50", "AP75")]
        measured = measured._replace(values=[*lmms_numbers(truth, of_classes), *kept])
        settings = {"iou": "> 0", "matching": LMMS_MEANING, "boxes": given.form}
        return replace(given.scored(name, measured, {"engine": found["engine"]}), settings=settings), found
    if limit is None:
        plain = replace(truth, federated=None) if name == "coco" else truth
        found = coco_average_precision(plain, of_classes, engine=engine)
        return given.scored(name, _measured(found), {"engine": found["engine"]}), found
    frequency = [given.frequencies.get(class_name, "") for class_name in truth.classes]
    found = federated_average_precision(truth, detections, limit, frequency, engine=engine)
    left_out = len(detections) - len(of_classes)
    dropped = f"{counted_words(left_out, 'detection')} of classes that the truth lacks took places under the limit"
    notes = [f"{dropped} and then counted for nothing, as in LVIS"] * bool(left_out)
    measured = _measured(found, KEYS)
    steps = {"step": list(found["steps"]), "n": list(found["steps"].values())}
    measured = measured._replace(notes=notes, tables={**measured.tables, "steps": steps})
    settings = {"limit": f"{limit.most} detections of each {limit.of}"}
    return replace(given.scored(name, measured, {"engine": found["engine"]}), settings=settings), found


def federated_average_precision(
    truth: GroundTruth, detections: Detections, limit: Limit, frequency: Sequence[str], *, engine: Engine | None = None
) -> dict[str, Any]:
    """Return the thirteen numbers of LVIS AP, or of Fixed AP where the limit is one of each class.

    Parameters
    ----------
    truth : GroundTruth
        With `GroundTruth.federated`.
    detections : Detections
        A negative label is a class that the truth lacks.
    limit : Limit
        300 an image is LVIS's, 10,000 a class Fixed AP's.
    frequency : sequence of str, length K
        ``r``, ``c``, ``f``, or ``""`` of each class.
    engine : {"hotcoco", "pycocotools", "both"}, optional

    Returns
    -------
    dict
        `curation.evaluation.federated.KEYS` as fractions of 1, None where undefined; ``steps``, how many detections
        each step left; and ``per_class``, ``undefined``, ``engine`` and counts as of `coco_average_precision`.

    Raises
    ------
    EvaluationError
        The truth is not federated.
    MissingExtraError, EngineDisagreementError, UsageError
        As `coco_average_precision`.
    """
    chosen = _choose(engine)
    left = counted(truth, detections, limit)
    letters = np.array(frequency, object)
    found = _run(
        chosen,
        *labelled(left.truth, left.detections),
        lambda numbers, labels: thirteen(*numbers, letters[labels].tolist()),
    )
    result: dict[str, Any] = dict(zip(KEYS, map(_defined, found.statistics.tolist()), strict=True))
    result |= {
        "engine": chosen,
        "n_images": truth.n_images,
        "n_objects": left.steps["truths_at_iou_50"],
        "steps": left.steps,
    }
    result["per_class"] = per_class = _per_class(truth.classes, found)
    empty = {name: "no object of this class counts" for name, ap in per_class.items() if ap is None}
    result["undefined"] = empty if any(frequency) else empty | NO_FREQUENCY
    result["decided_by_order"] = coco_decided_by_order(left.truth, left.detections)
    if found.difference is not None:
        result["largest_difference"] = found.difference
    return result


def _measured(found: Mapping[str, Any], keys: Iterable[str] = STATISTICS) -> Measured:
    names, why = found["per_class"], found["undefined"]
    return Measured(
        [Value(key, percent(found[key]), n=found["n_objects"], undefined=why.get(key, "")) for key in keys],
        {
            "average_precision": {
                "class": list(names),
                "AP": list(map(percent, names.values())),
                "undefined": [why.get(name, "") for name in names],
            }
        },
        decided_by_order=found["decided_by_order"],
    )


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
    found = _run(chosen, truth, detections)
    if found.difference is not None:
        result["largest_difference"] = found.difference
    result |= {name: _defined(value) for name, value in zip(STATISTICS, found.statistics, strict=True)}
    result["per_class"] = per_class = _per_class(truth.classes, found)
    result["undefined"] = _reasons(result, per_class)
    result["decided_by_order"] = coco_decided_by_order(truth, detections)
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
    columns = zip(found.labels, np.moveaxis(found.precision, 2, 0), strict=True)
    return {label: precision for label, precision in columns if precision[0, 0] >= 0}


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
    if engine not in get_args(Engine):
        raise UsageError("Unknown COCO engine", expected=", ".join(get_args(Engine)), found=repr(engine)[:80])
    if engine != "pycocotools" and not is_hotcoco_installed():
        raise MissingExtraError(
            "hotcoco is not installed",
            where=f"engine {engine}",
            hint="pip install 'curation[fast]', or choose the engine pycocotools",
        )
    return engine


def _per_class(classes: Sequence[str], found: _Found) -> dict[str, float | None]:
    per_class: dict[str, float | None] = dict.fromkeys(classes)
    for label, value in zip(found.labels, found.precision.mean(axis=(0, 1)).tolist(), strict=True):
        per_class[classes[label]] = _defined(value)
    return per_class


Summary = Callable[[tuple[Floats, Floats], list[int]], Floats]
"""Makes numbers of precision and recall without a limit, as `federated.thirteen` does, and of the labels of classes."""


class _Found(NamedTuple):
    """The numbers, precision of shape (10, 101, n) of n classes, and the largest difference of two engines."""

    statistics: Floats
    labels: list[int]
    precision: Floats
    difference: float | None = None


def _run(engine: Engine, truth: GroundTruth, detections: Detections, summary: Summary | None = None) -> _Found:
    """Return COCO's numbers, or those of a summary, -1 where undefined, of the classes that objects or detections have.

    Engines hold 4,040 numbers for each class that they are given, several times over.
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
    labels = used.tolist()
    statistics, precision = _engine_numbers(
        "pycocotools" if engine == "both" else engine, truth, detections, labels, summary
    )
    difference = None
    if engine == "both":
        other, others = _engine_numbers("hotcoco", truth, detections, labels, summary)
        means = (precision.mean(axis=(0, 1)), others.mean(axis=(0, 1)))
        names = [*(KEYS if summary else STATISTICS), *(f"AP of {name}" for name in truth.classes)]
        difference = _largest_difference(names, (statistics, means[0]), (other, means[1]))
    return _Found(statistics, labels, precision, difference)


def _engine_numbers(
    engine: str, truth: GroundTruth, detections: Detections, labels: list[int], summary: Summary | None = None
) -> tuple[Floats, Floats]:
    """Return the numbers, and the precision at each IoU, recall and class, -1 where undefined."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = (_in_hotcoco if engine == "hotcoco" else _in_pycocotools)(truth, detections)
        parameters = evaluation.params
        if summary:
            parameters.maxDets = [max(1, len(detections))]
        evaluation.evaluate()
        if not summary:
            # The summary needs six of twelve pairs of area range and limit: all would take twice the memory. An engine
            # finds what it matched by the position of the area range, so ranges are cut from the end alone.
            areas, limits = parameters.areaRng, parameters.maxDets
            parameters.areaRng, parameters.maxDets = areas[:1], limits[:-1]
            evaluation.accumulate()
            below = np.moveaxis(_curves(evaluation)[1], -1, 0)
            parameters.areaRng, parameters.maxDets = areas, limits[-1:]
        evaluation.accumulate()
    # precision: IoU threshold, recall, class, area range (0: all); recall the same without recall.
    precision, recall = (values[..., -1] for values in _curves(evaluation))
    if summary:
        return summary((precision, recall), labels), precision[..., 0]
    every, *of_sizes = np.moveaxis(precision, -1, 0)
    numbers = (every, every[0], every[5], *of_sizes, *below, *np.moveaxis(recall, -1, 0))
    return np.array([*map(federated.mean_of_defined, numbers)]), every


def _curves(evaluation: Any) -> tuple[Floats, Floats]:
    return np.asarray(evaluation.eval["precision"]), np.asarray(evaluation.eval["recall"])


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


def _largest_difference(names: Sequence[str], first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> float:
    reference, other = np.concatenate(first), np.concatenate(second)
    difference = np.abs(reference - other)
    worst = int(np.argmax(difference))
    if not difference[worst] <= _TOLERANCE:
        raise EngineDisagreementError(
            "pycocotools and hotcoco disagree",
            where=names[worst],
            expected=f"the same number to {_TOLERANCE:g}",
            found=f"pycocotools {reference[worst]!r}, hotcoco {other[worst]!r}",
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
    (*MEASURES, *federated.MEASURES, *SCORE_FREE_MEASURES),
    # 2: numbers are in %.
    algorithm=2,
    files=("measures", "average_precision", "against", "score_free", "steps"),
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
            always=True,
        ),
        *SCORE_FREE_TABLES,
        Tidy("steps", (Column("step"), Column("n", "count")), title="What each step of LVIS's rules leaves"),
    ),
)
