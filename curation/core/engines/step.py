"""A step: a pure function of Arrow tables, the blocks it is run on, and what its output is known by."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from curation.core.canonical import sha256_of_value
from curation.core.columns import values_of
from curation.core.errors import EngineError

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Step(ABC):
    """A pure function of a table: the same input gives the same output, in any process and in any order.

    A subclass is a frozen dataclass in a module that can be imported. Its fields are its parameters; they may be large
    (the benchmark's side of a search): every worker gets them once. It is called for one or more tables of a block,
    whose outputs are put behind each other, and states the type of every column that it returns.

    Attributes
    ----------
    name : str
        What error texts and the folder of the output call it.
    version : int
        Raised whenever the same input gives another output.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    @abstractmethod
    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the output for a table."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields as plain data: arrays by their digest, floats as text."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of name, version and parameters."""
        return sha256_of_value({"step": self.name, "version": self.version, "parameters": self.parameters})


class Block(Protocol):
    """A piece of the input that a worker reads itself; what is sent to the worker only says where it lies.

    A frozen dataclass in a module that can be imported. How the input is cut into blocks depends on the input alone.
    """

    @property
    def name(self) -> str:
        """What the block is called, unique among all: a file, or a file and a place in it."""

    @property
    def key(self) -> str:
        """A text that changes where what lies there has changed: a block of the same name and key is not run again."""

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield what lies there, in pieces that fit into memory, always the same ones."""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | PurePath):
        return str(value)
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": f"{value.dtype.str} {list(value.shape)}", "sha256": digest}
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(member) for member in value]


def content_digest(table: pyarrow.Table) -> str:
    """Return ``sha256:<hex>`` of what a table says: names, types and values, not how Arrow or Parquet store them.

    Columns are taken one after the other. Of each: name, type, which values are null; then numbers as little-endian
    bytes (a null as zero, every NaN as one), texts and bytes as their lengths and what they hold, lists as their
    lengths and their values. The chunks of a column and the type of its texts (large, dictionary) are ignored.

    Raises
    ------
    EngineError
        A column is of a type that no step returns.
    """
    digest = hashlib.sha256(f"rows {table.num_rows}\n".encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"column {len(name.encode())} {name}\n".encode())
        _add(digest, column, name)
    return f"sha256:{digest.hexdigest()}"


def _add(digest: Any, column: Any, name: str) -> None:
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):
            column = pyarrow.concat_arrays(column.chunks)
    digest.update(np.packbits(values_of(column.is_null())).tobytes())
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        digest.update(f"{kind}\n".encode())
        values = _filled(column)
        if types.is_floating(kind):
            values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
        digest.update(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False)).tobytes())
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        is_text = types.is_string(kind) or types.is_large_string(kind)
        digest.update(b"text\n" if is_text else b"bytes\n")
        column = column.cast(pyarrow.large_binary())
        digest.update(_filled(compute.binary_length(column)).astype("<i8").tobytes())
        # Bytes of null cells, and those outside a slice, lie in the buffer too: what is left after dropping counts.
        filled = column.drop_null()
        if len(filled):
            _, offsets, data = filled.buffers()
            edges = np.frombuffer(offsets, np.int64)[filled.offset :]
            digest.update(memoryview(data or b"")[edges[0] : edges[len(filled)]])
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        digest.update(b"list\n")
        digest.update(_filled(compute.list_value_length(column)).astype("<i8").tobytes())
        _add(digest, column.drop_null().flatten(), name)
    else:
        raise EngineError(
            "Unsupported column type in the output of a step",
            where=f"column {name[:80]}",
            expected="booleans, numbers, texts, bytes, or lists of these",
            found=str(kind)[:120],
        )


def _filled(column: Any) -> Any:
    """Return numbers or truths as a NumPy array, nulls as zero; a scalar of Arrow to fill with would import pandas."""
    import pyarrow
    from pyarrow import compute

    if column.null_count:
        zeros = pyarrow.py_buffer(bytes(8 * len(column)))
        column = compute.coalesce(column, pyarrow.Array.from_buffers(column.type, len(column), [None, zeros]))
    return values_of(column)
