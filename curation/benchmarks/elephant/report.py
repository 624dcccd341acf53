"""What the evaluation of wilderness impact measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from curation.benchmarks.elephant.measures import impact_of
from curation.evaluation.measures import Measure, formulas
from curation.evaluation.open_set import READINGS
from curation.evaluation.result import (
    Column,
    Data,
    Figure,
    Report,
    Result,
    Scored,
    Table,
    entries,
    inputs_table,
    order_table,
    shown,
    stem_of,
    truth_digests,
)

_PAPER = "Dhamija et al., WACV 2020"
_CODE = "the paper's eval.py and WIC.py"
_SHOWN_LEVELS = 6

_precision = partial(Measure, unit="share", better="higher", undefined="no class has objects")
_errors = partial(
    Measure, unit="count", better="lower", source="Miller et al., ICRA 2018", count=("a_ose", "n_unknown")
)

MEASURES = (
    _precision(
        "mAP11",
        "mean average precision of the closed set, 11 points",
        "mean over classes with objects of the 11-point AP (VOC2007); equal scores make one point of the curve",
        source="Everingham et al., IJCV 2010 (the rule of VOC2007)",
        paths=(("mAP11", 0),),
        ranked=True,
    ),
    _precision(
        "mAP_area",
        "mean average precision of the closed set, area",
        "mean over classes with objects of the area under the precision envelope (VOC2010)",
        source="VOC2010 development kit",
        paths=(("mAP_area", 0),),
        ranked=True,
    ),
    _precision(
        "mAP",
        "mean average precision of the official code",
        "mean of the 11-point AP over classes with a detection on the images of the level",
        source=_CODE,
        undefined="no class has a detection",
        paths=(("mAP", 0),),
        ranked=True,
    ),
    Measure(
        "AWI@{recall}",
        "average wilderness impact at a recall",
        "mean of WI over the levels k >= 1 (excl_level0) or k >= 0 (incl_level0) (paper, Table 2)",
        unit="ratio",
        better="lower",
        source=f"{_PAPER}, Table 2",
        undefined="no level has wilderness images, or no class reaches the recall",
        # The paper's variant names its average over classes; the official code has but one.
        paths=(("AWI", "{recall}", "macro", "excl_level0"), ("AWI", "{recall}", "excl_level0")),
        ranked=True,
    ),
    _precision(
        "mAP11_ties_in_input_order",
        "mean average precision of the closed set, 11 points, equal scores in input order",
        "the same, with a point of the curve after each detection",
        paths=(("mAP11_ties_in_input_order", 0),),
    ),
    _errors(
        "A_OSE@{recall}",
        "absolute open-set error at the threshold of a recall",
        "detections of a known class with IoU > 0.5 to an unknown object (Miller et al., ICRA 2018); instances: "
        "distinct unknown objects hit",
        paths=(("a_ose", "{recall}", "total"),),
    ),
    _errors(
        "A_OSE_objects@{recall}",
        "unknown objects called known at the threshold of a recall",
        "distinct unknown objects with a detection of a known class of IoU > 0.5",
        paths=(("a_ose", "{recall}", "instances"),),
    ),
    Measure(
        "WI_owod@{recall}",
        "wilderness impact of OWOD's code",
        "mean over classes of detections on unknown objects / mean of TP + FP, at the index of nearest recall",
        unit="ratio",
        better="lower",
        source="code of ORE",
        undefined="no class has both objects and detections, or none of theirs is right or wrong so far",
        paths=(("owod", "WI", "{recall}"),),
    ),
)
DEFINITIONS: dict[str, str] = {
    "matching": "paper: per class, by falling score, ties in input order, IoU >= 0.5 with the object of highest IoU "
    "of the class; taken already: false positive; difficult (unless counted) and crowd: neither (VOC's rule)",
    "threshold": "score of the first true positive at which TP * 10 >= r * 10 * n on the closed set; kept are all "
    "detections with score >= it (paper: the confidence at which 10, 30, 50 % of the known objects are found)",
    "WI": "closed precision / open precision - 1 = FP_o / (TP_c + FP_c) at the threshold of the closed set; FP_o: all "
    "detections of the class at or above it on the wilderness images of the level (paper, Fig. 5)",
    **{f"WI.{name}": text for name, text in READINGS.items()},
    **formulas(MEASURES, "AWI"),
    "levels": "wilderness ratio k/10: the first n_k wilderness images by ascending image id (paper, Fig. 5)",
    **formulas(MEASURES, "mAP11", "mAP11_ties_in_input_order", "mAP_area"),
    "official": "eval.py and WIC.py: best object of any class at float32 IoU >= 0.5, difficult ordinary, 11-point AP, "
    "mean over classes with a detection on the images of the level, WI from interpolated precision, images "
    "without annotation always wilderness, a closed one too, which then leaves N; of two right detections of an object "
    "the first listed counts, and equal scores keep input order",
    "owod": "OWOD voc_eval: IoU > 0.5, scores to 3 and corners to 1 decimal, WI at the index of nearest recall",
    "a_ose": formulas(MEASURES, "A_OSE")["A_OSE"],
    "diagnosis": "kinds of kept detections (paper, section 4.1, Fig. 3 and 9) and what they lie on (Fig. 4); wr1: "
    "closed set and the first n_closed images of the wilderness given, by id: the paper's WR1 if that is its part wr1",
    "fbeta": "(1 + b^2) TP / ((TP + FP) + b^2 n), threshold of highest F, ties to the highest (paper, Table 4)",
    "background_gap": "score of the class - background score, true positives of the closed set (paper, Fig. 8)",
}


def sections_of(data: Data) -> dict[str, Any]:
    """Return the sections of a result that hold one variant each, by its name."""
    return {name: one for name, one in data.items() if isinstance(one, Mapping) and "n_wild_images" in one}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: one detector on both parts, under each variant."""
    manifest = data["manifest"]
    parts = ("closed", "wilderness" if manifest is None else manifest["wilderness_part"])
    files = {part: inputs["detections"] for part, inputs in data["inputs"].items()}
    for variant, section in sections_of(data).items():
        yield Scored(
            part=" + ".join(parts),
            variant=variant,
            numbers={**section, "a_ose": data["a_ose"], "owod": data["owod"]},
            truth=truth_digests(data),
            predictions=files,
            operating_point={"recalls": ", ".join(section["AWI"])},
            method=stem_of(files["closed"]),
            # A class file goes before the manifest's classes: its digest is part of the truth.
            pinned="classes" not in data["option_files"],
        )


def _tables(result: Result) -> Iterator[Table]:
    data = result.data
    sections = sections_of(data)
    yield inputs_table(data)
    for name, section in sections.items():
        yield _levels(name, section)
        yield _averages(name, section)
        if "thresholds" in section:
            yield _operating_points(name, section)
    yield _open_set(data)
    yield order_table(_orders(data))
    points = ("F", "precision", "recall", "threshold", "TP", "FP", "n")
    rows = [(*keys, *(point[key] for key in points)) for *keys, point in entries(data["fbeta"], 3)]
    yield Table("fbeta", ("class", "ratio", "beta", *points), rows, file=True)
    by_class = {name: section for name, section in sections.items() if "AP11" in section}
    if by_class:
        rows = [
            (name, level, known, ap, section["AP_area"][level][known])
            for name, section in by_class.items()
            for level, known, ap in entries(section["AP11"], 2)
        ]
        yield Table("average_precision", ("section", "ratio", "class", "AP11", "AP_area"), rows, file=True)
        rows = [
            (name, recall, known, *row)
            for name, section in by_class.items()
            for recall, impact in section["WI"].items()
            for known, values in impact["per_class"].items()
            if values is not None
            for row in zip(section["levels"], impact["fp_open"][known], values, strict=True)
        ]
        yield Table("wilderness_impact", ("section", "recall", "class", "ratio", "FP_o", "WI"), rows, file=True)


def _levels(name: str, section: Data) -> Table:
    """Return mAP and WI of each level; a terminal shows a handful, the last one included."""
    flavours = [flavour for flavour in ("mAP11", "mAP_area", "mAP") if flavour in section]
    lists = [section[one] for one in ("levels", "n_wild_images", *flavours)]
    rows = list(zip(*lists, *(impact_of(section, recall) for recall in section["WI"]), strict=True))
    step = max(1, -(-len(rows) // _SHOWN_LEVELS))
    kind = "macro WI" if "thresholds" in section else "WI of mean interpolated precision"
    return Table(
        "levels",
        (
            "ratio",
            Column("n_wild_images", "count", "wilderness images"),
            *(Column(flavour, "share") for flavour in flavours),
            *(Column(f"WI@{recall}", "ratio", f"WI at recall {recall}") for recall in section["WI"]),
        ),
        rows,
        title=f"Profile {name.replace('_', ' ')}: {kind}, mAP",
        printed=[*rows[: len(rows) - 1 : step], *rows[-1:]],
        where={"variant": name},
    )


def _averages(name: str, section: Data) -> Table:
    rows = []
    for recall, average in section["AWI"].items():
        impact = section["WI"][recall]
        missing = _grouped(impact["classes_left_out"]) if isinstance(impact, Mapping) else ""
        for reading, values in (average if "macro" in average else {"": average}).items():
            rows.append((recall, reading, values["excl_level0"], values["incl_level0"], missing))
            missing = ""
    columns = (
        "recall",
        Column("over_classes", head="over classes"),
        Column("excl_level0", "ratio", "levels above 0"),
        Column("incl_level0", "ratio", "with level 0"),
        Column("classes_left_out", head="classes left out"),
    )
    title = f"Average wilderness impact, {name.replace('_', ' ')}"
    return Table("average_impact", columns, rows, title=title, where={"variant": name})


def _grouped(left_out: Mapping[str, str]) -> str:
    """Return the classes left out, by reason."""
    by_reason: dict[str, list[str]] = {}
    for known, reason in left_out.items():
        by_reason.setdefault(reason, []).append(known)
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items()) or "none"


def _operating_points(name: str, section: Data) -> Table:
    thresholds, closed = section["thresholds"], section["AP11"][section["levels"][0]]
    rows = [
        (known, n, closed[known], *(_point(by_class[known]) for by_class in thresholds.values()))
        for known, n in section["npos"].items()
    ]
    points = (f"recall {recall}: threshold, TP, FP" for recall in thresholds)
    columns = ("class", Column("objects", "count"), Column("AP11", "share", "AP11 closed"), *points)
    title = "Operating points on the closed set"
    return Table("operating_points", columns, rows, title=title, where={"variant": name})


def _point(point: Data) -> str:
    if point["threshold"] is None:
        return f"- ({point['reason']})"
    return f"{point['threshold']:.4g}, {point['TP_c']}, {point['FP_c']}"


def _open_set(data: Data) -> Table:
    owod, told = data["owod"], "{} detections on {} unknown objects".format
    rows = [
        ("unknown objects", str(owod["n_unknown"])),
        ("A-OSE, OWOD", told(owod["AOSE_total"], owod["AOSE_instances"])),
        ("WI at recall 0.8, OWOD", shown(owod["WI"]["0.8"], "ratio")),
    ]
    for recall in data["diagnosis"]:
        errors = data["a_ose"][recall]
        rows.append((f"A-OSE at recall {recall}", told(errors["total"], errors["instances"])))
    for recall, section, found in entries(data["diagnosis"], 2):
        if found is not None and (shares := found["shares"]["total"]) is not None:
            kinds = ", ".join(f"{kind} {shown(share, 'share')}" for kind, share in shares.items())
            rows.append((f"shares of what is kept at recall {recall}, {section}", kinds))
    return Table("", (Column("", head=""), Column("", head="")), rows, title="Open-set errors")


def _orders(data: Data) -> dict[str, int]:
    """Return how many decisions rest on the order of the file, by what they are of."""
    found = {name.replace("_", " "): one["decided_by_order"] for name, one in sections_of(data).items()}
    gaps = sum(gap["decided_by_input_order"] for gap in (data["background_gap"] or {}).values())
    return {**found, "OWOD": data["owod"]["decided_by_order"], "background gap": gaps}


def _drawings(result: Result) -> Iterator[Figure]:
    from curation.benchmarks.elephant import figures
    from curation.benchmarks.elephant.diagnosis import full_matrix
    from curation.evaluation.figures import precision_recall_curves

    def drawing(name: str, draw: Callable[..., list[Path]], content: Any, shows: Any, **options: Any) -> Figure:
        return Figure(name, partial(draw, content, **options) if shows else None)

    data = result.data
    method = stem_of(data["inputs"]["closed"]["detections"])
    variant, section = next(iter(sections_of(data).items()))
    recall = "0.3" if "0.3" in data["diagnosis"] else next(iter(data["diagnosis"]))
    at_recall, gaps = data["diagnosis"][recall], data["background_gap"]
    matrix = full_matrix(at_recall["wr1"] or at_recall["closed"], data["classes"], data["true_classes"])
    # The intervals are those of the paper's variant: they are not drawn around another.
    bands = {method: data["bootstrap"]} if variant.startswith("paper") and data["bootstrap"] is not None else None
    marks = {method: section["thresholds"]} if "thresholds" in section else None
    has_errors = any(counts is not None for counts in at_recall["closed"]["per_class"].values())
    has_gaps = any(gap["hist20"] for gap in (gaps or {}).values())
    note = f"variant {variant.replace('_', ' ')}"
    curves = {method: result.columns}
    yield drawing("wilderness_curve", figures.wilderness_curve, {method: section}, True, intervals=bands, note=note)
    yield drawing("error_diagnosis", figures.error_bars, {method: data["diagnosis"]}, has_errors, recall=recall)
    yield drawing("confusion", figures.confusion_figure, matrix, True, note=f"recall {recall}")
    yield drawing(
        "precision_recall", precision_recall_curves, curves, result.columns, thresholds=marks, note="closed set"
    )
    yield drawing("background_gap", figures.background_histogram, gaps, has_gaps)


REPORT = Report(
    "elephant",
    MEASURES,
    scored,
    _tables,
    _drawings,
    # 2: official: closed images without annotation leave N.
    algorithm=2,
    files=("fbeta", "average_precision", "wilderness_impact"),
    figures=("wilderness_curve", "error_diagnosis", "confusion", "precision_recall", "background_gap"),
)
