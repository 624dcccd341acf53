"""What ``curation evaluate`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.cli.output import Table, table_lines

Result = Mapping[str, Any]
_SHOWN_LEVELS = 6


def lines_of(result: Result) -> list[str]:
    """Return the tables of a result for the eye."""
    tables = [inputs_table(result), *_elephant_tables(result), *order_tables(_orders(result))]
    return [line for table in tables for line in table_lines(table)]


def order_tables(records: Mapping[str, Result]) -> list[Table]:
    """Return a table of what the order of the detections decided, by section; no table where it decided nothing."""
    rows = tuple((name, record["note"]) for name, record in records.items() if record["note"])
    return [Table("Decided by input order", ("", ""), rows)] if rows else []


def _orders(result: Result) -> dict[str, Result]:
    """Return the records of `curation.evaluation.input_order` in a result, by what they are of."""
    found = {name.replace("_", " "): section["input_order"] for name, section in sections_of(result).items()}
    gaps = sum(gap["decided_by_input_order"] for gap in (result["background_gap"] or {}).values())
    note = f"{gaps} objects: detections of equal score and different background score claim one object"
    return {
        **found,
        "OWOD": result["owod"]["input_order"],
        "background gap": {"note": note if gaps else None},
    }


def _elephant_tables(result: Result) -> list[Table]:
    tables = []
    for name, section in sections_of(result).items():
        tables.append(_levels(name, section))
        tables.append(_averages(name, section))
        if "thresholds" in section:
            tables.append(_operating_points(section))
    tables.append(_open_set(result))
    return tables


def _levels(name: str, section: Result) -> Table:
    """Return mAP and WI at a handful of levels, the last one included."""
    n = len(section["levels"])
    step = max(1, -(-n // _SHOWN_LEVELS))
    flavours = [flavour for flavour in ("mAP11", "mAP_area", "mAP") if flavour in section]
    impacts = {recall: _macro(impact) for recall, impact in section["WI"].items()}
    rows = [
        (
            section["levels"][k],
            str(section["n_wild_images"][k]),
            *(_percent(section[flavour][k]) for flavour in flavours),
            *(_number(values[k]) for values in impacts.values()),
        )
        for k in sorted({*range(0, n, step), n - 1})
    ]
    heads = ("ratio", "wilderness images", *flavours, *(f"WI at recall {recall}" for recall in impacts))
    kind = "macro WI" if "thresholds" in section else "WI of mean interpolated precision"
    return Table(f"Profile {name.replace('_', ' ')}: {kind}, mAP in %", heads, tuple(rows))


def _averages(name: str, section: Result) -> Table:
    rows = []
    for recall, average in section["AWI"].items():
        readings = average if "macro" in average else {"": average}
        impact = section["WI"][recall]
        missing = _grouped(impact["classes_left_out"]) if isinstance(impact, Mapping) else ""
        for reading, values in readings.items():
            rows.append(
                (recall, reading, _number(values["excl_level0"]), _number(values["incl_level0"]), missing)
            )
            missing = ""
    heads = ("recall", "over classes", "levels above 0", "with level 0", "classes left out")
    return Table(f"Average wilderness impact, {name.replace('_', ' ')}", heads, tuple(rows))


def _grouped(left_out: Mapping[str, str]) -> str:
    """Return the classes left out, by reason."""
    by_reason: dict[str, list[str]] = {}
    for known, reason in left_out.items():
        by_reason.setdefault(reason, []).append(known)
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items()) or "none"


def _operating_points(section: Result) -> Table:
    recalls = list(section["thresholds"])
    rows = tuple(
        (
            known,
            str(n),
            _percent(section["AP11"][section["levels"][0]][known]),
            *(_point(section["thresholds"][recall][known]) for recall in recalls),
        )
        for known, n in section["npos"].items()
    )
    heads = (
        "class",
        "objects",
        "AP11 closed",
        *(f"recall {recall}: threshold, TP, FP" for recall in recalls),
    )
    return Table("Operating points on the closed set", heads, rows)


def _open_set(result: Result) -> Table:
    owod, errors = result["owod"], result["a_ose"]
    rows = [
        ("unknown objects", str(owod["n_unknown"])),
        ("A-OSE, OWOD", f"{owod['AOSE_total']} detections on {owod['AOSE_instances']} unknown objects"),
        ("WI at recall 0.8, OWOD", _number(owod["WI"]["0.8"])),
    ]
    rows += [
        (f"A-OSE at recall {recall}", f"{found['total']} detections on {found['instances']} unknown objects")
        for recall, found in errors.items()
        if recall not in ("n_unknown", "all")
    ]
    for recall, sections in result["diagnosis"].items():
        for section, found in sections.items():
            if found is not None and found["shares"]["total"] is not None:
                shares = ", ".join(
                    f"{kind} {_percent(share)}" for kind, share in found["shares"]["total"].items()
                )
                rows.append((f"kept at recall {recall}, {section}, %", shares))
    return Table("Open-set errors", ("", ""), tuple(rows))


def inputs_table(result: Result) -> Table:
    """Return one row a file that the numbers rest on."""
    rows = []
    for part, inputs in result["inputs"].items():
        rows += [
            (part, "truth", record["name"], record["sha256"][:19], _reported(inputs["truth"]))
            for record in inputs["truth"]["files"]
        ]
        found = inputs["detections"]
        rows.append(
            (part, "detections", f"{found['name']} ({found['rows']})", found["sha256"][:19], _reported(found))
        )
    if result["manifest"] is not None:
        manifest = result["manifest"]
        rows.append(
            ("", "manifest", f"{manifest['name']} {manifest['version']}", manifest["digest"][:19], "")
        )
    title = f"Inputs; known classes from {result['known_classes_from']}"
    return Table(title, ("part", "", "file", "digest", "reported"), tuple(rows))


def _reported(record: Result) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in record["reported"].items())


def sections_of(result: Result) -> dict[str, Any]:
    """Return the sections that hold one reading of the metrics each, by name."""
    return {
        name: result[name]
        for name in result
        if isinstance(result[name], Mapping) and "n_wild_images" in result[name]
    }


def _macro(impact: Any) -> Any:
    return impact["macro"] if isinstance(impact, Mapping) else impact


def _point(point: Result) -> str:
    if point["threshold"] is None:
        return f"- ({point['reason']})"
    return f"{point['threshold']:.4g}, {point['TP_c']}, {point['FP_c']}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
