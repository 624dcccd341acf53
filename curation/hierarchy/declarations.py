"""Small files that a user writes by hand, TOML or JSON, read into one typed record."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from curation.errors import CurationError
from curation.input_files import refuse_large
from curation.json_keys import decode_json
from curation.storage import read_bytes

_MAX_BYTES = 4 << 20
Record = TypeVar("Record", bound=msgspec.Struct)


def read_declaration(path: Path, record: type[Record], error: type[CurationError]) -> Record:
    """Return the record that a ``.toml`` or ``.json`` file declares.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    error
        It is neither TOML nor JSON, or has other fields or types than the record.
    """
    refuse_large(path, _MAX_BYTES, error, "declaration")
    data = read_bytes(path, kind="declaration")
    what, expected = "The declaration cannot be read", f"fields {', '.join(record.__struct_fields__)}"
    if path.suffix.lower() != ".toml":
        return decode_json(data, record, error, what, where=str(path), expected=expected)
    try:
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), type=record)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise error(what, where=str(path), expected=expected, found=str(problem)[:300]) from None
