"""Parquet files that two builds give alike, and the digest of what they say, whichever library wrote them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from curation.core.canonical import sha256_of_value
from curation.core.columns import largest_text, text_columns, values_in
from curation.core.errors import PublicationMismatchError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

_ROWS = 50_000
"""Rows of a row group."""
MAX_VALUES = 1 << 27
MAX_BYTES = 4 << 30
"""What one row group may unfold to: values of all its columns, and bytes. A file of 50 kB can hold one long text in a
dictionary, and name it a million times."""


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a repository.

    Attributes
    ----------
    config, split : str
    schema : pyarrow.Schema
    rows : callable
        Gives the table piece by piece.
    filled : tuple of str
        Columns that hold anything.
    empty : bool
        Without a row: `datasets` loads no split that has none, and no config with one, so no config names it.
    """

    config: str
    split: str
    schema: pa.Schema
    rows: Callable[[], Iterable[pa.Table]]
    filled: tuple[str, ...]
    empty: bool = False

    @property
    def path(self) -> str:
        """Where it lies in the repository."""
        return f"data/{self.config}/{self.split}.parquet"

    def filled_schema(self) -> pa.Schema:
        """Return the columns that hold anything."""
        import pyarrow as pa

        return pa.schema([field for field in self.schema if field.name in self.filled])


def write_parquet(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> str:
    """Write tables as the row groups of a file, and return the digest of their content (see `table_digest`)."""
    from pyarrow import parquet

    rows = _ContentDigest(schema)
    # Bytes depend on the library's version alone: no clock, no thread count, no random name is in them.
    with parquet.ParquetWriter(path, schema, compression="zstd", version="2.6") as writer:
        for table in tables:
            rows.add(table)
            # `datasets` reads in batches of the first row group's rows, and fails where these are none.
            if len(table):
                writer.write_table(table, row_group_size=_ROWS)
    return rows.digest


def table_digest(tables: Iterable[pa.Table], schema: pa.Schema) -> str:
    """Return ``sha256:…`` of columns and rows: the same whichever version of a library wrote the file.

    It is the digest of the canonical JSON ``{"columns": [[name, type], …], "data": [[path, sha256], …], "rows": n}``.
    Of each column, and of the items of lists (``objects[]``) and fields of structures (``objects[].bbox``) in it,
    ``data`` has the SHA-256 of ``valid`` (a byte a value: 1, or 0 for null), of ``lengths`` (64-bit integers) of lists
    and texts, and of ``values``: texts and bytes joined, numbers little-endian, flags as bytes, 0 for null.

    Raises
    ------
    PublicationMismatchError
        A column has a type that no publication has.
    """
    rows = _ContentDigest(schema)
    for table in tables:
        rows.add(table)
    return rows.digest


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the row groups of a Parquet file.

    Parameters
    ----------
    columns : sequence of str, optional
        Those to read; by default all.

    Raises
    ------
    PublicationMismatchError
        It is none, or a row group would unfold to more than `MAX_VALUES` or `MAX_BYTES`.
    """
    from pyarrow import parquet

    with _readable(path), parquet.ParquetFile(path) as file:
        texts = text_columns(file)
        with parquet.ParquetFile(path, read_dictionary=texts) as folded:
            for number in range(file.num_row_groups):
                _require_bounded(folded, number, texts, path)
                piece = file.read_row_group(number, columns)
                piece.validate(full=True)
                yield piece


def schema_of(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file; what is none raises `PublicationMismatchError`."""
    from pyarrow import parquet

    with _readable(path):
        return parquet.read_schema(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PublicationMismatchError(
            "A table cannot be read as Parquet", where=str(path), found=" ".join(str(error).split())[:200]
        ) from None


def _require_bounded(file: parquet.ParquetFile, number: int, texts: Sequence[str], where: Path) -> None:
    """Raise `PublicationMismatchError` for a row group that would fill the memory; texts stay folded until then."""
    values = values_in(file, number)
    if values > MAX_VALUES:
        _refuse_bomb(where, f"{MAX_VALUES:,} values", f"{values:,}")
    size, path = largest_text(file, number, texts)
    if size > MAX_BYTES:
        _refuse_bomb(where, f"{MAX_BYTES:,} bytes", f"{size:,} in {path[:60]}")


def _refuse_bomb(where: Path, expected: str, found: str) -> NoReturn:
    raise PublicationMismatchError(
        "A row group of a table would unpack to more than a publication may hold",
        where=str(where),
        expected=f"at most {expected}",
        found=ascii(found)[1:-1],
    )


class _ContentDigest:
    def __init__(self, schema: pa.Schema) -> None:
        self._columns = [[field.name, _type_name(field.type)] for field in schema]
        self._hashes: dict[str, Any] = {}
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        self._rows += len(table)
        for batch in table.to_batches():
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                self._array(name, column)

    @property
    def digest(self) -> str:
        data = [[path, digest.hexdigest()] for path, digest in sorted(self._hashes.items())]
        return sha256_of_value({"columns": self._columns, "data": data, "rows": self._rows})

    def _array(self, path: str, array: pa.Array) -> None:
        from pyarrow import compute, types

        kind = array.type
        self._hash(f"{path} valid", _numbers(array.is_valid()))
        if types.is_list(kind):
            self._hash(f"{path} lengths", _numbers(compute.list_value_length(array)).astype("<i8"))
            self._array(f"{path}[]", array.flatten())
        elif types.is_struct(kind):
            # Flattening passes the nulls of structures on to their fields.
            for field, values in zip(kind, array.flatten(), strict=True):
                self._array(f"{path}.{field.name}", values)
        elif types.is_string(kind) or types.is_binary(kind):
            self._hash(f"{path} lengths", _numbers(compute.binary_length(array)).astype("<i8"))
            self._hash(f"{path} values", b"".join(array.cast("binary").drop_null().to_pylist()))
        else:
            self._hash(f"{path} values", _numbers(array))

    def _hash(self, path: str, data: Any) -> None:
        self._hashes.setdefault(path, hashlib.sha256()).update(data)


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Return numbers little-endian, and flags as bytes, 0 for null."""
    from pyarrow import types

    plain = array.cast("uint8") if types.is_boolean(array.type) else array
    values: npt.NDArray[Any] = plain.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))


def _type_name(kind: pa.DataType) -> str:
    """Return a type in words, without the name of list items, which is another in a file than in memory."""
    from pyarrow import types

    if types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {_type_name(field.type)}' for field in kind)}>"
    plain = (types.is_string, types.is_binary, types.is_boolean, types.is_integer, types.is_floating)
    if not any(is_kind(kind) for is_kind in plain):
        raise PublicationMismatchError(
            "A table has a column of a type that no publication has", found=ascii(str(kind)[:100])[1:-1]
        )
    return str(kind)
