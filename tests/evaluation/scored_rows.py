"""What a result scored, read back from its JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from curation.evaluation.measures import Measured, Scored, Value
from curation.evaluation.result import PLACES, RECORDED


def scored_of(data: Mapping[str, Any]) -> Iterator[Scored]:
    yield from (_again(data, record) for record in data["scored"])


def _again(data: Mapping[str, Any], record: Mapping[str, Any]) -> Scored:
    """Return what was scored, with its numbers as rows, as the JSON of a result has it."""
    values = [
        Value(
            row["measure"],
            row["value"],
            dict(pair.split("=", 1) for pair in filter(None, row["parameters"].split(", "))),
            row["n"],
            row["undefined"],
        )
        for row in data["measures"]
        if all(row[place] == record[place] for place in PLACES)
    ]
    found = Measured(values, {}, record["notes"])
    return Scored(**{name: record[name] for name in RECORDED}, found=found)
