"""An example row of a publication, and a photo of each role by its address, read from the tables as written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.publishing.tables import COLUMNS, IMAGE_URL, PlannedTable

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 2000
"""Rows of a table that are looked at, from its beginning."""
_LONGEST = 160
_MOST_ITEMS = 2


@dataclass(frozen=True, slots=True)
class ExampleColumn:
    """One column of the tables: type, meaning, and its value in the example row (``""`` for null)."""

    name: str
    kind: str
    meaning: str
    value: str


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A row of a table, column by column."""

    config: str
    split: str
    columns: tuple[ExampleColumn, ...]


@dataclass(frozen=True, slots=True)
class ExamplePhoto:
    """A photo on the web whose only role is this one, or that shows more of it than others."""

    role: str
    image_id: str
    url: str
    classes: tuple[str, ...]


def example_row(tables: Sequence[PlannedTable], folder: Path) -> ExampleRow | None:
    """Return a row of the table that fills most columns: the first with labels and an address where there are such.

    None where no table has a row.
    """
    chosen = sorted((one for one in tables if not one.empty), key=lambda one: -len(one.filled))
    for table in chosen[:1]:
        names = [name for name in table.schema.names if name != "image"]
        rows = _first_rows(folder / table.path, names)
        fields = [name for name in (IMAGE_URL, "objects", "labels") if name in table.filled]
        row = max(rows, key=lambda row: sum(bool(row[name]) for name in fields))
        columns = tuple(
            ExampleColumn(field.name, _kind(field.type), COLUMNS.get(field.name, ""), _cell(field.name, row))
            for field in table.schema
        )
        return ExampleRow(table.config, table.split, columns)
    return None


def example_photos(tables: Iterable[PlannedTable], folder: Path, config: str) -> list[ExamplePhoto]:
    """Return a photo of each role that a config's tables name addresses of, in the order in which roles are found.

    It is the photo in which an object of the role is largest, among those that show no other role where there are such.
    """
    best: dict[str, tuple[tuple[Any, ...], ExamplePhoto]] = {}
    for table in tables:
        if table.config == config and not table.empty and IMAGE_URL in table.filled:
            names = ["image_id", IMAGE_URL, "width", "height", "roles", "objects", "labels"]
            for row in _first_rows(folder / table.path, names):
                if row[IMAGE_URL]:
                    for rank, photo in _candidates(row):
                        if photo.role not in best or rank < best[photo.role][0]:
                            best[photo.role] = (rank, photo)
    return [photo for _, photo in best.values()]


def _candidates(row: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], ExamplePhoto]]:
    shown = [one for one in row["objects"] or row["labels"] or () if not one["ignore"]]
    size = (row["width"] or 0) * (row["height"] or 0)
    for role in sorted({one["role"] for one in shown}):
        own = [one for one in shown if one["role"] == role]
        largest = max((one["bbox"][2] * one["bbox"][3] / size for one in own if size and "bbox" in one), default=0.0)
        classes = tuple(dict.fromkeys(one["category"] for one in own))
        rank = (len(row["roles"]) > 1, -largest, row["image_id"])
        yield rank, ExamplePhoto(role, row["image_id"], row[IMAGE_URL], classes)


def _first_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        batch = next(file.iter_batches(_ROWS, columns=list(columns)), None)
        rows: list[dict[str, Any]] = [] if batch is None else batch.to_pylist()
        return rows


def _kind(kind: pa.DataType) -> str:
    from pyarrow import types

    if types.is_list(kind):
        return f"list of {_kind(kind.value_type)}s".replace("photos", "records")
    if types.is_struct(kind):
        return "photo"
    return "text" if types.is_string(kind) else "number" if types.is_integer(kind) else str(kind)


def _cell(name: str, row: Mapping[str, Any]) -> str:
    return _shown(row[name]) if name in row else "a picture"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    items = value[:_MOST_ITEMS] if isinstance(value, list) else value
    text = json.dumps(items, ensure_ascii=False)
    more = len(value) - len(items) if isinstance(value, list) else 0
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{text} and {more} more" if more else text
