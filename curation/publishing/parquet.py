"""Parquet files that two builds give alike, and the digest of what they say, whichever library wrote them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import PublicationMismatchError

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 50_000
"""Rows of a row group."""


def write_parquet(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> str:
    """Write tables as the row groups of one file, and return the digest of their content (see `content_digest`)."""
    from pyarrow import parquet

    rows = _ContentDigest(schema)
    # Bytes depend on the library's version alone: no clock, no thread count, no random name is in them.
    with parquet.ParquetWriter(path, schema, compression="zstd", version="2.6") as writer:
        for table in tables:
            rows.add(table)
            writer.write_table(table, row_group_size=_ROWS)
    return rows.digest


def content_digest(tables: Iterable[pa.Table], schema: pa.Schema) -> str:
    """Return ``sha256:…`` of columns and rows: the same whichever version of a library wrote the file.

    It is the digest of JSON lines: first a list of ``[name, type]``, then a list of values a row. Numbers are written
    as Python's ``repr`` gives them, keys of structures in their order, binary values as the hex digits of
    their SHA-256.
    """
    rows = _ContentDigest(schema)
    for table in tables:
        rows.add(table)
    return rows.digest


def read_parquet(path: Path) -> Iterator[pa.Table]:
    """Yield the row groups of a Parquet file; what is none raises `PublicationMismatchError`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PublicationMismatchError(
            "A table cannot be read as Parquet", where=str(path), found=" ".join(str(error).split())[:200]
        ) from None


def schema_of(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file; what is none raises `PublicationMismatchError`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PublicationMismatchError(
            "A table cannot be read as Parquet", where=str(path), found=" ".join(str(error).split())[:200]
        ) from None


class _ContentDigest:
    def __init__(self, schema: pa.Schema) -> None:
        self._sha256 = hashlib.sha256()
        self._line([[field.name, _type_name(field.type)] for field in schema])

    def add(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=1000):
            columns = [batch.column(number).to_pylist() for number in range(batch.num_columns)]
            for row in zip(*columns, strict=True):
                self._line(row)

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"

    def _line(self, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_hex)
        self._sha256.update(text.encode("utf-8") + b"\n")


def _type_name(kind: pa.DataType) -> str:
    """Return a type in words, without the name of list items, which is another in a file than in memory."""
    from pyarrow import types

    if types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{one.name}: {_type_name(one.type)}' for one in kind)}>"
    return str(kind)


def _hex(value: Any) -> str:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    raise TypeError(type(value).__name__)
