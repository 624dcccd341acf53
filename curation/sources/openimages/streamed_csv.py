"""`StreamedCsv`: a large CSV file read block by block into typed columns, and hashed while it is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.core.canonical import sha256_of_stream
from curation.core.csv_table import csv_header
from curation.core.errors import AnnotationFormatError
from curation.core.reading import GZIP, Unpacking, beginning, open_binary
from curation.sources.content import require_unchanged, stamp_of

_BLOCK = 1 << 22
_MAX_HEADER = 1 << 16


class StreamedCsv:
    """A CSV file with a header, of any size: never more than some blocks of it are in memory.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    name : str
        Plain file name.
    path : Path
    size : int
        Bytes.
    header : tuple of str
        Column names, unique.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError
        It is empty, or its first line is no header.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self._stamp = stamp_of(path, "table")
        self.size = self._stamp[0]
        self.header = _header(path)
        self._digest = ""

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes, computed while `batches` reads; else the file is read for it."""
        if not self._digest:
            with open_binary(self.path, kind="table") as stream:
                self._finish(sha256_of_stream(stream))
        return self._digest

    def require(self, columns: Sequence[str]) -> None:
        """Raise `AnnotationFormatError` unless the header has these columns."""
        if not set(columns) <= set(self.header):
            expected, found = ", ".join(columns), ", ".join(self.header)[:300]
            raise AnnotationFormatError(
                "The table lacks a column", where=f"{self.name}: row 1", expected=expected, found=found
            )

    def batches(self, types: Mapping[str, Any], *, blank_lines: bool = False) -> Iterator[Any]:
        """Yield record batches with the columns of `types`, rows in file order; the other columns are skipped.

        An empty cell is null in a column of numbers and ``""`` in one of texts.

        Parameters
        ----------
        types : mapping of str to pyarrow.DataType
            Columns of the header.
        blank_lines : bool
            Whether a blank line is a row of empty cells, and not passed over.

        Raises
        ------
        AnnotationFormatError
            A row has another number of columns than the header, or a value does not fit; the message names the row.
        SourceError
            The file changed while it was read.
        """
        import pyarrow
        from pyarrow import csv as arrow_csv

        pieces = self._pieces()
        try:
            yield from arrow_csv.open_csv(
                pyarrow.PythonFile(_Stream(pieces), mode="r"),
                # Without threads errors name the row.
                read_options=arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
                parse_options=arrow_csv.ParseOptions(ignore_empty_lines=not blank_lines),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(types), column_types=dict(types), null_values=[""], strings_can_be_null=False
                ),
            )
        except pyarrow.ArrowException as error:
            row = re.search(r"Row #(\d+)", str(error))
            raise AnnotationFormatError(
                "The table cannot be read",
                where=f"{self.name}: row {row[1]}" if row else self.name,
                expected=f"CSV in UTF-8 with {len(self.header)} columns in each row",
                found=str(error)[:300],
            ) from None
        for _ in pieces:
            pass

    def _pieces(self) -> Iterator[bytes]:
        """Yield what the file holds, unpacked, and hash the file's bytes meanwhile."""
        from tqdm import tqdm

        digest = hashlib.sha256()
        unpacking: Unpacking | None = None
        with (
            open_binary(self.path, kind="table") as stream,
            tqdm(total=self.size, desc=self.name, unit="B", unit_scale=True, leave=False, disable=None) as bar,
        ):
            while data := stream.read(_BLOCK):
                if stream.tell() == len(data) and data.startswith(GZIP):
                    unpacking = Unpacking(str(self.path), self.size)
                digest.update(data)
                bar.update(len(data))
                yield from (data,) if unpacking is None else unpacking.feed(data)
            if unpacking is not None:
                yield from unpacking.end()
        self._finish(f"sha256:{digest.hexdigest()}")

    def _finish(self, digest: str) -> None:
        require_unchanged(self.path, "table", self._stamp)
        self._digest = digest


class _Stream:
    """Pieces of a file as pyarrow reads a file: each `read` gives the next one, none at the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.closed = False

    def read(self, _count: int = -1) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        self.closed = True


def _header(path: Path) -> tuple[str, ...]:
    line = (beginning(path, _MAX_HEADER, kind="table").splitlines() or [b""])[0]
    names = csv_header(line, AnnotationFormatError, where=f"{path.name}: row 1")
    if not any(names):
        raise AnnotationFormatError("The table is empty", where=path.name, expected="a header and rows")
    return names
