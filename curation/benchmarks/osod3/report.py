"""What the evaluation of open-set detection with defined unknowns measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import Column, Figure, Report, Result, Table, Tidy, tidy_tables
from curation.figure_style import (
    MARKERS,
    SERIES,
    add_key,
    plain,
    save_figure,
    set_title,
    small_multiples,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

AVERAGES = ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75")
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
        source=f"{_OSOD3}, equation 1" if key == "WI" else "Miller et al., ICRA 2018" if key == "AOSE" else "",
        undefined=undefined,
        ranked=is_ranked,
    )


MEASURES = (
    _average("AP_unk", "average precision of unknown", "COCO AP of the one class unknown, in percent", is_ranked=True),
    _average(
        "AP_known",
        "average precision of known classes",
        "mean over known classes with objects of COCO AP (IoU 0.50:0.95, all areas, 100 detections a class and "
        "image), in percent",
        is_ranked=True,
    ),
    _at_theta(
        "AOSE",
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
        "AOSE / (TP + FP), what published code computes; not P_K / P_KU - 1",
        undefined="no detection",
    ),
    _average("AP_known50", "average precision of known classes at IoU 0.50", "AP_known at IoU 0.50"),
    _average("AP_known75", "average precision of known classes at IoU 0.75", "AP_known at IoU 0.75"),
    _average("AP_unk50", "average precision of unknown at IoU 0.50", "AP_unk at IoU 0.50"),
    _average("AP_unk75", "average precision of unknown at IoU 0.75", "AP_unk at IoU 0.75"),
)
DEFINITIONS = formulas(MEASURES, "AP_known", "AP_unk", "AOSE", "FP_open", "WI", "WI_all_fp")


TABLES = (
    Tidy("thresholds", (
        Column("theta", show="g"), *(Column(name, "count") for name in ("TP", "FP", "AOSE", "FP_open")),
        *(Column(name, "ratio", text=name[0] == "W") for name in ("WI", "WI_all_fp", "P_K", "P_KU")),
    ), title="Detections of known classes with score >= theta", printed=lambda row: round(100 * row[0]) % 20 == 0),
    Tidy("average_precision", (Column("class"), Column("AP", "%"))),
    Tidy("counts", (Column("count"), Column("value"))),
)  # fmt: skip
"""What a result has beside its measures, a row a threshold, a class, a count."""


def _tables(result: Result) -> Iterator[Table]:
    yield from tidy_tables(result)
    over = result.data["over_cases"]
    columns = (
        Column("measure"),
        Column("mean", "%"),
        *(Column(name, "%") for name in ("std_population", "std_sample")),
    )
    rows = [(name, *(one[column.name] for column in columns[1:])) for name, one in over.items()]
    title = "Mean and standard deviation over cases" if max(one["n"] for one in over.values()) > 1 else ""
    yield Table("over_cases", columns, rows, title=title)


def _drawings(result: Result) -> Iterator[Figure]:
    for variant in result.data["variants"]:
        curves = {
            one.case: [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
            for one in result.scored
            if one.variant == variant and one.found is not None
            for found in (one.found.tables["thresholds"],)
        }
        yield Figure(f"open_set_error_{variant}", partial(threshold_figure, curves, variant=variant))


_COLUMNS = ("theta", "AOSE", "WI", "WI_all_fp")
_MOST_MARKED = 40


def threshold_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]], stem: Path, *, variant: str = "") -> list[Path]:
    """Draw A-OSE and WI as functions of the confidence threshold, a line a case (Fig. 3 of the paper).

    Parameters
    ----------
    curves : mapping of str to rows
        By case; rows of the table ``thresholds``.
    stem : Path
        Path without suffix.
    variant : str
        Of the numbers, for the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """

    def draw() -> Canvas:
        figure, (errors, impact) = small_multiples(2, height=2.3)
        for place, (case, rows) in enumerate(curves.items()):
            thetas = [row["theta"] for row in rows]
            # The numbers are counted at these thresholds, the marks, and change somewhere between them: no slopes.
            style: dict[str, Any] = {
                "color": SERIES[place % len(SERIES)],
                "label": f"case {plain(case)}",
                "drawstyle": "steps-post",
                "marker": MARKERS[place % len(MARKERS)],
                "markersize": 4 if len(rows) <= _MOST_MARKED else 0,
                "clip_on": False,
            }
            errors.plot(thetas, [row["AOSE"] for row in rows], **style)
            impact.plot(thetas, [float("nan") if row["WI"] is None else row["WI"] for row in rows], **style)
        errors.set(title="Open-set errors (A-OSE)", ylabel="detections of known classes\non unknown objects")
        whole_numbers(errors)
        impact.set(title="Wilderness impact (WI)", ylabel="WI")
        for axes in (errors, impact):
            axes.set_xlabel("confidence threshold θ")
            axes.set_ylim(0, 1.05 * max(axes.get_ylim()[1], 1e-9))
        add_key(figure, [errors])
        set_title(figure, "Open-set error over the confidence threshold", variant and f"variant {variant}")
        return figure

    rows = [(case, *(row[name] for name in _COLUMNS)) for case, found in curves.items() for row in found]
    return save_figure(draw, stem, ("case", *_COLUMNS), rows)


REPORT = Report(
    "osod3",
    MEASURES,
    tables=_tables,
    drawings=_drawings,
    files=tuple(one.name for one in TABLES),
    figures=("open_set_error_*",),
    tidy=TABLES,
    places=("case", "variant"),
)
