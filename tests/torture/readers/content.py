"""Small valid files as bytes: JSON, NumPy, Parquet, pictures."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def json_lines(*values: Any) -> bytes:
    return b"".join(json_bytes(value) + b"\n" for value in values)


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def png(mode: str = "RGB") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert(mode).save(out, "PNG", pnginfo=None)
    return out.getvalue()


def jpeg() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert("RGB").save(out, "JPEG")
    return out.getvalue()
