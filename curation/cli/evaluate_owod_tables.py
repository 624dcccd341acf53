"""What ``curation evaluate owod`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.cli.evaluate_tables import inputs_table, order_tables
from curation.cli.output import Table, table_lines

Result = Mapping[str, Any]

_RATES = (
    "mAP_prev", "mAP_cur", "mAP_both", "AP_unknown", "UR", "P_unknown", "UDR", "UDP", "UDR_excl_known_tp",
    "UDP_excl_known_tp",
)  # fmt: skip
_COUNTS = (
    "num_unknown_gt", "TP_u", "FN_u", "FN_u_star", "FN_u_star_excl_known_tp", "A_OSE_detections", "A_OSE_objects",
)  # fmt: skip


def owod_lines(result: Result, sections: Result) -> list[str]:
    """Return the tables of a result for the eye."""
    tables = [inputs_table(result), _numbers(sections), _impact(sections)]
    for name, section in sections.items():
        tables.append(_classes(name, section))
        if section["unknown_per_class"]:
            tables.append(_unknown_classes(name, section["unknown_per_class"]))
    tables += order_tables({name: section["input_order"] for name, section in sections.items()})
    return [line for table in tables for line in table_lines(table)]


def _numbers(sections: Result) -> Table:
    rows = [(name, *(_percent(section[name]) for section in sections.values())) for name in _RATES]
    rows += [(name, *(_count(section[name]) for section in sections.values())) for name in _COUNTS]
    rows += [
        (name, *(_number(section[name]) for section in sections.values()))
        for name in ("WI", "WI_closed_set_denominator")
    ]
    rows += [
        (
            f"detections per image, {kind}",
            *(_mean(section["counts"]["detections_per_image"][kind]) for section in sections.values()),
        )
        for kind in ("known", "unknown")
    ]
    title = (
        "Rates in %, WI at recall 0.8; FN_u_star with known true positives included unless named otherwise"
    )
    return Table(title, ("", *sections), tuple(rows))


def _impact(sections: Result) -> Table:
    rows = []
    for name, section in sections.items():
        for recall, value in section["WI_at_recall"].items():
            never = section["WI_curve"]["classes_never_reaching"][recall]
            rows.append((name, recall, _number(value), str(len(never)), ", ".join(never) or "-"))
    return Table(
        "Wilderness impact",
        ("task/profile", "recall", "WI", "never reached by", "classes (read at their highest recall)"),
        tuple(rows),
    )


def _classes(name: str, section: Result) -> Table:
    rows = tuple(
        (
            row["class"],
            row["role"],
            str(row["n"]),
            str(row["detections"]),
            _percent(row["AP"]),
            _count(row["tp"]),
            _count(row["fp"]),
            _count(row["ignored"]),
            _number(row["max_recall"]),
            _count(row["on_unknown"]),
        )
        for row in section["classes"]
    )
    heads = (
        "class",
        "role",
        "objects",
        "detections",
        "AP",
        "TP",
        "FP",
        "ignored",
        "max recall",
        "on unknown",
    )
    return Table(f"Classes, {name}: {section['profile_meaning']}", heads, rows)


def _unknown_classes(name: str, by_class: Result) -> Table:
    rows = tuple(
        (
            original,
            str(row["num_unknown_gt"]),
            str(row["TP_u"]),
            str(row["FN_u_star"]),
            *(_percent(row[rate]) for rate in ("UR", "UDR", "UDP")),
            str(row["A_OSE_objects"]),
            str(row["A_OSE_detections"]),
        )
        for original, row in by_class.items()
    )
    heads = (
        "original class", "objects", "TP_u", "FN_u_star", "UR", "UDR", "UDP", "A-OSE objects", "A-OSE detections",
    )  # fmt: skip
    return Table(f"Unknown objects by original class, {name}", heads, rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
