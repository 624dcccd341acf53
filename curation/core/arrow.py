"""Arrow arrays as NumPy's, and back, without pandas: pyarrow's own ways import it, half a second in every worker."""

from __future__ import annotations

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
