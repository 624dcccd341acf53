"""The output of a step: Parquet shards named by what they hold, and which block each is of.

A folder holds ``step.json`` (what was run), ``shards/HEX.parquet``, and while the work goes on ``journal.jsonl``, with
a line for each finished block; each task of an array has its own journal. At the end ``index.jsonl`` takes their
place, with the blocks in their order, and ``shards.json`` states the digest of all. A shard is named by the digest of
its content (`content_digest`), since the bytes of Parquet are those of a library's version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from curation.core.canonical import canonical_json, sha256_of_lines
from curation.core.engines.step import Step, content_digest
from curation.core.errors import EngineError
from curation.core.files import read_bytes
from curation.core.writing import make_folder, remove_abandoned, replacing, write_bytes

if TYPE_CHECKING:
    import pyarrow

STEP, SHARDS, JOURNAL, INDEX, SUMMARY = "step.json", "shards", "journal.jsonl", "index.jsonl", "shards.json"
_JOURNALS = "journal*.jsonl"
_JOURNAL_OF_TASK = re.compile(r"journal-\d+-of-(\d+)\.jsonl")
_FORMAT = 1
_HEX = 32


class Entry(msgspec.Struct, frozen=True, tag=True):
    """A finished block: its name and key, and the digest of what came out, with its rows and bytes on disk."""

    block: str
    key: str
    shard: str
    rows: int
    size: int


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    digest: str
    step: str
    blocks: int
    rows: int
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
        Blocks that this call ran, and that it found done.
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
        """``sha256:<hex>`` of all blocks and what came out of each: equal for every engine and number of workers."""
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
            What is yielded; the digest is of all columns, so all are read.

        Raises
        ------
        EngineError
            A shard is missing or damaged.
        """
        for entry in self.entries:
            if entry.rows:
                table = self.table(entry)
                yield table if columns is None else table.select(columns)

    def table(self, entry: Entry) -> pyarrow.Table:
        """Return the output of a block (see `tables`)."""
        import pyarrow
        from pyarrow import parquet

        path = shard_path(self.folder, entry.shard)
        try:
            table = parquet.ParquetFile(path).read()
        except (OSError, pyarrow.ArrowException) as error:
            raise self._damaged(entry, str(error)[:200]) from None
        if content_digest(table) != entry.shard:
            raise self._damaged(entry, "content of another digest")
        return table

    def _damaged(self, entry: Entry, problem: str) -> EngineError:
        return EngineError(
            "A shard is missing or damaged",
            where=f"{shard_path(self.folder, entry.shard)}, of block {entry.block[:200]}",
            found=problem,
            hint="remove that file and run the command again: its block alone is computed",
        )


def shard_path(folder: Path, digest: str) -> Path:
    """Return where the shard of a digest lies."""
    return folder / SHARDS / f"{digest.removeprefix('sha256:')[:_HEX]}.parquet"


def write_shard(folder: Path, table: pyarrow.Table) -> tuple[str, int]:
    """Write a table under the digest of its content unless it is there; return the digest and the bytes on disk."""
    from pyarrow import parquet

    digest = content_digest(table)
    path = shard_path(folder, digest)
    if not path.is_file():
        with replacing(path, guarded=False) as partial:
            parquet.write_table(table, partial, compression="zstd")
    return digest, path.stat().st_size


def journal_path(folder: Path, number: int, total: int) -> Path:
    """Return the journal of a task of an array, or of the only one."""
    return folder / (JOURNAL if total == 1 else f"journal-{number}-of-{total}.jsonl")


def shards_begun(folder: Path) -> int | None:
    """Return of how many tasks the arrays are that wrote into a folder; None where that is not one number."""
    totals = {match[1] for path in folder.glob(_JOURNALS) if (match := _JOURNAL_OF_TASK.fullmatch(path.name))}
    return int(totals.pop()) if len(totals) == 1 else None


def begin(folder: Path, step: Step, *, is_alone: bool = True) -> dict[tuple[str, str], Entry]:
    """Prepare a folder for a step; return what is done already by name and key of the block.

    Parameters
    ----------
    is_alone : bool
        False where other machines may write there now: what is unfinished may be theirs, and stays.

    Raises
    ------
    EngineError
        The folder holds something else, or the output of another step.
    """
    text = _identity_of(step)
    path = folder / STEP
    if path.is_file():
        if (before := read_bytes(path, kind="step")) != text:
            raise EngineError(
                "The folder holds the output of another step",
                where=str(folder),
                expected=text.decode()[:300].strip(),
                found=before.decode("utf-8", "replace")[:300].strip(),
                hint="choose another --out, or the options that it was made with",
            )
    elif folder.exists() and (not folder.is_dir() or _strange_files(folder)):
        raise EngineError("The folder exists and was not created by curation", where=str(folder))
    else:
        write_bytes(path, text, guarded=False)
    make_folder(folder / SHARDS)
    if is_alone:
        remove_abandoned(folder)
        remove_abandoned(folder / SHARDS)
    return {(entry.block, entry.key): entry for entry in done_so_far(folder, step).entries}


def _strange_files(folder: Path) -> list[str]:
    """Return the names of files that no step writes; another task may begin the same folder at this moment."""
    names = [path.name for path in folder.iterdir()]
    return [name for name in names if not name.startswith(".") and name not in (STEP, SHARDS)]


def done_so_far(folder: Path, step: Step) -> Shards:
    """Return what is finished of a step, in a folder in which it may be unfinished or never begun."""
    path = folder / STEP
    if not path.is_file() or read_bytes(path) != _identity_of(step):
        return Shards(folder, (), step.digest)
    journals = sorted(folder.glob(_JOURNALS))
    entries = [entry for file in (folder / INDEX, *journals) for entry in _entries(file) if _is_there(folder, entry)]
    return Shards(folder, tuple(entries), step.digest)


def _identity_of(step: Step) -> bytes:
    return canonical_json({"step": step.name, "version": step.version, "parameters": step.parameters}) + b"\n"


def finish(made: Shards) -> Shards:
    """Write the index and the summary, and remove shards of blocks that no longer exist."""
    folder = made.folder
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in made.entries)
    write_bytes(folder / INDEX, lines, guarded=False)
    summary = _Summary(digest=made.digest, step=made.step, blocks=len(made.entries), rows=made.rows)
    write_bytes(folder / SUMMARY, canonical_json(msgspec.to_builtins(summary)) + b"\n", guarded=False)
    for journal in folder.glob(_JOURNALS):
        journal.unlink(missing_ok=True)
    names = {shard_path(folder, entry.shard).name for entry in made.entries}
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
        The index is not the one that the summary states.
    """
    path = folder / SUMMARY
    try:
        summary = msgspec.json.decode(read_bytes(path, kind="summary of shards"), type=_Summary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EngineError("The summary of shards is damaged", where=str(path), found=str(error)[:200]) from None
    made = Shards(folder, tuple(_entries(folder / INDEX)), summary.step)
    if made.digest != summary.digest:
        raise EngineError(
            "The index of shards does not match its summary",
            where=str(folder / INDEX),
            expected=summary.digest,
            found=made.digest,
            hint="run the command that made it again: it goes on with the shards that are there",
        )
    return made


def _entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of an index or journal; skip lines that are damaged or were cut off by a kill."""
    if path.is_file():
        for line in read_bytes(path).split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield msgspec.json.decode(line, type=Entry)


def _is_there(folder: Path, entry: Entry) -> bool:
    path = shard_path(folder, entry.shard)
    return path.is_file() and path.stat().st_size == entry.size
