"""Tables that ``curation evaluate`` prints for several protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.cli.output import Table

Result = Mapping[str, Any]


def order_tables(records: Mapping[str, Result]) -> list[Table]:
    """Return a table of what the order of the detections decided, by section; no table where it decided nothing."""
    rows = tuple((name, record["note"]) for name, record in records.items() if record["note"])
    return [Table("Decided by input order", ("", ""), rows)] if rows else []


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
