"""Results in version 1 of their JSON, in which the golden values are stored."""

from typing import Any

from curation.benchmarks.elephant.measures import SHARED
from curation.benchmarks.elephant.measures import TABLES as ELEPHANT
from tests.evaluation import classification_rows, elephant_rows, findmeifyoucan_rows, osod3_rows
from tests.evaluation.open_world_rows import of_result
from tests.extensions.image_ood import image_ood_rows

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
TABLES = ("scored", "classes", "unknown_classes", "impact", "counts")
METRICS = (
    "mAP_prev", "mAP_cur", "mAP_both", "num_unknown_gt", "TP_u", "FN_u", "UR", "AOSE_objects", "FN_u_star", "UDR",
    "UDP", "FN_u_star_excl_known_tp", "UDR_excl_known_tp", "UDP_excl_known_tp", "AP_unknown", "P_unknown",
    "AOSE", "WI", "WI_closed_set_denominator",
)  # fmt: skip
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
    gone = {one.name for one in (*ELEPHANT, *SHARED)} | {"scored"}
    kept = {key: value for key, value in data.items() if key not in gone}
    measures = [row | old_measure("elephant", row) for row in data["measures"] if row["measure"] not in ADDED]
    return {**kept, **elephant_rows.of_json(data), "profile": data["variant"], "measures": measures}


def old_measure(protocol: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return key and value of a row of measures as they were."""
    measure, value = row["measure"], row["value"]
    value = fraction(value) if measure in IN_PERCENT.get(protocol, ()) else value
    was = RENAMED.get(measure, measure) if protocol == "elephant" else renamed(measure, protocol)
    return {"measure": was, "value": value}


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
        }
    kept = {key: value for key, value in data.items() if key not in ("scored", "lists", "average_precision")}
    measures = [row | {"value": fraction(row["value"])} for row in data["measures"]]
    return {**kept, **sections, "measures": measures}


def findmeifyoucan(data: dict[str, Any]) -> dict[str, Any]:
    added = ("scored", "details", "intervals", "known_classes_from", "variants", "bootstrap")
    kept = {key: value for key, value in data.items() if key not in added}
    sections = findmeifyoucan_rows.of_result(data)
    return {**kept, **(next(iter(sections.values())) if len(sections) == 1 else {}), "results": sections}


def osod3(data: dict[str, Any]) -> dict[str, Any]:
    (outside,) = data["outside"].values()
    return {
        case: {**section, "taxonomy": data["taxonomies"][case], "outside": outside}
        for case, section in osod3_rows.of_result(data).items()
    }


def fraction(value: float | None) -> float | None:
    return None if value is None else value / 100


def plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of plain detection as they were, by name and class."""
    name, rows = data["protocol"], data["average_precision"]
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
