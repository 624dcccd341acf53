"""Results of rows as version 1 of their JSON had them, so that numbers frozen then are compared with those of today."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.evaluation.open_world_rows import of_result

OPEN_WORLD = ("owod", "rwd", "nuowodb")
TABLES = ("scored", "classes", "unknown_classes", "impact", "counts")
METRICS = (
    "mAP_prev", "mAP_cur", "mAP_both", "num_unknown_gt", "TP_u", "FN_u", "UR", "A_OSE_objects", "FN_u_star", "UDR",
    "UDP", "FN_u_star_excl_known_tp", "UDR_excl_known_tp", "UDP_excl_known_tp", "AP_unknown", "P_unknown",
    "A_OSE_detections", "WI", "WI_closed_set_denominator", "decided_by_order",
)  # fmt: skip
Frozen = tuple[str, Sequence[str], list[tuple[Any, ...]]]
"""Name, columns and rows of a table."""


def json_data(result: Any) -> dict[str, Any]:
    """Return the JSON of a result as it was."""
    data: dict[str, Any] = result.json_data() | {"schema": {"version": 1}}
    if result.report.protocol not in OPEN_WORLD:
        return data
    kept = {key: value for key, value in data.items() if key not in TABLES}
    return {**kept, **{name: open_world(section) for name, section in of_result(data).items()}}


def open_world(section: dict[str, Any]) -> dict[str, Any]:
    rates = {f"detections_per_image_{kind}" for kind in ("all", "known", "unknown")}
    curve = section["WI_curve"]
    originals = section["unknown_per_class"] or {}
    return section | {
        "classes": [{key: row[key] for key in row if key not in ("task", "variant", "left_out")}
                    for row in section["classes"]],
        "unknown_per_class": {
            name: {key: row[key] for key in METRICS if key in row}
            for name, row in originals.items()
        } or None,
        "WI_curve": {key: curve[key] for key in curve if key not in ("task", "variant", "never_reached_by")}
        | {"classes": curve["classes"][0]},
        "counts": {key: value for key, value in section["counts"].items() if key not in rates},
    }  # fmt: skip


def tables(result: Any) -> Iterator[Frozen]:
    """Yield the tables of a result as they were."""
    own = result.report.protocol in OPEN_WORLD
    if own:
        yield from open_world_tables(of_result(result.json_data()))
    for table in result.tables:
        columns = [
            {"variant": "profile"}.get(column.name, column.name) if own else column.name for column in table.columns
        ]
        if own and table.name not in ("classes", "wilderness_points", "decided_by_order"):
            continue
        added = columns.index("left_out") if own and "left_out" in columns else len(columns)
        yield table.name, columns[:added], [tuple(row)[:added] for row in table.all_rows()]


def open_world_tables(sections: dict[str, Any]) -> Iterator[Frozen]:
    yield (
        "impact",
        ("section", "recall", "WI", "never", "classes"),
        [
            (name, recall, value, len(never), ", ".join(never) or "-")
            for name, section in sections.items()
            for recall, value in section["WI_at_recall"].items()
            for never in (section["WI_curve"]["classes_never_reaching"][recall],)
        ],
    )
    places = {name: tuple(name.split("/")) for name in sections}
    yield (
        "metrics",
        ("task", "profile", "metric", "value"),
        [
            (*places[name], metric, value)
            for name, section in sections.items()
            for metric, value in [
                *((key, section[key]) for key in (*METRICS, *(key for key in section if key[:3] in ("P50", "R50")))),
                *((f"WI_at_recall_{recall}", value) for recall, value in section["WI_at_recall"].items()),
            ]
        ],
    )
    yield (
        "unknown_classes",
        ("task", "profile", "original_class", "metric", "value"),
        [
            (*places[name], original, metric, value)
            for name, section in sections.items()
            for original, row in (open_world(section)["unknown_per_class"] or {}).items()
            for metric, value in row.items()
        ],
    )
