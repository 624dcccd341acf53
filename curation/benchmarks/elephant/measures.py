"""Measures of the Elephant paper and related code, declared and computed as rows.

The matching rules of each variant; wilderness impact and mAP by the paper's text and by its code; wilderness impact and
A-OSE by the OWOD code; F-beta operating points (Table 4); kinds of kept detections and the objects under them
(section 4.1, Fig. 3, 4, 8-11; precedence after Hoiem et al.).

To add a measure, declare it in ``elephant.toml`` and yield its `Value` with the numbers of its variant, such as
``Value("AWI", 0.25, {"recall": "0.1"})``; add it to `_CLOSED` if it concerns the closed set alone. A table is declared
in `TABLES` if each variant has different rows, or in `SHARED`; its rows are records by column name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import compress, repeat
from typing import Any, Literal, NamedTuple

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.core.errors import EvaluationError, UsageError
from curation.evaluation import matching, open_set
from curation.evaluation.curves import (
    Curve,
    Pool,
    Ranking,
    average_precision_by_level,
    distinct_points,
    eleven_point,
    precision_at_recall,
)
from curation.evaluation.matching import Matches, OperatingPoints, assign, best_overlap, recall_names
from curation.evaluation.measures import Measure, Measured, Value, formulas, percent
from curation.evaluation.open_set import Levels
from curation.evaluation.problem import UNKNOWN, Bools, Detections, Floats, GroundTruth, Int64s, Scene
from curation.evaluation.result import Column, Tidy
from curation.evaluation.variants import IOU, Rules, round_as_text

Record = dict[str, Any]
"""A row of a table."""
ALL_CLASSES = "all classes"
KINDS = fact(__package__, "kinds", dict[str, str])
"""Meaning of each kind of detection; on a closed image, the first that applies."""
CORRECT, LOCALIZATION, SIMILAR, OTHER, UNKNOWN_UNKNOWN, MIXED_UNKNOWN, IGNORED = range(len(KINDS))


PAPER = Rules(
    name="paper",
    meaning="the paper's text: matching by class, fixed thresholds, WI = FP_o / (TP_c + FP_c)",
    average_precision="eleven_point",
    ties="grouped",
)
OFFICIAL = Rules(
    name="official",
    meaning="the published code: matching of any class, interpolated precision, ratio of class means",
    objects="any_class",
    order="input",
    difficult="count",
    crowd="pass_over",
    dtype=np.float32,
    average_precision="eleven_point",
)
OWOD = Rules(
    name="owod",
    meaning="voc_eval of the OWOD code: IoU > 0.5, scores to 3 and corners to 1 decimal, WI at the nearest recall",
    overlap=">",
    text=True,
)
Parts = tuple[tuple[GroundTruth, Detections], ...]
WR1 = "wr1"
"""The list of the paper: as many wilderness images as the closed set has. Only its rows have this name."""
INTERPOLATED = "mean_interpolated_precision"
"""How the official code averages wilderness impact over classes: precision first, then one ratio."""
MEASURES = fact(__package__, "measures", tuple[Measure, ...])


class Added(NamedTuple):
    """Wilderness images that are added to the closed set.

    Attributes
    ----------
    name : str
        Name of their list; ``ratio 1.0`` for as many images as the closed set has, the first by id.
    images : ndarray of bool, shape (n_wilderness,)
    """

    name: str
    images: Bools


def at_ratio_1(scene: Scene) -> Added | None:
    """Return the wilderness images of ratio 1.0, or None if the wilderness is smaller than the closed set."""
    n_closed, n_wilderness = scene.closed.n_images, scene.wilderness.n_images
    return Added("ratio 1.0", np.arange(n_wilderness) < n_closed) if n_wilderness >= n_closed else None


def _is_printed(ratio: str) -> bool:
    return ratio.startswith("wr") or ratio.endswith(".0")


def _columns(names: str, unit: str = "") -> tuple[Column, ...]:
    return tuple(Column(name, unit) for name in names.split())


TABLES = (
    Tidy("levels", (
        Column("ratio"), Column("n_wild_images", "count", "wilderness images"),
        Column("n_wild_detections", "count", text=False), Column("n_classes_with_detections", "count", text=False),
        *_columns("mAP11 mAP_area", "%"), Column("mAP11_ties_in_input_order", "%", text=False), Column("mAP", "%"),
    ), title="Levels of wilderness", printed=lambda row: _is_printed(row[0])),
    Tidy("impact", (
        *_columns("recall over_classes ratio"), Column("WI", "ratio"),
        Column("mean_interp_precision", "ratio", text=False),
    ), title="Wilderness impact", printed=lambda row: row[1] in ("macro", INTERPOLATED) and _is_printed(row[2])),
    Tidy("average_impact", (
        Column("recall"), Column("over_classes", head="over classes"),
        Column("excl_level0", "ratio", "levels above 0"), Column("incl_level0", "ratio", "with level 0"),
    ), title="Average wilderness impact"),
    Tidy("operating_points", (
        *_columns("recall class"), Column("threshold", "score"), *_columns("TP FP", "count"),
        Column("reached", "ratio", "recall"), Column("left_out", head="left out"),
    ), title="Operating points on the closed set"),
    Tidy("average_precision", (*_columns("ratio class"), *_columns("AP11 AP_area", "%"))),
    Tidy("wilderness_impact", (*_columns("recall class ratio"), Column("FP_o", "count"), Column("WI", "ratio"))),
    Tidy("classes", (Column("class"), Column("objects", "count"), Column("left_out", head="left out"))),
    Tidy("counts", _columns("count value")),
)  # fmt: skip
"""Tables of each variant."""
SHARED = (
    Tidy("images", (
        Column("part"), *_columns("images without_annotation objects known unknown difficult crowd", "count"),
    )),
    Tidy("detections", (*_columns("part class"), Column("detections", "count"))),
    Tidy("open_set_errors", (*_columns("recall class"), Column("AOSE", "count"))),
    Tidy("owod_classes", (Column("class"), Column("AOSE", "count"), Column("left_out"))),
    Tidy("nearest_recalls", (*_columns("recall class"), Column("nearest_recall", "ratio"))),
    Tidy("diagnosis", (*_columns("recall part class"), *_columns(" ".join(KINDS), "count"), Column("left_out")),
         title="What is kept at a recall", printed=lambda row: row[2] == ALL_CLASSES),
    Tidy("overlaps", (*_columns("recall part detected true"), Column("detections", "count"))),
    Tidy("fbeta", (
        *_columns("class ratio beta"), *_columns("F precision recall", "share"), Column("threshold", "score"),
        *_columns("TP FP n", "count"), Column("undefined"),
    )),
    Tidy("background_gaps", (
        Column("class"), Column("n", "count"), *_columns("mean std_population std_sample", "ratio"),
        *_columns("negative missing", "count"), Column("undefined"),
    ), title="Background gap of correct detections"),
    Tidy("background_histogram", (*_columns("class from to"), Column("true_positives", "count"))),
    Tidy("intervals", _columns("measure recall over_classes ratio estimate low high undefined reason")),
)  # fmt: skip
"""Tables that do not depend on the variant."""
DEFINITIONS = {
    **fact(__package__, "definitions", dict[str, str]),
    **{f"WI.{name}": text for name, text in open_set.READINGS.items()},
    **formulas(
        MEASURES, "AWI", "mAP11", "mAP11_ties_in_input_order", "mAP_area", "mAP11_open", "mAP_area_open", "AOSE"
    ),
}


_FLAVOURS = ("mAP11", "mAP_area", "mAP11_ties_in_input_order")
_CLOSED = (*_FLAVOURS, "mAP")
"""Measures of the closed set alone."""


def by_part(measured: Measured) -> tuple[Measured, Measured]:
    """Return the numbers of the closed set, and those of closed set and wilderness with all tables."""
    closed = [value for value in measured.values if value.measure in _CLOSED]
    opened = [value for value in measured.values if value.measure not in _CLOSED]
    return Measured(closed, {}), measured._replace(values=opened)


def paper(
    scene: Scene, matches: Matches, points: OperatingPoints, levels: Levels, listed: Sequence[Added] = ()
) -> Measured:
    """Return mAP and wilderness impact at each level, and on lists of wilderness images, by the paper's text.

    AP is of all images of a level (`curation.evaluation.curves.average_precision_by_level`), in %; wilderness impact
    of the threshold of the closed set (`curation.evaluation.open_set.wilderness_impact`).
    """
    classes, n_wilderness = scene.closed.classes, scene.wilderness.n_images
    # The last level may leave some images out: the measures of the open set are of all images.
    levels_and_all = replace(levels, names=(*levels.names, "all"), images=np.append(levels.images, n_wilderness))
    precision = average_precision_by_level(classes, scene.inside, matches, scene.outside, levels_and_all)
    tables = open_set.wilderness_impact(classes, matches, points, scene.outside, levels)
    first_level = levels.first_level(scene.outside.image)
    n_detections = np.bincount(first_level, minlength=len(levels) + 1)[:-1].cumsum().tolist()
    *averages, (mean_11, mean_area, _) = zip(*(precision[name] for name in _FLAVOURS), strict=True)
    tables["levels"] = [
        {"ratio": ratio, "n_wild_images": images, "n_wild_detections": detections_so_far}
        | dict(zip(_FLAVOURS, map(percent, average), strict=True))
        for ratio, images, detections_so_far, average in zip(
            levels.names, levels.images.tolist(), n_detections, averages, strict=True
        )
    ]
    tables["average_precision"] = [
        {"ratio": ratio, "class": name} | {key: percent(precision[key][ratio][name]) for key in ("AP11", "AP_area")}
        for ratio in levels.names
        for name in classes
    ]
    tables["classes"] = [
        {"class": name, "objects": n, "left_out": "" if n else "no ground truth"}
        for name, n in zip(classes, matches.n_positive.tolist(), strict=True)
    ]
    for added in listed:
        alone = scene._replace(outside=scene.outside.take(added.images[scene.outside.image]))
        one_level = Levels((added.name,), np.array([n_wilderness]), levels.counts)
        for name, column in paper(alone, matches, points, one_level).tables.items():
            rows = [dict(zip(column, row, strict=True)) for row in zip(*column.values(), strict=True)]
            tables[name] += [row for row in rows if row.get("ratio") == added.name]
        tables["levels"][-1]["n_wild_images"] = int(added.images.sum())
    values = [
        *(Value(name, tables["levels"][0][name]) for name in _FLAVOURS),
        Value("mAP11_open", percent(mean_11)),
        Value("mAP_area_open", percent(mean_area)),
        *(
            Value("AWI", row["excl_level0"], {"recall": row["recall"]})
            for row in tables["average_impact"]
            if row["over_classes"] == "macro"
        ),
    ]
    return Measured(values, _tables(tables))


def _tables(rows: Mapping[str, Sequence[Record]]) -> dict[str, dict[str, list[Any]]]:
    """Return the tables of a variant as columns; missing values are None."""
    return {
        table.name: {column.name: [row.get(column.name) for row in rows[table.name]] for column in table.columns}
        for table in TABLES
        if table.name in rows
    }


def official(
    scene: Scene,
    *,
    recalls_tenths: Sequence[int] = (1, 3, 5),
    counts: open_set.LevelCounts = "integer",
    listed: Sequence[Added] = (),
) -> Measured:
    """Return mAP and wilderness impact at each level as the paper's own code (``eval.py``, ``WIC.py``) computes them.

    Lists of wilderness images have separate rows after the levels.

    The code differs from the paper's text: matching against objects of any class, float32 IoU, difficult objects as
    ordinary ones, interpolated precision instead of a threshold, a ratio of class means, and images without annotation
    always counted as wilderness.

    The level counts refer to the images of the closed file that are not wilderness by the code's rule: images without
    annotation (or with an unknown object) are wilderness and do not count in N. A class without ground truth counts as
    0. Two faults of the code are not reproduced: it fails on empty detections, and a crowd region shifts the list of
    objects that it matches (here crowd counts only in the number of positives).
    """
    closed, inside, wilderness, outside = scene
    wild = ~np.isin(np.arange(closed.n_images), closed.image)
    wild[closed.image[closed.label < 0]] = True
    n_wild, n_known = int(wild.sum()), int((~wild).sum())
    # Without a closed image every level is level 0.
    most = open_set.OFFICIAL_LEVELS if n_known else 1
    levels = open_set.wilderness_levels(max(n_known, 1), n_wild + wilderness.n_images, counts=counts, most=most)
    first_level = np.where(wild, levels.first_level(np.cumsum(wild) - 1), 0)
    entered = np.append(first_level[inside.image], levels.first_level(outside.image + n_wild))
    matches = assign(closed, inside, OFFICIAL)
    pool = Pool.from_parts(inside, matches, outside)
    recalls = matching.tenth_names(recalls_tenths)
    # By level; of all images; and of the closed ones with those of each list.
    groups = [(entered, len(levels)), (np.zeros_like(entered), 1)]
    ratios, images = list(levels.names), levels.images.tolist()
    for added in listed:
        groups.append((np.append(np.zeros(len(inside), np.int64), ~added.images[outside.image]), 1))
        ratios.append(added.name)
        images.append(n_wild + int(added.images.sum()))
    numbers = [_official_by_level(pool, *group, len(closed.classes), recalls_tenths) for group in groups]
    average, detected, *precisions = (np.concatenate(columns) for columns in zip(*numbers, strict=True))
    is_row = np.arange(len(average)) != len(levels)
    everything = percent(_means(average, detected)[len(levels)])
    average, detected = average[is_row], detected[is_row]
    precision = dict(zip(recalls, (column[is_row] for column in precisions), strict=True))
    mean_average = list(map(percent, _means(average, detected)))
    by_level = zip(ratios, images, detected.sum(axis=1).tolist(), mean_average, strict=True)
    names = ("ratio", "n_wild_images", "n_classes_with_detections", "mAP")
    rows: dict[str, list[Record]] = {
        "levels": [dict(zip(names, row, strict=True)) for row in by_level],
        "impact": [],
        "average_impact": [],
        "classes": [
            {"class": name, "objects": n, "left_out": ""}
            for name, n in zip(closed.classes, pool.n_positive.tolist(), strict=True)
        ],
        "counts": [
            {"count": "n_closed_images", "value": n_known},
            {"count": "n_closed_as_wilderness", "value": n_wild},
        ],
    }
    values = [
        Value("mAP", mean_average[0], undefined="no class has a detection on the closed images"),
        Value("mAP_open", everything),
    ]
    for recall, table in precision.items():
        mean = _means(table, detected)
        impact = [mean[0] / value - 1 if mean[0] and value else None for value in mean]
        reading = {"recall": recall, "over_classes": INTERPOLATED}
        rows["impact"] += [
            reading | {"ratio": ratio, "WI": value, "mean_interp_precision": measured}
            for ratio, value, measured in zip(ratios, impact, mean, strict=True)
        ]
        rows["average_impact"].append(reading | open_set.average_impact(impact[: len(levels)]))
        reason = "the mean interpolated precision is 0 or has no class" if None in impact[: len(levels)] else ""
        values.append(Value("AWI", rows["average_impact"][-1]["excl_level0"], {"recall": recall}, undefined=reason))
    return Measured(values, _tables(rows))


def _official_by_level(
    pool: Pool, entered: Int64s, n_levels: int, n_classes: int, recalls_tenths: Sequence[int]
) -> list[Any]:
    """Return AP, which classes have detections, and the precision at each recall, each of shape (levels, classes)."""
    shape = (n_levels, n_classes)
    average, detected, *precisions = np.zeros(shape), np.zeros(shape, bool), *(np.zeros(shape) for _ in recalls_tenths)
    for number, ranking in pool.rankings(entered, n_levels):
        curve = ranking.curve("input_order")
        average[:, number] = eleven_point(curve)
        detected[:, number] = ranking.level.min(initial=n_levels) <= np.arange(n_levels)
        for precision, tenths in zip(precisions, recalls_tenths, strict=True):
            precision[:, number] = precision_at_recall(curve, tenths)
    return [average, detected, *precisions]


def _means(table: Floats, detected: Bools) -> open_set.Values:
    """Return the mean at each level over the classes with a detection there."""
    return [float(row[some].mean()) if some.any() else None for row, some in zip(table, detected, strict=True)]


class SharedRows(NamedTuple):
    """Numbers of a detector that are the same under every variant, and rows of `SHARED`."""

    values: Sequence[Value]
    tables: dict[str, list[Record]]


def owod(parts: Parts) -> SharedRows:
    """Return wilderness impact at recalls 0.1 to 0.9 and A-OSE as ``voc_eval`` of OWOD, over all parts together.

    As in the official text files, scores are rounded to 3 decimals and corners to 1. Equal scores keep input order
    (the official sort is unstable). A class without ground truth is left out of wilderness impact and listed. A-OSE
    counts detections of any score, on difficult and crowd objects too.
    """
    classes = parts[0][0].classes
    rounded = tuple((truth, round_as_text(detections)) for truth, detections in parts)
    hits = _hits(rounded)
    outcomes = _outcomes(rounded, hits)
    detected = np.bincount(outcomes.label, minlength=len(classes)).tolist()
    by_class = open_set.recall_points(outcomes, len(classes))
    impact = open_set.impact_at_recalls(by_class, classes)["WI"][9:90:10]
    recalls = [tenths / 10 for tenths in open_set.TENTHS]
    counts, objects = _errors(classes, hits, np.full(len(classes), -np.inf))
    n = int(outcomes.target.sum())
    lines = zip(classes, counts.tolist(), outcomes.n_positive.tolist(), detected, strict=True)
    return SharedRows(
        [
            *(Value("WI_owod", value, {"recall": str(recall)}) for recall, value in zip(recalls, impact, strict=True)),
            Value("AOSE_owod", int(counts.sum()), n=n),
            Value("AOSE_objects_owod", objects, n=n),
        ],
        {
            "owod_classes": [
                {
                    "class": name,
                    "AOSE": count,
                    "left_out": "no ground truth" if not positive else "" if some else "no detections",
                }
                for name, count, positive, some in lines
            ],
            "nearest_recalls": [
                {"recall": str(at), "class": classes[number], "nearest_recall": float(curve.recall[curve.nearest(at)])}
                for at in recalls
                for number, curve in by_class.items()
            ],
        },
    )


def open_set_errors(parts: Parts, points: OperatingPoints) -> SharedRows:
    """Return A-OSE at all scores and at each operating point: detections of a known class on an unknown object.

    Boxes and scores are not rounded, IoU > 0.5 (Miller et al., ICRA 2018, count at an operating point; OWOD at all
    scores). A class without threshold has no count.
    """
    classes, hits = parts[0][0].classes, _hits(parts)
    n = sum(int((truth.label < 0).sum()) for truth, _ in parts)
    everything = np.full(len(classes), -np.inf)
    values, rows = [], []
    for recall, limits in zip(("all", *recall_names(points)), (everything, *points.threshold), strict=True):
        counts, objects = _errors(classes, hits, limits)
        at = {"recall": recall}
        values += [Value("AOSE", int(counts.sum()), at, n), Value("AOSE_objects", objects, at, n)]
        rows += [
            {"recall": recall, "class": name, "AOSE": None if undefined else count}
            for name, count, undefined in zip(classes, counts.tolist(), np.isnan(limits), strict=True)
        ]
    return SharedRows(values, {"open_set_errors": rows})


Hits = list[tuple[Detections, matching.OverlappingPairs]]


def _hits(parts: Parts) -> Hits:
    """Return the detections of each part with the unknown objects that they lie on."""
    options: dict[str, Any] = {"same_class": False, "iou_threshold": IOU, "strict": OWOD.strict}
    return [
        (detections, matching.overlapping_pairs(truth, detections, mask=truth.label < 0, **options))
        for truth, detections in parts
    ]


def _errors(classes: Sequence[str], hits: Hits, limit: Floats) -> tuple[Int64s, int]:
    """Return A-OSE by class of the detections at or above its limit, and how many unknown objects these lie on."""
    counts, objects = np.zeros(len(classes), np.int64), 0
    for detections, pairs in hits:
        is_kept = detections.scores[pairs.row] >= limit[detections.label[pairs.row]]
        # Pairs go by detection.
        rows = pairs.row[is_kept]
        counts += np.bincount(detections.label[rows[np.diff(rows, prepend=-1) > 0]], minlength=len(classes))
        objects += int(np.count_nonzero(np.bincount(pairs.position[is_kept])))
    return counts, objects


def _outcomes(parts: Parts, hits: Hits) -> open_set.TaskOutcomes:
    """Return the outcomes of the detections of all parts under the rules of the OWOD code."""
    matches = [assign(truth, detections, OWOD) for truth, detections in parts]
    outcome = np.concatenate([matched.outcome for matched in matches])
    on_unknown = np.concatenate([np.bincount(pairs.row, minlength=len(boxes)) > 0 for boxes, pairs in hits])
    everything = Detections.joined([detections for _, detections in parts])
    rows = np.flatnonzero(on_unknown)
    return open_set.TaskOutcomes(
        label=everything.label,
        scores=everything.scores,
        outcome=outcome,
        n_positive=np.sum([matched.n_positive for matched in matches], axis=0),
        target=np.concatenate([truth.label < 0 for truth, _ in parts]),
        taken=np.concatenate([matched.truth for matched in matches]),
        # The measures do not depend on the object under a detection.
        pairs=matching.OverlappingPairs(rows, np.zeros_like(rows), np.zeros(len(rows))),
    )


Formula = Literal["correct", "published"]
FORMULAS = fact(__package__, "formulas", dict[str, str])
TABLE_4_BETAS = ("0.5", "1.0", "1.5")
TABLE_4_RATIOS = tuple(f"{quarters / 4}" for quarters in range(18))


def f_beta(tp: int, tp_fp: int, n: int, beta: str, *, formula: Formula = "correct") -> float | None:
    """Return F-beta of an operating point of `tp` true positives among `tp_fp` kept detections and `n` objects.

    None without ground truth, or if nothing is kept under ``published`` (precision 0/0): the b = 0.5 column of
    the paper's Table 4, which lacks the denominator in all 18 rows. Beta is a decimal text.
    """
    square = Fraction(beta) ** 2
    if n == 0 or (formula == "published" and tp_fp == 0):
        return None
    if formula == "published":
        return float(1 + square) * (tp / tp_fp) * (tp / n)
    return float((1 + square) * tp / (tp_fp + square * n))


def images_at_ratio(ratio: str, n_closed: int) -> int:
    """Return the number of wilderness images of a ratio: the floor of ``ratio * n_closed`` in exact integers."""
    return int(Fraction(ratio) * n_closed)


def fbeta_operating_points(
    scene: Scene,
    matches: Matches,
    *,
    ratios: Sequence[str] | None = None,
    betas: Sequence[str] = TABLE_4_BETAS,
    formula: Formula = "correct",
) -> list[Record]:
    """Return the threshold of highest F-beta per class, wilderness ratio and beta, rows of ``fbeta``.

    Candidates are the distinct scores of the class on the closed images and on the first ``floor(ratio * n_closed)``
    wilderness images; every detection there is a false positive. Among equal F the highest threshold wins. The choice
    always follows the correct formula, as in Table 4 (its b = 0.5 row at ratio 0 is not the best of the printed
    formula); `formula` only determines the reported F.

    Parameters
    ----------
    ratios, betas : sequence of str
        Decimal texts, unchanged in the rows. By default those of Table 4 for which there are enough images.

    Raises
    ------
    UsageError
        A ratio or beta is not a decimal number, a ratio is negative, or a beta is not positive.
    EvaluationError
        A ratio needs more wilderness images than there are.
    """
    closed, inside, wilderness, outside = scene
    if ratios is None:
        ratios = [ratio for ratio in TABLE_4_RATIOS if images_at_ratio(ratio, closed.n_images) <= wilderness.n_images]
    for quantity, texts in (("wilderness ratio", ratios), ("beta", betas)):
        for text in texts:
            # Exponents are refused: "1e999999999" would fill the memory with digits.
            if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text) or (quantity == "beta" and not Fraction(text)):
                expected = "a decimal number such as 0.5" + (", above 0" if quantity == "beta" else "")
                raise UsageError(f"Invalid {quantity}", expected=expected, found=repr(text)[:80])
    sizes = {ratio: images_at_ratio(ratio, closed.n_images) for ratio in ratios}
    for ratio, size in sizes.items():
        if size > wilderness.n_images:
            raise EvaluationError(
                "A wilderness ratio needs more images than are available",
                where=f"ratio {ratio} of {closed.n_images} closed images",
                expected=f"{size} wilderness images",
                found=str(wilderness.n_images),
                hint="give a larger wilderness part, or smaller ratios",
            )
    levels = sorted({*sizes.values()})
    enters = np.append(np.zeros(len(inside), np.int64), np.searchsorted(levels, outside.image, side="right"))
    rankings = Pool.from_parts(inside, matches, outside).rankings(enters, len(levels), empty=True)
    return [
        {"class": closed.classes[number], "ratio": ratio, **point}
        for number, ranking in rankings
        for curve in [ranking.curve()]
        for ratio, size in sizes.items()
        for point in _best_points(ranking, curve, levels.index(size), betas, formula)
    ]


def _best_points(
    ranking: Ranking, curve: Curve, level: int, betas: Sequence[str], formula: Formula
) -> Iterator[Record]:
    """Yield the operating point of highest F for each beta at a level; F rises only at true positives."""
    n, entered = int(ranking.n_positive), ranking.level <= level
    if not n or not entered.any():
        reason = "the class has no detections" if n else "the class has no ground truth"
        nothing = dict.fromkeys(("F", "precision", "recall", "threshold"))
        yield from ({"beta": beta, **nothing, "TP": 0, "FP": 0, "n": n, "undefined": reason} for beta in betas)
        return
    tps, retained, scores = curve.tp[level], curve.retained[level], ranking.scores[ranking.correct]
    scores = scores[np.diff(scores, prepend=np.inf) != 0]
    if not len(scores):
        scores, tps, retained = (
            array[:1] for array in distinct_points(ranking.scores[entered], ranking.correct[entered])
        )
    for beta in betas:
        p, q = (Fraction(beta) ** 2).as_integer_ratio()
        # Integers below 2^53 make numerator and denominator exact, so equal F are equal floats.
        best = int(np.argmax(((p + q) * tps) / (q * retained + p * n)))
        tp, tp_fp = int(tps[best]), int(retained[best])
        yield {
            "beta": beta,
            "F": f_beta(tp, tp_fp, n, beta, formula=formula),
            "precision": tp / tp_fp,
            "recall": tp / n,
            "threshold": float(scores[best]),
            "TP": tp,
            "FP": tp_fp - tp,
            "n": n,
            "undefined": "",
        }


HOIEM_SIMILAR = fact(__package__, "hoiem_similar", tuple[tuple[str, ...], ...])
"""Similar VOC classes of Hoiem, Chodpathumwan and Dai, "Diagnosing Error in Object Detectors" (ECCV 2012)."""

LEAST_IOU = 0.1
"""Overlap at or above which a detection lies on an object."""


def error_kinds(
    scene: Scene,
    matches: Matches,
    points: OperatingPoints,
    added: Added | None,
    *,
    similar: Sequence[Sequence[str]] = HOIEM_SIMILAR,
) -> list[Record]:
    """Return how many kept detections are of each kind, per recall, without and with wilderness images.

    A detection is kept if its score is at or above the closed set's threshold of its class; `similar` are sets of
    similar classes.

    Returns
    -------
    list of dict
        Rows of ``diagnosis``: for each recall, the part ``closed`` and the part named by `added` (the closed set with
        these images), each class and `ALL_CLASSES`: counts by the keys of `KINDS`, None for a class without threshold,
        with the reason in ``left_out``.
    """
    scene, is_kept = _kept_at_any(scene, points, added)
    kinds = (
        _closed_kinds(scene.closed, scene.inside, matches.outcome[is_kept], similar),
        np.where(_objects_under(scene.wilderness, scene.outside) >= 0, UNKNOWN_UNKNOWN, MIXED_UNKNOWN),
    )
    rows = []
    for recall, part, counts, limits in _by_part(scene, points, added, kinds, len(KINDS)):
        at = {"recall": recall, "part": part}
        for name, line, limit in zip(scene.closed.classes, counts.tolist(), limits, strict=True):
            kept_none = bool(np.isnan(limit))
            cells = dict.fromkeys(KINDS) if kept_none else dict(zip(KINDS, line, strict=True))
            rows.append(at | {"class": name, **cells, "left_out": "the recall is never reached" if kept_none else ""})
        total = dict(zip(KINDS, counts.sum(axis=0).tolist(), strict=True))
        rows.append(at | {"class": ALL_CLASSES, **total, "left_out": ""})
    return rows


def class_overlaps(scene: Scene, points: OperatingPoints, added: Added | None) -> list[Record]:
    """Return the classes of the objects under the kept detections, per recall, without and with wilderness images.

    Each kept detection is assigned to the object of highest IoU of any class, crowd and difficult ones included, if
    that IoU is at or above `LEAST_IOU`; else to the background.

    Returns
    -------
    list of dict
        Rows of ``overlaps`` with counts above zero: for each recall and part (see `error_kinds`), the detected class
        and the true one: a known class, the original class of an unknown object, or ``""`` for the background.
    """
    scene, _ = _kept_at_any(scene, points, added)
    columns = column_names(scene)
    number = {name: position for position, name in enumerate(columns)}

    def true_classes(truth: GroundTruth, detections: Detections) -> Int64s:
        # The last column is the background, at position -1.
        names = np.append(truth.label, len(columns)).astype(np.int64)
        names[:-1][truth.label < 0] = [number[name] for name in _unknown_names(truth)]
        return names[_objects_under(truth, detections)]

    cells = [true_classes(*part) for part in scene.parts]
    return [
        {
            "recall": recall,
            "part": part,
            "detected": scene.closed.classes[row],
            "true": (*columns, "")[column],
            "detections": int(counts[row, column]),
        }
        for recall, part, counts, _ in _by_part(scene, points, added, cells, len(columns) + 1)
        for row, column in np.argwhere(counts).tolist()
    ]


def _kept_at_any(scene: Scene, points: OperatingPoints, added: Added | None) -> tuple[Scene, Bools]:
    """Return the scene with the detections that some threshold keeps, and a mask of the kept closed ones.

    Wilderness detections are those on the images of `added`.
    """
    lowest = np.fmin.reduce(points.threshold, axis=0, initial=np.inf)
    inside, outside = (detections.scores >= lowest[detections.label] for _, detections in scene.parts)
    outside = outside & added.images[scene.outside.image] if added else np.zeros_like(outside)
    return scene._replace(inside=scene.inside.take(inside), outside=scene.outside.take(outside)), inside


def _by_part(
    scene: Scene, points: OperatingPoints, added: Added | None, cells: Sequence[Int64s], width: int
) -> Iterator[tuple[str, str, Int64s, Floats]]:
    """Yield recall, part, the counts of kept detections, shape (K, width), and the thresholds."""
    n_classes = len(scene.closed.classes)
    for recall, limits in zip(recall_names(points), points.threshold, strict=True):
        counts = []
        for (_, detections), column in zip(scene.parts, cells, strict=True):
            is_kept = detections.scores >= limits[detections.label]
            cell = detections.label[is_kept].astype(np.int64) * width + column[is_kept]
            counts.append(np.bincount(cell, minlength=n_classes * width).reshape(-1, width))
        yield recall, "closed", counts[0], limits
        if added is not None:
            yield recall, added.name, counts[0] + counts[1], limits


def _closed_kinds(truth: GroundTruth, detections: Detections, outcome: Any, similar: Sequence[Sequence[str]]) -> Int64s:
    """Return the kind of each closed detection."""
    kinds = np.choose(outcome + 1, (IGNORED, MIXED_UNKNOWN, CORRECT))
    rows = np.flatnonzero(outcome == 0)
    wrong = detections.take(rows)
    known = truth.label >= 0
    wrong_kinds = kinds[rows]
    # Weaker kinds come first: stronger ones overwrite them.
    wrong_kinds[best_overlap(truth, wrong, same_class=False, mask=known)[1] >= LEAST_IOU] = OTHER
    for number in np.unique(wrong.label).tolist():
        name = truth.classes[number]
        alike = {other for members in similar if name in members for other in members} - {name}
        mask = known & np.array([other in alike for other in truth.classes])[truth.label]
        members = np.flatnonzero(wrong.label == number)
        overlap = best_overlap(truth, wrong.take(members), same_class=False, mask=mask)[1]
        wrong_kinds[members[overlap >= LEAST_IOU]] = SIMILAR
    wrong_kinds[best_overlap(truth, wrong, same_class=True)[1] >= LEAST_IOU] = LOCALIZATION
    kinds[rows] = wrong_kinds
    return np.asarray(kinds)


def _objects_under(truth: GroundTruth, detections: Detections) -> Int64s:
    """Return the object of highest IoU that each detection lies on, -1 for none."""
    position, overlap = best_overlap(truth, detections, same_class=False)
    return np.where(overlap >= LEAST_IOU, position.astype(np.int64), -1)


def column_names(scene: Scene) -> tuple[str, ...]:
    """Return the true classes: the known ones in their order, then all others by code point."""
    others = {name for truth, _ in scene.parts for name in _unknown_names(truth)}
    return scene.closed.classes + tuple(sorted(others.difference(scene.closed.classes)))


def _unknown_names(truth: GroundTruth) -> Iterable[str]:
    """Return the class of each unknown object; `UNKNOWN` if the file does not state it."""
    unknown = truth.label < 0
    if truth.original is None:
        return repeat(UNKNOWN, int(np.count_nonzero(unknown)))
    return (name or UNKNOWN for name in compress(truth.original, unknown.tolist()))


EDGES: Floats = np.arange(-10, 11) / 10
"""Bin edges -1.0, -0.9, …, 1.0, each the float nearest to its decimal (``-1 + k * 0.1`` is not); last bin closed."""


def background_gap(truth: GroundTruth, detections: Detections, matches: Matches) -> dict[str, list[Record]] | None:
    """Return the distribution, by class, of the gap of class and background score of the closed true positives.

    The supplement does not state whether its standard deviation is that of the population or of a sample, so both are
    given; it names no threshold, so every true positive counts.

    Returns
    -------
    dict or None
        Rows of ``background_gaps``: ``missing`` counts the true positives without a finite background score. Rows of
        ``background_histogram``: 20 bins on [-1, 1], for classes whose gaps all lie there. None if no detection has a
        background score.
    """
    if detections.background_scores is None:
        return None
    gaps = detections.scores - detections.background_scores
    correct = matches.outcome == 1
    rows, bins = [], []
    for number, name in enumerate(truth.classes):
        all_gaps = gaps[correct & (detections.label == number)]
        known = all_gaps[np.isfinite(all_gaps)]
        n = len(known)
        softmax = not n or np.abs(known).max() <= 1
        defined = n > 0 and softmax
        outside = "a gap lies outside [-1, 1]: the scores are not softmax probabilities"
        reason = "no true positive has a background score" if softmax else outside
        rows.append(
            {
                "class": name,
                "n": n,
                "mean": float(known.mean()) if defined else None,
                "std_population": float(known.std()) if defined else None,
                "std_sample": float(known.std(ddof=1)) if defined and n > 1 else None,
                "negative": int((known < 0).sum()),
                "missing": len(all_gaps) - n,
                "undefined": "" if defined else reason,
            }
        )
        if softmax:
            cells = zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), np.histogram(known, EDGES)[0].tolist(), strict=True)
            bins += [{"class": name, "from": low, "to": high, "true_positives": count} for low, high, count in cells]
    return {"background_gaps": rows, "background_histogram": bins}
