"""A step, the blocks it is run on, and its output: a folder with a Parquet shard for each block.

A folder holds ``step.json`` (the step) and ``shards/HEX.parquet``, a file for each finished block, named by the
digest of the block's name and key. At the end ``index.jsonl`` lists the blocks in their order, and ``shards.json``
states the digest of all.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
import numpy as np

from curation.core.canonical import canonical_json, sha256_of_file, sha256_of_lines, sha256_of_value
from curation.core.errors import EngineError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.core.writing import make_folder, remove_abandoned, replacing, write_bytes

if TYPE_CHECKING:
    import pyarrow

STEP, SHARDS, INDEX, SUMMARY = "step.json", "shards", "index.jsonl", "shards.json"
_FORMAT = 2
_HEX = 32


@dataclass(frozen=True)
class Step(ABC):
    """A pure function of a table: the same input gives the same output, in any process and in any order.

    A subclass is a frozen dataclass in a module that can be imported. Its fields are its parameters; they may be large
    (the benchmark's side of a search): every worker gets them once. It is called for one or more tables of a block,
    whose outputs are concatenated, and states the type of every column that it returns.

    Attributes
    ----------
    name : str
        Name of the output in error texts and in its folder.
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
    def identity(self) -> dict[str, Any]:
        """Name, version and parameters."""
        return {"step": self.name, "version": self.version, "parameters": self.parameters}

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of name, version and parameters."""
        return sha256_of_value(self.identity)


class Block(Protocol):
    """A piece of the input that a worker reads itself; the worker is sent only its location.

    A frozen dataclass in a module that can be imported. How the input is cut into blocks depends on the input alone.
    """

    @property
    def name(self) -> str:
        """The unique name of the block: a file, or a file and a position in it."""

    @property
    def key(self) -> str:
        """A text that changes with the content: a block of the same name and key is not run again."""

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield the content, in pieces that fit into memory, always the same ones."""


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


class Entry(msgspec.Struct, frozen=True, tag=True):
    """A finished block: its name and key, and the digest and rows of its shard."""

    block: str
    key: str
    shard: str
    rows: int

    @property
    def file(self) -> str:
        """The name of the shard."""
        return shard_name(self)


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    digest: str
    step: str
    format: int = _FORMAT


@dataclass(frozen=True)
class Shards:
    """The finished output of a step.

    Attributes
    ----------
    folder : Path
    entries : tuple of Entry
        In the order of the blocks.
    step : str
        ``sha256:<hex>`` of the step that made it.
    computed, reused : int
        Blocks that this call ran, and blocks that were finished before.
    computed_rows : int
        Rows of the computed blocks.
    """

    folder: Path
    entries: tuple[Entry, ...]
    step: str
    computed: int = 0
    reused: int = 0
    computed_rows: int = 0

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of all blocks and their shards: equal for every engine and number of workers."""
        return sha256_of_lines(f"{entry.block}\t{entry.shard}" for entry in self.entries)

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(entry.rows for entry in self.entries)

    def tables(self, columns: list[str] | None = None) -> Iterator[pyarrow.Table]:
        """Yield the output of each block in turn, after checking its digest.

        Parameters
        ----------
        columns : list of str, optional
            Columns to yield (default: all).

        Raises
        ------
        EngineError
            A shard is missing or damaged.
        """
        for entry in self.entries:
            if entry.rows:
                yield self.table(entry, columns)

    def table(self, entry: Entry, columns: list[str] | None = None) -> pyarrow.Table:
        """Return the output of a block (see `tables`)."""
        import pyarrow
        from pyarrow import parquet

        path = self.folder / SHARDS / entry.file
        try:
            if (digest := sha256_of_file(path)) == entry.shard:
                return parquet.ParquetFile(path).read(columns)
            problem = f"content of digest {digest}"
        except (OSError, pyarrow.ArrowException) as error:
            problem = str(error)[:200]
        raise EngineError(
            "A shard is missing or damaged",
            where=f"{path}, of block {entry.block[:200]}",
            found=problem,
            hint="remove that file and run the command again: only its block is computed",
        )


def shard_name(block: Block | Entry) -> str:
    """Return the file name of the shard of a block."""
    name = block.block if isinstance(block, Entry) else block.name
    digest = sha256_of_lines([name, block.key]).removeprefix("sha256:")
    return f"{digest[:_HEX]}.parquet"


def write_shard(folder: Path, block: Block, table: pyarrow.Table) -> Entry:
    """Write the output of a block, and return its entry."""
    from pyarrow import parquet

    with replacing(folder / SHARDS / shard_name(block), guarded=False) as partial:
        parquet.write_table(table, partial, compression="zstd")
        digest = sha256_of_file(partial)
    return Entry(block.name, block.key, digest, table.num_rows)


def finished_entry(folder: Path, block: Block, index: Mapping[str, Entry]) -> Entry | None:
    """Return the entry of a block whose shard exists, from the index of a finished folder or else from the shard."""
    import pyarrow
    from pyarrow import parquet

    path = folder / SHARDS / shard_name(block)
    if not path.is_file():
        return None
    if entry := index.get(path.name):
        return entry
    with suppress(OSError, pyarrow.ArrowException):
        return Entry(block.name, block.key, sha256_of_file(path), parquet.read_metadata(path).num_rows)
    return None


def begin(folder: Path, step: Step, *, is_alone: bool = True) -> dict[str, Entry]:
    """Prepare a folder for a step; return the index of an earlier run by the names of its shards.

    Parameters
    ----------
    is_alone : bool
        False if other machines may write there now: unfinished files may be theirs and are kept.

    Raises
    ------
    EngineError
        The folder holds something else, or the output of another step.
    """
    text = canonical_json(step.identity) + b"\n"
    path = folder / STEP
    if path.is_file():
        if (before := read_bytes(path, kind="step")) != text:
            raise EngineError(
                "The folder holds the output of another step",
                where=str(folder),
                expected=text.decode()[:300].strip(),
                found=before.decode("utf-8", "replace")[:300].strip(),
                hint="choose another --out, or repeat the options of the first run",
            )
    elif folder.exists() and (not folder.is_dir() or _strange_files(folder)):
        raise EngineError("The folder exists and was not created by curation", where=str(folder))
    else:
        write_bytes(path, text, guarded=False)
    make_folder(folder / SHARDS)
    if is_alone:
        remove_abandoned(folder)
        remove_abandoned(folder / SHARDS)
    return {entry.file: entry for entry in _entries(folder / INDEX)}


def _strange_files(folder: Path) -> list[str]:
    """Return the names of files that no step writes; temporary files of another task are not counted."""
    names = [path.name for path in folder.iterdir()]
    return [name for name in names if not name.startswith(".") and name not in (STEP, SHARDS)]


def finish(made: Shards) -> Shards:
    """Write the index and the summary, and remove shards of blocks that no longer exist."""
    folder = made.folder
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in made.entries)
    write_bytes(folder / INDEX, lines, guarded=False)
    summary = _Summary(digest=made.digest, step=made.step)
    write_bytes(folder / SUMMARY, canonical_json(msgspec.to_builtins(summary)) + b"\n", guarded=False)
    names = {entry.file for entry in made.entries}
    for path in (folder / SHARDS).glob("*.parquet"):
        if path.name not in names:
            path.unlink(missing_ok=True)
    return made


def open_shards(folder: Path) -> Shards:
    """Return the finished output of a step.

    Raises
    ------
    MissingFileError
        There is none, or the work is not finished.
    EngineError
        The index does not match the summary.
    """
    path = folder / SUMMARY
    data, message = read_bytes(path, kind="summary of shards"), "The summary of shards is damaged"
    summary = decode_json(data, _Summary, EngineError, message, where=str(path))
    made = Shards(folder, tuple(_entries(folder / INDEX)), summary.step)
    if made.digest != summary.digest:
        raise EngineError(
            "The index of shards does not match its summary",
            where=str(folder / INDEX),
            expected=summary.digest,
            found=made.digest,
            hint="run the command that made it again: existing shards are used",
        )
    return made


def _entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of an index; skip lines that are damaged."""
    if path.is_file():
        for line in read_bytes(path).split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield msgspec.json.decode(line, type=Entry)
