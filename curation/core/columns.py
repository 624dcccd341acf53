"""Columns: conversion between NumPy and Arrow without pandas, distinct values, and the size of Parquet data in memory.

pyarrow's own conversions import pandas, which takes half a second in every worker. The size of a Parquet file in memory
is checked before it is read: 50 kB may hold one long text that many rows refer to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from pyarrow import parquet

Kind = TypeVar("Kind", bound=np.generic)


def distinct(values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """Return the values of a long array of whole numbers once each, ascending."""
    # With counts, every NumPy sorts; without, newer versions hash, which takes up to forty times as long.
    values, _ = np.unique(values, return_counts=True)
    return values


def encoded(texts: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """Return the position of each text of an Arrow array among the distinct texts, and these in order of appearance."""
    array = _in_one(texts).dictionary_encode()
    return values_of(array.indices).astype(np.int64), array.dictionary


def first_places(numbers: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Return the position at which each of the numbers 0 to n - 1 first occurs."""
    first = np.zeros(n, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def values_of(column: Any) -> Any:
    """Return an Arrow array of numbers or booleans as a NumPy array."""
    column = _in_one(column)
    is_boolean = str(column.type) == "bool"
    return np.from_dlpack(column.cast("uint8")).view(np.bool_) if is_boolean else np.from_dlpack(column)


def positions_of(column: Any) -> npt.NDArray[np.int32]:
    """Return an Arrow array of positions as a NumPy array, -1 for null."""
    from pyarrow import compute

    positions: npt.NDArray[np.int32] = values_of(compute.coalesce(column, arrow_of(np.array([-1]))[0])).astype(np.int32)
    return positions


def _in_one(column: Any) -> Any:
    """Return the chunks of a column as one array."""
    return column.combine_chunks() if hasattr(column, "chunks") else column


def arrow_of(values: Any) -> Any:
    """Return a NumPy array of row numbers, or a mask of rows, as an Arrow array."""
    import pyarrow

    is_boolean = values.dtype == np.bool_
    bits = np.packbits(values, bitorder="little") if is_boolean else np.ascontiguousarray(values, np.int64)
    kind = pyarrow.bool_() if is_boolean else pyarrow.int64()
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(bits)])


def text_array(texts: Collection[str]) -> Any:
    """Return texts as a large string array."""
    import pyarrow

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(encoded), buffers)


def checked_group(file: parquet.ParquetFile, number: int, columns: Sequence[int]) -> parquet.RowGroupMetaData:
    """Return the metadata of a row group after checking these columns; only they may be used.

    Arrow 26 aborts the process if `RowGroupMetaData.column` reads damaged metadata. Reading zero rows first raises an
    exception instead. Without columns, that reader would divide by zero.
    """
    if columns:
        next(file.reader.iter_batches(0, [number], list(columns), False), None)
    return file.metadata.row_group(number)


def text_columns(file: parquet.ParquetFile) -> list[str]:
    """Return the paths of the columns of texts and bytes, for the argument ``read_dictionary``."""
    columns = (file.metadata.schema.column(index) for index in range(file.metadata.num_columns))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def values_in(file: parquet.ParquetFile, number: int) -> int:
    """Return the number of values in all columns of a row group, at least its number of rows."""
    group = checked_group(file, number, range(file.metadata.num_columns))
    values = sum(group.column(index).num_values for index in range(group.num_columns))
    return max(int(values), int(group.num_rows))


def largest_text(folded: parquet.ParquetFile, number: int, texts: Sequence[str]) -> tuple[int, str]:
    """Return the size in bytes of the largest text column of a row group in memory, and its path.

    Parameters
    ----------
    folded : ParquetFile
        Opened with ``read_dictionary=texts``: repeated texts are stored once until their size is known.
    texts : sequence of str
        See `text_columns`.
    """
    sizes = ((sum(map(_unfolded, folded.read_row_group(number, [path]).columns)), path) for path in texts)
    return max(sizes, default=(0, ""))


def _unfolded(column: pa.ChunkedArray) -> int:
    """Return the size in bytes of the texts of a column, repeated texts included."""
    from pyarrow import compute, types

    size = 0
    for array in column.chunks:
        while types.is_list(array.type) or types.is_struct(array.type):
            array = array.flatten() if types.is_list(array.type) else array.flatten()[0]
        if types.is_dictionary(array.type):
            lengths = compute.binary_length(array.dictionary).cast("int64")
            size += compute.sum(lengths.take(array.indices)).as_py() or 0
        else:
            size += array.nbytes
    return size
