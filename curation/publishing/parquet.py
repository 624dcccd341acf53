"""Parquet files that two builds write with the same bytes, and a reader that no file makes unpack without bound."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

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
    """Write tables as the row groups of a file.

    Returns
    -------
    str
        ``sha256:…`` of the names of the columns and of the rows as JSON, each on a line: the same whichever version of
        pyarrow writes the file.
    """
    from pyarrow import parquet

    encoder = msgspec.json.Encoder()
    digest = hashlib.sha256(encoder.encode(schema.names) + b"\n")
    # Bytes depend on the library's version alone: no clock, no thread count, no random name is in them.
    with parquet.ParquetWriter(path, schema, compression="zstd", version="2.6") as writer:
        for table in tables:
            for batch in table.to_batches():
                digest.update(encoder.encode_lines(batch.to_pylist()))
            # `datasets` reads in batches of the first row group's rows, and fails where these are none.
            if len(table):
                writer.write_table(table, row_group_size=_ROWS)
    return f"sha256:{digest.hexdigest()}"


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
