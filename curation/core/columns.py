"""Columns: NumPy arrays as Arrow's and back without pandas, distinct values, and what a Parquet file would unfold to.

pyarrow's own ways between the two import pandas, half a second in every worker. Parquet files of strangers are opened
with pyarrow and asked here first, since 50 kB may hold one long text, and name it often.
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
    # Asked for counts, every NumPy sorts; else newer ones hash, which takes up to forty times as long.
    values, _ = np.unique(values, return_counts=True)
    return values


def encoded(texts: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """Return the number of each text of an Arrow array, and the different texts in order of first appearance."""
    array = _in_one(texts).dictionary_encode()
    return values_of(array.indices).astype(np.int64), array.dictionary


def first_places(numbers: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Return the place at which each of the numbers 0 to n - 1 comes first."""
    first = np.zeros(n, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def values_of(column: Any) -> Any:
    """Return an Arrow array of numbers or truths as a NumPy array."""
    column = _in_one(column)
    is_truth = str(column.type) == "bool"
    return np.from_dlpack(column.cast("uint8")).view(np.bool_) if is_truth else np.from_dlpack(column)


def positions_of(column: Any) -> npt.NDArray[np.int32]:
    """Return an Arrow array of positions as a NumPy array, -1 for null."""
    from pyarrow import compute

    positions: npt.NDArray[np.int32] = values_of(compute.coalesce(column, arrow_of(np.array([-1]))[0])).astype(np.int32)
    return positions


def _in_one(column: Any) -> Any:
    """Return the chunks of a column as one array."""
    return column.combine_chunks() if hasattr(column, "chunks") else column


def arrow_of(values: Any) -> Any:
    """Return rows or marks of rows, a NumPy array, as an Arrow array."""
    import pyarrow

    is_truth = values.dtype == np.bool_
    bits = np.packbits(values, bitorder="little") if is_truth else np.ascontiguousarray(values, np.int64)
    kind = pyarrow.bool_() if is_truth else pyarrow.int64()
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(bits)])


def text_array(texts: Collection[str]) -> Any:
    """Return texts as a large string array."""
    import pyarrow

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(encoded), buffers)


def checked_group(file: parquet.ParquetFile, number: int, columns: Sequence[int]) -> parquet.RowGroupMetaData:
    """Return the checked metadata of a row group; only the columns of these indices may be used. Damage is an error.

    Arrow (26) ends the process where `RowGroupMetaData.column` meets damage. A reader of no rows meets it first, and
    raises; it divides by its number of rows where it has no columns.
    """
    if columns:
        next(file.reader.iter_batches(0, [number], list(columns), False), None)
    return file.metadata.row_group(number)


def text_columns(file: parquet.ParquetFile) -> list[str]:
    """Return the paths of the columns of texts and bytes, to be given as ``read_dictionary``."""
    columns = (file.metadata.schema.column(index) for index in range(file.metadata.num_columns))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def values_in(file: parquet.ParquetFile, number: int) -> int:
    """Return the values of the longest column of a row group, or all of its columns together where that is more."""
    group = checked_group(file, number, range(file.metadata.num_columns))
    values = sum(group.column(index).num_values for index in range(group.num_columns))
    return max(int(values), int(group.num_rows))


def largest_text(folded: parquet.ParquetFile, number: int, texts: Sequence[str]) -> tuple[int, str]:
    """Return the bytes that the largest column of texts of a row group unfolds to, and its path.

    Parameters
    ----------
    folded : ParquetFile
        Opened with ``read_dictionary=texts``: the texts stay folded until their size is known.
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
