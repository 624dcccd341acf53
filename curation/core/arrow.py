"""Arrow arrays as NumPy's, and back, without pandas: pyarrow's own ways import it, half a second in every worker."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np


def values_of(column: Any) -> Any:
    """Return an Arrow array of numbers or truths as a NumPy array."""
    is_truth = str(column.type) == "bool"
    return np.from_dlpack(column.cast("uint8")).view(np.bool_) if is_truth else np.from_dlpack(column)


def arrow_of(values: Any) -> Any:
    """Return rows or marks of rows, a NumPy array, as an Arrow array."""
    import pyarrow

    is_truth = values.dtype == np.bool_
    kept = np.packbits(values, bitorder="little") if is_truth else np.ascontiguousarray(values, np.int64)
    of = pyarrow.bool_() if is_truth else pyarrow.int64()
    return pyarrow.Array.from_buffers(of, len(values), [None, pyarrow.py_buffer(kept)])


def text_array(texts: Collection[str]) -> Any:
    """Return texts as a large string array."""
    import pyarrow

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(encoded), buffers)
