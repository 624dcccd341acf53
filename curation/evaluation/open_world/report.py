"""How the results of the open-world evaluation show themselves: measures, tables, figures, leaderboard rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from curation.evaluation.measures import Better, Measure, Unit
from curation.evaluation.result import (
    Column,
    Data,
    Drawing,
    Report,
    Result,
    Scored,
    Table,
    across,
    inputs_table,
    order_table,
    stem_of,
    truth_digests,
)

DEFINITIONS: dict[str, str] = {
    "matching": "per class, by falling score, ties in input order; the profile says which object a detection takes",
    "mAP_prev, mAP_cur, mAP_both": "mean AP at IoU 0.5 in % over the classes of earlier tasks, of this task, of both; "
    "classes without objects are left out and named, a class without detections counts as 0",
    "num_unknown_gt": "N_u: unknown objects that count (not difficult; clean: not crowd either), once for each line of "
    "the image list",
    "AP_unknown": "AP of class unknown, in %",
    "TP_u, FN_u": "unknown objects found by a detection called unknown, and N_u - TP_u",
    "UR": "TP_u / N_u, in % (unknown recall, U-Recall)",
    "P_unknown": "TP_u / (TP_u + FP_u), in %; FP_u: detections called unknown that found none",
    "FN_u_star": "unknown objects that no detection called unknown found, with at least one detection of a known class "
    "on them, whatever its score, once for each line of the image list; detections that are true positives of a known "
    "object included",
    "FN_u_star_excl_known_tp": "the same without detections that are true positives of a known object",
    "UDR": "(TP_u + FN_u_star) / N_u, in % (unknown detection recall)",
    "UDP": "TP_u / (TP_u + FN_u_star), in % (unknown detection precision); UR = UDR * UDP",
    "A_OSE_detections": "detections of known classes on an unknown object, duplicates and true positives included: "
    "what the official code prints",
    "A_OSE_objects": "distinct unknown objects with a detection of a known class on them: what the paper's text says",
    "WI": "sum over known classes of detections on unknown objects / sum of TP + FP, each class at the first index "
    "whose recall is nearest to 0.8 (the official code; its denominator holds the open-set false positives); a class "
    "without objects is left out, and in variants of codes read at its first detection, as there",
    "WI_closed_set_denominator": "the same over TP + FP without false positives on unknown objects (Dhamija et al.)",
    "WI_at_recall": "WI at recalls 0.1 to 0.9; WI_curve: 0.01 to 1.00, both denominators",
    "on": "IoU of the profile's matching threshold with the object, whatever its other detections",
}
_RE_OWOD = "Revisiting Open World Object Detection"
_WI = f"{_RE_OWOD}, equation 1; recall 0.8 as in the code of Towards Open World Object Detection"
_A_OSE = "Miller et al., ICRA 2018"
_NO_UNKNOWN = "no unknown object counts in the task"


def _measure(
    key: str,
    name: str,
    unit: Unit,
    better: Better | None = None,
    *,
    source: str = _RE_OWOD,
    ranked: bool = False,
    of: str = "",
    undefined: str = _NO_UNKNOWN,
    **more: Any,
) -> Measure:
    formula = DEFINITIONS[of or key.partition("@")[0]]
    return Measure(
        key,
        name,
        formula,
        unit=unit,
        better=better,
        source=source,
        undefined=undefined,
        ranked=ranked,
        **more,
    )


_MAPS, _FOUND = "mAP_prev, mAP_cur, mAP_both", "TP_u, FN_u"
_NO_CLASSES = "no such class has objects"
MEASURES = (
    *(
        _measure(key, f"mean average precision, {of}", "%", "higher", of=_MAPS, undefined=_NO_CLASSES, ranked=True)
        for key, of in (
            ("mAP_both", "known classes"),
            ("mAP_prev", "previous classes"),
            ("mAP_cur", "current classes"),
        )
    ),
    _measure("UR", "unknown recall (U-Recall)", "%", "higher", ranked=True, count=("num_unknown_gt",)),
    _measure("UDR", "unknown detection recall", "%", "higher", ranked=True, count=("num_unknown_gt",)),
    _measure("UDP", "unknown detection precision", "%", "higher", ranked=True),
    _measure("A_OSE_objects", "absolute open-set error, objects", "count", "lower", ranked=True, source=_A_OSE),
    _measure("A_OSE_detections", "absolute open-set error, detections", "count", "lower", ranked=True, source=_A_OSE),
    _measure("WI", "wilderness impact at recall 0.8", "ratio", "lower", ranked=True, source=_WI),
    _measure(
        "WI_closed_set_denominator",
        "wilderness impact, closed-set denominator",
        "ratio",
        "lower",
        source="The Overlooked Elephant of Object Detection: Open Set",
    ),
    _measure(
        "WI_at_recall@{recall}",
        "wilderness impact",
        "ratio",
        "lower",
        source=f"{_RE_OWOD}, equation 1",
        paths=(("WI_at_recall", "{recall}"),),
    ),
    _measure("AP_unknown", "average precision of class unknown", "%", "higher"),
    _measure(
        "P_unknown",
        "precision of class unknown",
        "%",
        "higher",
        undefined="no detection called unknown counts",
    ),
    _measure("UDR_excl_known_tp", "UDR without known true positives", "%", "higher", of="FN_u_star_excl_known_tp"),
    _measure("UDP_excl_known_tp", "UDP without known true positives", "%", "higher", of="FN_u_star_excl_known_tp"),
    _measure("num_unknown_gt", "unknown objects", "count"),
    _measure("TP_u", "unknown objects found", "count", "higher", of=_FOUND),
    _measure("FN_u", "unknown objects missed", "count", "lower", of=_FOUND),
    _measure("FN_u_star", "unknown objects found as known", "count", "lower"),
    _measure("FN_u_star_excl_known_tp", "unknown objects found as known, true positives apart", "count", "lower"),
)
_RATES = (
    "mAP_prev", "mAP_cur", "mAP_both", "AP_unknown", "UR", "P_unknown", "UDR", "UDP", "UDR_excl_known_tp",
    "UDP_excl_known_tp",
)  # fmt: skip
_COUNTS = (
    "num_unknown_gt", "TP_u", "FN_u", "FN_u_star", "FN_u_star_excl_known_tp", "A_OSE_detections", "A_OSE_objects",
)  # fmt: skip
_POINTS = ("rank", "score", "recall", "kept", "kept_closed", "on_unknown")


def _scored(data: Data) -> Iterator[Scored]:
    manifest = data["manifest"]
    parts = dict(zip(data["inputs"], () if manifest is None else manifest["parts"], strict=False))
    for task, inputs in data["inputs"].items():
        for profile in data["profiles"]:
            section = data[f"{task}/{profile}"]
            settings = section["settings"]
            yield Scored(
                part=parts.get(task, task),
                task=task,
                variant=profile,
                numbers=section,
                method=stem_of(inputs["detections"]),
                truth=truth_digests(data, task) | {"task": data["tasks"][task]},
                predictions={task: inputs["detections"]},
                settings={"task": task, "repeats": settings["repeats"]},
                operating_point={"WI_recall": settings["WI_recall"], "iou": settings["iou"]},
            )


def _tables(result: Result) -> Iterator[Table]:
    data, sections = result.data, result.sections
    yield inputs_table(data)
    yield across(
        "Rates in %, WI at recall 0.8; FN_u_star with known true positives included unless named otherwise",
        sections,
        [
            *((name, "%", _taking(name)) for name in _RATES),
            *((name, "count", _taking(name)) for name in _COUNTS),
            *((name, "ratio", _taking(name)) for name in ("WI", "WI_closed_set_denominator")),
            *(
                (f"detections per image, {kind}", "mean", _taking("counts", "detections_per_image", kind))
                for kind in ("known", "unknown")
            ),
        ],
    )
    yield Table(
        "impact",
        (
            Column("section", head="task/profile"),
            Column("recall"),
            Column("WI", "ratio"),
            Column("never", "count", "never reached by"),
            Column("classes", head="classes (read at their highest recall)"),
        ),
        [
            (name, recall, value, len(never), ", ".join(never) or "-")
            for name, section in sections.items()
            for recall, value in section["WI_at_recall"].items()
            for never in (section["WI_curve"]["classes_never_reaching"][recall],)
        ],
        title="Wilderness impact",
    )
    yield Table(
        "metrics",
        (Column("task"), Column("profile"), Column("metric"), Column("value")),
        [row for section in sections.values() for row in _metric_rows(section)],
        file=True,
    )
    for name, section in sections.items():
        yield from _class_tables(name, section)
    yield order_table({name: section["decided_by_order"] for name, section in sections.items()})
    yield _classes_file(sections)
    yield _unknown_file(sections)
    yield Table(
        "wilderness_points",
        (Column("task"), Column("profile"), Column("class"), *map(Column, _POINTS)),
        lambda: _point_rows(sections, result.columns),
        file=True,
    )


def _taking(*path: str) -> Any:
    def take(section: Data) -> Any:
        found: Any = section
        for key in path:
            found = found[key]
        return found

    return take


def _class_tables(name: str, section: Data) -> Iterator[Table]:
    columns: tuple[Column, ...] = (
        Column("class"),
        Column("role"),
        Column("n", "count", "objects"),
        Column("detections", "count"),
        Column("AP", "%"),
        Column("tp", "count", "TP"),
        Column("fp", "count", "FP"),
        Column("ignored", "count"),
        Column("max_recall", "ratio", "max recall"),
        Column("on_unknown", "count", "on unknown"),
    )
    rows = [tuple(row[column.name] for column in columns) for row in section["classes"]]
    yield Table("", columns, rows, title=f"Classes, {name}: {section['profile_meaning']}")
    if section["unknown_per_class"]:
        columns = (
            Column("num_unknown_gt", "count", "objects"),
            Column("TP_u", "count"),
            Column("FN_u_star", "count"),
            *(Column(rate, "%") for rate in ("UR", "UDR", "UDP")),
            Column("A_OSE_objects", "count", "A-OSE objects"),
            Column("A_OSE_detections", "count", "A-OSE detections"),
        )
        rows = [
            (original, *(row[column.name] for column in columns))
            for original, row in section["unknown_per_class"].items()
        ]
        title = f"Unknown objects by original class, {name}"
        yield Table("", (Column("original class"), *columns), rows, title=title)


def _metric_rows(section: Data) -> Iterator[tuple[Any, ...]]:
    for name, value in section.items():
        if value is None or isinstance(value, int | float):
            yield section["task"], section["profile"], name, value
    for recall, value in section["WI_at_recall"].items():
        yield section["task"], section["profile"], f"WI_at_recall_{recall}", value


def _classes_file(sections: Data) -> Table:
    header = tuple(next(iter(sections.values()))["classes"][0])
    rows = [
        (section["task"], section["profile"], *row.values())
        for section in sections.values()
        for row in section["classes"]
    ]
    return Table("classes", tuple(map(Column, ("task", "profile", *header))), rows, file=True)


def _unknown_file(sections: Data) -> Table:
    rows = [
        (section["task"], section["profile"], original, metric, value)
        for section in sections.values()
        for original, row in (section["unknown_per_class"] or {}).items()
        for metric, value in row.items()
    ]
    header = ("task", "profile", "original_class", "metric", "value")
    return Table("unknown_classes", tuple(map(Column, header)), rows, file=True)


def _point_rows(sections: Data, columns: Mapping[str, Any]) -> Iterable[tuple[Any, ...]]:
    for name, section in sections.items():
        for known, points in columns[name]["WI_points"].items():
            for point in zip(*(points[key] for key in _POINTS), strict=True):
                yield section["task"], section["profile"], known, *point


def _drawings(result: Result) -> Iterator[Drawing]:
    from curation.evaluation.open_world.figures import impact_figure, unknown_figure

    for profile in dict.fromkeys(section["profile"] for section in result.sections.values()):
        tasks = {
            section["task"]: {**section, **result.columns[name]}
            for name, section in result.sections.items()
            if section["profile"] == profile and section["num_unknown_gt"]
        }
        missing = "" if tasks else f"no figures for profile {profile}: no task has unknown objects"
        for name, figure in (
            ("wilderness_impact", impact_figure),
            ("unknown_recall_precision", unknown_figure),
        ):
            yield Drawing(f"{name}_{profile}", partial(figure, tasks) if tasks else None, missing)
            # One figure tells what is missing for both.
            missing = ""


def report_as(protocol: str, *, more: tuple[Measure, ...] = (), algorithm: int = 1) -> Report:
    """Return how the results of open-world detection show themselves, under the name of a benchmark.

    Parameters
    ----------
    more : tuple of Measure
        What the benchmark reports besides, in the sections of its variants.
    """
    return Report(
        protocol,
        (*MEASURES, *more),
        _scored,
        _tables,
        _drawings,
        algorithm=algorithm,
        files=("metrics", "classes", "unknown_classes", "wilderness_points"),
        figures=("wilderness_impact_*", "unknown_recall_precision_*"),
    )
