"""Results of rows as version 1 of their JSON had them, so that numbers frozen then are compared with those of today."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.evaluation import findmeifyoucan_rows, osod3_rows
from tests.evaluation.open_world_rows import of_result

OPEN_WORLD = ("owod", "rwd", "nuowodb")
PLAIN = ("voc", "coco")
IN_PERCENT = {
    "voc": ("mAP11", "mAP_area", "mAP11_ties_in_input_order"),
    "coco": ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"),
}
"""Measures, and AP of classes with them, that are in percent today and were fractions of 1 in version 1."""
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
    return of_json(result.json_data())


def of_json(data: dict[str, Any]) -> dict[str, Any]:
    """Return the same of its JSON."""
    data = data | {"schema": {"version": 1}}
    if data["protocol"] in PLAIN:
        return plain(data)
    if data["protocol"] == "osod3":
        added = ("scored", "thresholds", "average_precision", "counts", "known_classes_from", "manifest",
                 "taxonomies", "outside", "variants")  # fmt: skip
        kept = {key: value for key, value in data.items() if key not in added}
        return {**kept, "cases": osod3(data), "profiles": data["variants"]}
    if data["protocol"] == "findmeifyoucan":
        return findmeifyoucan(data)
    if data["protocol"] not in OPEN_WORLD:
        return data
    kept = {key: value for key, value in data.items() if key not in TABLES}
    return {**kept, **{name: open_world(section) for name, section in of_result(data).items()}}


def findmeifyoucan(data: dict[str, Any]) -> dict[str, Any]:
    added = ("scored", "details", "intervals", "known_classes_from", "variants", "bootstrap")
    kept = {key: value for key, value in data.items() if key not in added}
    sections = findmeifyoucan_rows.of_result(data)
    return {**kept, **(next(iter(sections.values())) if len(sections) == 1 else {}), "results": sections}


def findmeifyoucan_tables(data: dict[str, Any]) -> Iterator[Frozen]:
    sections = findmeifyoucan_rows.of_result(data)
    orders = [
        (f"{name}, {variant}", one[variant]["decided_by_order"])
        for name, one in sections.items()
        for variant in ("official", "paper")
        if one.get(variant) and one[variant]["decided_by_order"]
    ]
    yield "decided_by_order", ("section", "decisions"), orders
    yield "notes", ("result", "note"), [(name, note) for name in sections for note in data["scored"][0]["notes"]]
    columns = ("split", "score", "profile", "metric", "value")
    yield "metrics", columns, list(findmeifyoucan_rows.metrics(sections))


def osod3(data: dict[str, Any]) -> dict[str, Any]:
    (outside,) = data["outside"].values()
    return {
        case: {**section, "taxonomy": data["taxonomies"][case], "outside": outside}
        for case, section in osod3_rows.of_result(data).items()
    }


def osod3_tables(cases: dict[str, Any]) -> Iterator[Frozen]:
    averages = ("AP_known", "AP_known50", "AP_known75", "AP_unk", "AP_unk50", "AP_unk75")
    curves = [(case, name, rows) for case, one in cases.items() for name, rows in one["curves"].items()]
    yield (
        "cases",
        ("case", "problem", *averages),
        [(case, one["taxonomy"], *(one[name] for name in averages)) for case, one in cases.items()],
    )
    for _, _, rows in curves:
        yield "curve", osod3_rows.CURVE, [tuple(row.values()) for row in rows]
    orders = [(f"{case}, {name}", n) for case, one in cases.items() for name, n in one["decided_by_order"].items() if n]
    yield "decided_by_order", ("section", "decisions"), orders
    yield (
        "average_precision",
        ("case", "class", "AP"),
        [
            (case, name, value)
            for case, one in cases.items()
            for name, value in [*((key, one[key]) for key in averages), *one["AP_per_class"].items()]
        ],
    )
    points = [(case, name, *row.values()) for case, name, rows in curves for row in rows]
    yield "thresholds", ("case", "profile", *osod3_rows.CURVE), points


def fraction(value: float | None) -> float | None:
    return None if value is None else value / 100


def plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of plain detection as they were, by name and class."""
    name, (scored,), rows = data["protocol"], data["scored"], data["average_precision"]
    of_classes = {"voc": ("AP11", "AP_area"), "coco": ("AP",)}[name]
    columns = {key: {row["class"]: fraction(row[key]) for row in rows} for key in of_classes}
    if name == "voc":
        columns["npos"] = {row["class"]: row["objects"] for row in rows}
        columns["n_detections"] = {row["class"]: row["detections"] for row in rows}
    measures = [row | {"value": fraction(row["value"])} for row in data["measures"]]
    kept = {key: value for key, value in data.items() if key not in ("scored", "average_precision")}
    return {
        **kept,
        **{row["measure"]: row["value"] for row in measures},
        **{"per_class" if key == "AP" else key: value for key, value in columns.items()},
        "decided_by_order": scored["decided_by_order"],
        "undefined": {row["measure"]: row["undefined"] for row in measures if row["undefined"]}
        | {row["class"]: row["undefined"] for row in rows if row.get("undefined")},
        "measures": measures,
    }


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


def plain_tables(result: Any) -> Iterator[Frozen]:
    """Yield the tables of plain detection as they were, in fractions of 1."""
    from curation.evaluation.coco_engine import STATISTICS

    for table in result.tables:
        columns = [column.name for column in table.columns if column.name != "undefined"]
        if table.name == "average_precision":
            rates = [name.startswith("AP") for name in columns]
            rows = [tuple(row)[: len(columns)] for row in table.all_rows()]
            rows = [tuple(fraction(v) if rate else v for v, rate in zip(row, rates, strict=True)) for row in rows]
            yield table.name, columns, rows
        elif table.name != "against":
            yield table.name, columns, [tuple(row) for row in table.all_rows()]
    if result.report.protocol == "coco":
        rows = [(name, fraction(result[name]), text) for name, text in STATISTICS.items()]
        yield "summary", ("measure", "value", "meaning"), rows


def tables(result: Any) -> Iterator[Frozen]:
    """Yield the tables of a result as they were."""
    if result.report.protocol == "osod3":
        yield from osod3_tables(osod3(result.json_data()))
        return
    if result.report.protocol == "findmeifyoucan":
        yield from findmeifyoucan_tables(result.json_data())
        return
    own = result.report.protocol in OPEN_WORLD
    if result.report.protocol in PLAIN:
        yield from plain_tables(result)
        return
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
