"""What the evaluation of open-set detection with defined unknowns measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import (
    Column,
    Data,
    Figure,
    Report,
    Result,
    Scored,
    Table,
    order_table,
    stem_of,
)

_FLOOR = 0.05
_CURVE = ("theta", "TP", "FP", "A_OSE", "FP_open", "WI", "WI_all_fp", "P_K", "P_KU")
_AVERAGES = ("AP_known", "AP_known50", "AP_known75", "AP_unk", "AP_unk50", "AP_unk75")
_SHOWN_THETAS = 6
_OSOD3 = "Hosoya et al., arXiv 2207.09775"


def _average(key: str, name: str, formula: str, *, is_ranked: bool = False) -> Measure:
    return Measure(
        key,
        name,
        formula,
        unit="%",
        better="higher",
        source=_OSOD3,
        undefined="no such class has objects, or the problem does not define it",
        ranked=is_ranked,
    )


def _at_theta(key: str, name: str, formula: str, *, undefined: str = "", is_ranked: bool = False) -> Measure:
    is_ratio = key.startswith("WI")
    return Measure(
        key,
        name,
        formula,
        unit="ratio" if is_ratio else "count",
        better="lower",
        source=f"{_OSOD3}, equation 1" if key == "WI" else "Miller et al., ICRA 2018" if key == "A_OSE" else "",
        undefined=undefined,
        count=() if is_ratio else ("n", "unknown_objects"),
        ranked=is_ranked,
    )


MEASURES = (
    _average(
        "AP_unk",
        "average precision of unknown",
        "COCO AP of the one class unknown, in percent",
        is_ranked=True,
    ),
    _average(
        "AP_known",
        "average precision of known classes",
        "mean over known classes with objects of COCO AP (IoU 0.50:0.95, all areas, 100 detections a class and "
        "image), in percent",
        is_ranked=True,
    ),
    _at_theta(
        "A_OSE",
        "absolute open-set error at a confidence",
        "detections of known classes, score >= theta, that overlap an unknown object with IoU >= 0.5",
        is_ranked=True,
    ),
    _at_theta(
        "WI",
        "wilderness impact at a confidence",
        "FP_open / (TP + FP - FP_open) = P_K / P_KU - 1 exactly (equation 1 of the paper)",
        undefined="no detection but those on unknown objects",
        is_ranked=True,
    ),
    _at_theta("FP_open", "open-set false positives at a confidence", "those of them that are false positives"),
    _at_theta(
        "WI_all_fp",
        "wilderness impact of published code at a confidence",
        "A_OSE / (TP + FP), what published code computes; not P_K / P_KU - 1",
        undefined="no detection",
    ),
    _average("AP_known50", "average precision of known classes at IoU 0.50", "AP_known at IoU 0.50"),
    _average("AP_known75", "average precision of known classes at IoU 0.75", "AP_known at IoU 0.75"),
    _average("AP_unk50", "average precision of unknown at IoU 0.50", "AP_unk at IoU 0.50"),
    _average("AP_unk75", "average precision of unknown at IoU 0.75", "AP_unk at IoU 0.75"),
)
DEFINITIONS = formulas(MEASURES, "AP_known", "AP_unk", "A_OSE", "FP_open", "WI", "WI_all_fp")


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: one detector on each case, under each profile."""
    for case, section in data["cases"].items():
        inputs, manifest = data["inputs"][case], data["manifests"].get(case)
        for profile, curve in section["curves"].items():
            # A detector's floor in the literature; else the lowest threshold that was asked for.
            point = next((row for row in curve if row["theta"] == _FLOOR), curve[0])
            at_theta = {key: point[key] for key in ("A_OSE", "WI", "FP_open", "WI_all_fp") if key in point}
            yield Scored(
                part=manifest["part"] if manifest else case,
                case=case,
                variant=profile,
                numbers={**section, **at_theta},
                truth={"truth": inputs["truth"], "classes": data["classes"][case]},
                predictions={case: inputs["detections"]},
                settings={"outside": section["outside"].split(":")[0], "theta": f"{point['theta']:g}"},
                method=stem_of(inputs["detections"]),
                manifest=manifest,
            )


def _tables(result: Result) -> Iterator[Table]:
    cases = result.data["cases"]
    yield Table(
        "inputs",
        (Column("case"), Column("kind", head=""), Column("file"), Column("holds"), Column("reported")),
        list(_input_rows(result.data)),
        title="Inputs",
    )
    yield _averages(result.data)
    for case, section in cases.items():
        for profile, points in section["curves"].items():
            yield _curve(case, profile, points)
    yield order_table(
        {
            f"{case}, {name}": count
            for case, section in cases.items()
            for name, count in section["decided_by_order"].items()
        }
    )
    yield Table(
        "average_precision",
        (Column("case"), Column("class"), Column("AP", "%")),
        [
            (case, name, value)
            for case, section in cases.items()
            for name, value in (
                *((name, section[name]) for name in _AVERAGES),
                *section["AP_per_class"].items(),
            )
        ],
        file=True,
    )
    yield Table(
        "thresholds",
        (Column("case"), Column("profile"), *map(Column, _CURVE)),
        [
            (case, profile, *(point[name] for name in _CURVE))
            for case, section in cases.items()
            for profile, points in section["curves"].items()
            for point in points
        ],
        file=True,
    )


def _input_rows(data: Data) -> Iterator[tuple[str, ...]]:
    for case, files in data["inputs"].items():
        n, truth, detections = data["cases"][case]["n"], files["truth"], files["detections"]
        names = ", ".join(one["name"] for one in truth["files"])
        yield case, "truth", names, f"{n['images']} images, {n['objects']} objects", _reported(truth)
        yield case, "detections", detections["name"], f"{n['detections']} boxes", _reported(detections)


def _reported(file: Data) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in file["reported"].items())


def _averages(data: Data) -> Table:
    cases, over = data["cases"], data["over_cases"]
    rows: list[tuple[Any, ...]] = [
        (case, section["taxonomy"], *(section[name] for name in _AVERAGES)) for case, section in cases.items()
    ]
    spread = ("mean ± std (population)", "", *(_spread(over[name]) for name in _AVERAGES))
    outside = next(iter(cases.values()))["outside"].split(":")[0]
    return Table(
        "cases",
        (Column("case"), Column("problem"), *(Column(name, "%") for name in _AVERAGES)),
        rows,
        title=f"Average precision in %, {outside}",
        printed=[*rows, spread] if len(rows) > 1 else None,
    )


def _curve(case: str, profile: str, points: list[dict[str, Any]]) -> Table:
    step = max(1, -(-len(points) // _SHOWN_THETAS))
    units = {"theta": "", "WI": "ratio", "WI_all_fp": "ratio", "P_K": "ratio", "P_KU": "ratio"}
    columns = [
        Column(name, units.get(name, "count"), show="g" if name == "theta" else "", text=name in _CURVE[:7])
        for name in _CURVE
    ]
    rows = [tuple(point[name] for name in _CURVE) for point in points]
    return Table(
        "curve",
        columns,
        rows,
        title=f"{case}, profile {profile}: detections of known classes with score >= theta",
        printed=[rows[place] for place in sorted({*range(0, len(rows), step), len(rows) - 1})],
        where={"case": case, "profile": profile},
    )


def _spread(over: Data) -> str:
    return "-" if over["mean"] is None else f"{over['mean']:.2f} ± {over['std_population']:.2f}"


def _drawings(result: Result) -> Iterator[Figure]:
    from curation.benchmarks.osod3.figures import threshold_figure

    for profile in result.data["profiles"]:
        curves = {case: section["curves"][profile] for case, section in result.data["cases"].items()}
        yield Figure(f"open_set_error_{profile}", partial(threshold_figure, curves, profile=profile))


REPORT = Report(
    "osod3",
    MEASURES,
    scored,
    _tables,
    _drawings,
    files=("average_precision", "thresholds"),
    figures=("open_set_error_*",),
)
