"""Small files that a user writes by hand, TOML or JSON, read into one typed record."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from curation.errors import CurationError
from curation.json_keys import refuse_repeated_keys
from curation.storage import read_bytes

_MAX_BYTES = 4 << 20
Record = TypeVar("Record", bound=msgspec.Struct)


def read_declaration(
    path: Path, record: type[Record], error: type[CurationError], *, kind: str = "declaration", example: str = ""
) -> Record:
    """Return the record that a ``.toml`` or ``.json`` file declares.

    Parameters
    ----------
    kind, example : str
        What messages call the file, and what they show of a good one.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    error
        It is neither TOML nor JSON, or has other fields or types than the record.
    """
    data = read_bytes(path, kind=kind, most=_MAX_BYTES, error=error)
    if path.suffix.lower() != ".toml":
        refuse_repeated_keys(data, str(path), error)
    try:
        text = data.decode("utf-8")
        if path.suffix.lower() == ".toml":
            return msgspec.convert(tomllib.loads(text), type=record)
        return msgspec.json.decode(text, type=record)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise error(
            f"The {kind} cannot be read",
            where=str(path),
            expected=example or f"fields {', '.join(record.__struct_fields__)}",
            found=str(problem)[:300],
        ) from None
