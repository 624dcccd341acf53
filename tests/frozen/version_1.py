"""Results of rows as version 1 of their JSON had them, so that numbers frozen then are compared with those of today."""

from collections.abc import Iterator, Sequence
from typing import Any

from curation.benchmarks.elephant.measures import SHARED
from curation.benchmarks.elephant.measures import TABLES as ELEPHANT
from tests.evaluation import classification_rows, elephant_rows, findmeifyoucan_rows, image_ood_rows, osod3_rows
from tests.evaluation.open_world_rows import of_result

OPEN_WORLD = ("owod", "rwd", "nuowodb")
PLAIN = ("voc", "coco")
CLASSIFICATION = ("imagenet", "ssb")
IMAGE_OOD = ("openood", "ninco", "imagenetood")
IN_PERCENT = {
    "elephant": ("mAP11", "mAP_area", "mAP", "mAP11_ties_in_input_order"),
    "voc": ("mAP11", "mAP_area", "mAP11_ties_in_input_order"),
    "ovcoco": ("AP50_novel", "AP50_base", "AP50_all"),
    "coco": ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"),
}
"""Measures, and AP of classes with them, that are in percent today and were fractions of 1 in version 1."""
ROUNDED = {("ovcoco", "table:average_precision.0.AP50")} | {
    ("elephant", f"table:{name}")
    for name in (
        "average_precision.0.AP11",
        "average_precision.0.AP_area",
        *(f"levels.{k}.{column}" for k in range(4) for column in ("mAP11", "mAP_area", "mAP")),
        *(f"operating_points.{k}.AP11" for k in range(2)),
    )
}
"""Digests of columns that are in percent today: 100 x / 100 may differ from x in the last digit. The same numbers are
compared one by one in the JSON."""
TABLES = ("scored", "classes", "unknown_classes", "impact", "counts")
METRICS = (
    "mAP_prev", "mAP_cur", "mAP_both", "num_unknown_gt", "TP_u", "FN_u", "UR", "AOSE_objects", "FN_u_star", "UDR",
    "UDP", "FN_u_star_excl_known_tp", "UDR_excl_known_tp", "UDP_excl_known_tp", "AP_unknown", "P_unknown",
    "AOSE", "WI", "WI_closed_set_denominator", "decided_by_order",
)  # fmt: skip
Frozen = tuple[str, Sequence[str], list[tuple[Any, ...]]]
"""Name, columns and rows of a table."""


OPEN_WORLD_KEYS = {"AOSE": "A_OSE_detections", "AOSE_objects": "A_OSE_objects"}
WAS = {"osod3": {"AOSE": "A_OSE"}} | dict.fromkeys(OPEN_WORLD, OPEN_WORLD_KEYS)
"""Keys of measures today, and then."""


def renamed(value: Any, protocol: str) -> Any:
    """Return a tree with the keys and texts that measures went by."""
    if isinstance(value, dict):
        return {renamed(key, protocol): renamed(one, protocol) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(renamed(one, protocol) for one in value)
    return WAS.get(protocol, {}).get(value, value) if isinstance(value, str) else value


def json_data(result: Any) -> dict[str, Any]:
    """Return the JSON of a result as it was."""
    found: dict[str, Any] = renamed(of_json(result.json_data()), result.report.protocol)
    return found


def of_json(data: dict[str, Any]) -> dict[str, Any]:
    """Return the same of its JSON, measures by their keys of today."""
    data = data | {"schema": {"version": 1}}
    if data["protocol"] in PLAIN:
        return plain(data)
    if data["protocol"] in CLASSIFICATION:
        added = ("scored", "intervals", "variants", "known_classes_from", *classification_rows.TABLES)
        kept = {key: value for key, value in data.items() if key not in added}
        kept["inputs"] = {name: {"val": None} | files for name, files in data["inputs"].items()}
        return kept | classification_rows.of_result(data) | {"grids": data["variants"]}
    if data["protocol"] in IMAGE_OOD:
        return {key: value for key, value in data.items() if key != "scored"} | image_ood_rows.of_result(data)
    if data["protocol"] == "ovcoco":
        return ovcoco(data)
    if data["protocol"] == "elephant":
        return elephant(data)
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


RENAMED = {"AOSE": "A_OSE", "AOSE_objects": "A_OSE_objects"}
"""Measures of Elephant that had another key."""
ADDED = ("AOSE_owod", "AOSE_objects_owod")
"""Measures of Elephant that were numbers of a section."""


def elephant(data: dict[str, Any]) -> dict[str, Any]:
    gone = {one.name for one in (*ELEPHANT, *SHARED)} | {"scored", "decided_by_order"}
    kept = {key: value for key, value in data.items() if key not in gone}
    measures = [row | old_measure("elephant", row) for row in data["measures"] if row["measure"] not in ADDED]
    return {**kept, **elephant_rows.of_json(data), "profile": data["variant"], "measures": measures}


def old_measure(protocol: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return key and value of a row of measures as they were."""
    measure, value = row["measure"], row["value"]
    value = fraction(value) if measure in IN_PERCENT.get(protocol, ()) else value
    was = RENAMED.get(measure, measure) if protocol == "elephant" else renamed(measure, protocol)
    return {"measure": was, "value": value}


def elephant_tables(data: dict[str, Any]) -> Iterator[Frozen]:
    sections = {name: one for name, one in data.items() if isinstance(one, dict) and "n_wild_images" in one}
    for one in sections.values():
        flavours = [name for name in ("mAP11", "mAP_area", "mAP") if name in one]
        impacts = [found["macro"] if isinstance(found, dict) else found for found in one["WI"].values()]
        columns = [one[name] for name in ("levels", "n_wild_images", *flavours)]
        heads = ("ratio", "n_wild_images", *flavours, *(f"WI@{recall}" for recall in one["WI"]))
        yield "levels", heads, list(zip(*columns, *impacts, strict=True))
        yield "average_impact", AVERAGES, list(elephant_averages(one))
        if "thresholds" in one:
            closed, points = one["AP11"][one["levels"][0]], one["thresholds"]
            rows = [
                (name, n, closed[name], *(elephant_point(of_recall[name]) for of_recall in points.values()))
                for name, n in one["npos"].items()
            ]
            heads = ("class", "objects", "AP11", *(f"recall {recall}: threshold, TP, FP" for recall in points))
            yield "operating_points", heads, rows
    orders = {name.replace("_", " "): one["decided_by_order"] for name, one in sections.items()}
    gaps = sum(gap["decided_by_input_order"] for gap in (data["background_gap"] or {}).values())
    orders |= {"OWOD": data["owod"]["decided_by_order"], "background gap": gaps}
    yield "decided_by_order", ("section", "decisions"), [row for row in orders.items() if row[1]]
    points = ("F", "precision", "recall", "threshold", "TP", "FP", "n")
    rows = [
        (name, ratio, beta, *(point[key] for key in points))
        for name, by_ratio in data["fbeta"].items()
        for ratio, by_beta in by_ratio.items()
        for beta, point in by_beta.items()
    ]
    yield "fbeta", ("class", "ratio", "beta", *points), rows
    by_class = {name: one for name, one in sections.items() if "AP11" in one}
    if by_class:
        rows = [
            (name, level, known, ap, one["AP_area"][level][known])
            for name, one in by_class.items()
            for level, of_level in one["AP11"].items()
            for known, ap in of_level.items()
        ]
        yield "average_precision", ("section", "ratio", "class", "AP11", "AP_area"), rows
        rows = [
            (name, recall, known, *row)
            for name, one in by_class.items()
            for recall, impact in one["WI"].items()
            for known, values in impact["per_class"].items()
            if values is not None
            for row in zip(one["levels"], impact["fp_open"][known], values, strict=True)
        ]
        yield "wilderness_impact", ("section", "recall", "class", "ratio", "FP_o", "WI"), rows


AVERAGES = ("recall", "over_classes", "excl_level0", "incl_level0", "classes_left_out")


def elephant_averages(section: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for recall, average in section["AWI"].items():
        impact = section["WI"][recall]
        missing = grouped(impact["classes_left_out"]) if isinstance(impact, dict) else ""
        for reading, values in (average if "macro" in average else {"": average}).items():
            yield recall, reading, values["excl_level0"], values["incl_level0"], missing
            missing = ""


def grouped(left_out: dict[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for known, reason in left_out.items():
        by_reason.setdefault(reason, []).append(known)
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items()) or "none"


def elephant_point(point: dict[str, Any]) -> str:
    if point["threshold"] is None:
        return f"- ({point['reason']})"
    return f"{point['threshold']:.4g}, {point['TP_c']}, {point['FP_c']}"


def ovcoco(data: dict[str, Any]) -> dict[str, Any]:
    sections = {}
    for one in data["scored"]:
        measures, lists, classes = (
            [row for row in data[name] if all(row[key] == one[key] for key in ("case", "variant"))]
            for name in ("measures", "lists", "average_precision")
        )
        sections[f"{one['case']}/{one['variant']}"] = {
            **{row["measure"]: fraction(row["value"]) for row in measures},
            "AP50_per_class": {row["class"]: fraction(row["AP50"]) for row in classes},
            "lists": {
                row["list"]: {key: row[key] for key in ("images", "sha256", "objects", "crowd", "detections")}
                for row in lists
            },
            "decided_by_order": [row["decided_by_order"] for row in lists],
        }
    kept = {key: value for key, value in data.items() if key not in ("scored", "lists", "average_precision")}
    measures = [row | {"value": fraction(row["value"])} for row in data["measures"]]
    return {**kept, **sections, "measures": measures}


def ovcoco_tables(data: dict[str, Any]) -> Iterator[Frozen]:
    first = data["scored"][0]["variant"]
    lists, classes = ([row for row in data[name] if row["variant"] == first] for name in ("lists", "average_precision"))
    columns = ("setting", "images", "n", "digest", "objects", "detections")
    today = ("case", "list", "images", "sha256", "objects", "detections")
    yield "lists", columns, [tuple(row[key] for key in today) for row in lists]
    yield (
        "average_precision",
        ("setting", "class", "group", "AP50"),
        [(row["case"], row["class"], row["group"], fraction(row["AP50"])) for row in classes],
    )
    orders = [(f"{row['case']} {row['list']}", row["decided_by_order"]) for row in lists if row["decided_by_order"]]
    yield "decided_by_order", ("section", "decisions"), orders


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


def classification_tables(classifiers: dict[str, Any]) -> Iterator[Frozen]:
    yield "metrics", ("classifier", "part", "metric", "value"), list(classification_rows.metrics(classifiers))
    rows = [(name, row) for name, one in classifiers.items() for row in one["classes"]]
    rates = [f"ccr_at_fpr_{key.replace('.', '_', 1)}" for key in rows[0][1]["ccr_at_fpr"]]
    columns = ("class", "n", "accuracy", "mean_score")
    cells = [(name, *(row[key] for key in columns), *row["ccr_at_fpr"].values()) for name, row in rows]
    yield "classes", ("classifier", *columns, *rates), cells


def image_ood_tables(result: Any) -> Iterator[Frozen]:
    """Yield the tables of a single run without bootstrap as they were."""
    columns = ("list", "id", "variant", "set", "n_id", "n_ood", "AUROC", "FPR95", "AUPR_IN", "AUPR_OUT", "ACC")
    for table in result.tables:
        names = [column.name for column in table.columns]
        if table.name == "ood":
            places = [names.index(one) for one in columns]
            yield "ood", columns, [tuple(row[place] for place in places) for row in table.all_rows()]
        elif table.name != "intervals":
            yield table.name, names, [tuple(row) for row in table.all_rows()]


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
    for name, *content in _tables(result):
        yield name, *renamed(content, result.report.protocol)


def _tables(result: Any) -> Iterator[Frozen]:
    if result.report.protocol == "osod3":
        yield from osod3_tables(osod3(result.json_data()))
        return
    if result.report.protocol in CLASSIFICATION:
        yield from classification_tables(classification_rows.of_result(result.json_data())["classifiers"])
        return
    if result.report.protocol in IMAGE_OOD:
        yield from image_ood_tables(result)
        return
    if result.report.protocol == "elephant":
        yield from elephant_tables(elephant(result.json_data()))
        return
    if result.report.protocol == "ovcoco":
        yield from ovcoco_tables(result.json_data())
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
