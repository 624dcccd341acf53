"""`Plan`: the planned content of an export, and the writer of all formats."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError
from curation.core.files import inside
from curation.core.writing import publishing_folder, replacing
from curation.sources.source import Texts

SUMMARY_FILE = "_export.json"
"""File in an exported folder that records inputs and changes; no part can have this name."""

_LONGEST_NAME = 240
_PER_PART = ("categories", "classes")

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """Options of single formats.

    Attributes
    ----------
    category_ids
        coco: auto (default): the dataset's own ids of classes where all files of the manifest number classes alike;
        manifest: their index in the manifest (0, 1, ... with tasks)
    unknown
        yolo: unknown objects are the last class (default), or left out
    id_form
        txt: coco:000000000139 (default), or 000000000139
    """

    category_ids: Literal["auto", "manifest"] | None = None
    unknown: Literal["last", "drop"] | None = None
    id_form: Literal["namespaced", "native"] | None = None


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of an export.

    Attributes
    ----------
    name : str
        Path below the output folder, with ``/``.
    chunks : callable
        Returns the bytes in pieces, so that a large file is never in memory as a whole.
    group : str
        Files of the same group are reported together (``Annotations/*.xml``); ``""`` for a file without group.
    """

    name: str
    chunks: Callable[[], Iterable[bytes]]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The files of an export, with notes for a reader.

    Attributes
    ----------
    files : iterable of PlannedFile
        Generated one at a time, in a fixed order.
    records : int
        Total number of chunks of all files, for the progress bar.
    counts, changed, left_out : mapping of str to int
        Numbers of records written, written with changes, and not written. Zero counts are omitted.
    notes : tuple of str
        Sentences for the user.
    by_part : mapping of str to Plan
        The joined plans, if every part is written separately.
    """

    files: Iterable[PlannedFile]
    records: int
    counts: Mapping[str, int]
    changed: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_part: Mapping[str, Plan] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportedFile:
    r"""One file that was written, or one group of files.

    Attributes
    ----------
    name : str
    sha256 : str
        Digest of the bytes; for a group, of the sorted lines ``<hex>  <name>\n``.
    size, files : int
    """

    name: str
    sha256: str
    size: int
    files: int = 1


def present(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not zero."""
    return {name: int(count) for name, count in counts.items() if count}


def joined_plans(plans: Mapping[str, Plan], *, folders: bool) -> Plan:
    """Return one plan that writes each part separately.

    Counts are added up, except those of categories, which parts share; a note of several plans is written once.

    Parameters
    ----------
    plans : mapping of str to Plan
        By the name of the part.
    folders : bool
        Whether each part gets a separate folder; else the files of parts must have different names.
    """
    notes: dict[str, list[str]] = {}
    for part, plan in plans.items():
        for note in plan.notes:
            notes.setdefault(note, []).append(part)
    return Plan(
        files=_files_of(plans, folders=folders),
        records=sum(plan.records for plan in plans.values()),
        counts={
            name: count
            for name, count in _summed([plan.counts for plan in plans.values()]).items()
            if name not in _PER_PART
        },
        changed=_summed([plan.changed for plan in plans.values()]),
        left_out=_summed([plan.left_out for plan in plans.values()]),
        notes=tuple(
            note if len(parts) == len(plans) else f"{', '.join(parts)}: {note}" for note, parts in notes.items()
        ),
        by_part=plans,
    )


def _files_of(plans: Mapping[str, Plan], *, folders: bool) -> Iterator[PlannedFile]:
    for part, plan in plans.items():
        for file in plan.files:
            group = f"{part}/{file.group}" if file.group else ""
            yield replace(file, name=f"{part}/{file.name}", group=group) if folders else file


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def safe_name(name: str, where: str) -> str:
    """Return a name from an annotation file if it is a safe path, else raise `ExportError`.

    Slashes separate folders; absolute paths, ``..``, drives, backslashes and unprintable characters are refused.
    """
    parts = PurePosixPath(name).parts
    hostile = not parts or name.startswith("/") or name.endswith("/") or "\\" in name or ":" in name
    hostile = hostile or not name.isprintable() or any(part in ("..", ".") for part in name.split("/"))
    if hostile or any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts):
        raise ExportError(
            "A name from the annotations cannot become a file name",
            where=where,
            expected="a relative path of printable characters, without '..', ':' and backslash",
            found=ascii(name[:80]),
        )
    return name


def first_repeated(values: Texts) -> Any:
    """Return the smallest value that occurs more than once in an array, or None."""
    distinct, counts = np.unique(values, return_counts=True)
    repeated = distinct[counts > 1]
    return repeated[0].item() if isinstance(repeated, np.ndarray) and len(repeated) else None


def write_plan(plan: Plan, out: Path, *, single: bool, summary: Mapping[str, Any]) -> list[ExportedFile]:
    """Write the files of a plan, completely or not at all, and return their records.

    Parameters
    ----------
    out : Path
        A folder that does not exist or is empty; with `single`, the output file.
    summary : mapping
        Written to ``_export.json`` of a folder, with the digests of the files; it has no time and no local path.

    Raises
    ------
    UsageError, OverwriteError
        `out` is an existing folder, or a file that may not be replaced (see `curation.core.writing`).
    """
    if single:
        with replacing(out) as partial, _progress(plan) as count:
            return [_written_alone(next(iter(plan.files)), partial, count, out.name)]
    with publishing_folder(out) as folder:
        with _progress(plan) as count:
            written = _written_all(plan.files, folder, count)
        data = {**summary, "files": [asdict(file) for file in written]}
        (folder / SUMMARY_FILE).write_bytes(indented_json(data))
    return written


def indented_json(data: Any) -> bytes:
    """Return indented UTF-8 JSON with a final line feed."""
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _progress(plan: Plan) -> Any:
    from tqdm import tqdm

    return tqdm(total=plan.records, unit=" records", desc="writing", disable=None)


def _written_alone(planned: PlannedFile, path: Path, count: Any, name: str) -> ExportedFile:
    digest = hashlib.sha256()
    size = 0
    with path.open("wb") as stream:
        for chunk in planned.chunks():
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            count.update()
    return ExportedFile(name=name, sha256=f"sha256:{digest.hexdigest()}", size=size)


def _written_all(files: Iterable[PlannedFile], folder: Path, count: Any) -> list[ExportedFile]:
    alone: list[ExportedFile] = []
    groups: dict[str, list[ExportedFile]] = {}
    for planned in files:
        path = inside(folder, planned.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = _written_alone(planned, path, count, planned.name)
        (groups.setdefault(planned.group, []) if planned.group else alone).append(written)
    return [*alone, *(_grouped(name, members) for name, members in groups.items())]


def _grouped(name: str, members: list[ExportedFile]) -> ExportedFile:
    lines = sorted(f"{member.sha256.removeprefix('sha256:')}  {member.name}\n" for member in members)
    return ExportedFile(
        name=name,
        sha256=sha256_of_bytes("".join(lines).encode("utf-8")),
        size=sum(member.size for member in members),
        files=len(members),
    )


def lines(texts: Sequence[str]) -> Callable[[], Iterator[bytes]]:
    """Return the content of a file with each text as a line of UTF-8."""
    return lambda: (f"{text}\n".encode() for text in texts)


def single_chunk(text: str) -> Callable[[], Iterable[bytes]]:
    """Return the content of a small file as one piece."""
    return lambda: (text.encode("utf-8"),)


def json_file(**fields: Any) -> Iterator[bytes]:
    """Yield the bytes of a JSON object, a line for each field and for each record of an iterator or list."""
    separator = b"{"
    for name, value in fields.items():
        yield separator + _encode(name) + b":"
        separator = b",\n"
        if isinstance(value, Iterator):
            yield b"[\n"
            yield from record_lines(value)
            yield b"]"
        elif isinstance(value, list):
            yield b"[\n" + b",\n".join(map(_encode, value)) + b"\n]"
        else:
            yield _encode(value)
    yield b"}\n"


def record_lines(records: Iterable[Any]) -> Iterator[bytes]:
    """Yield records as the elements of a JSON array, one a line."""
    separator = b""
    for record in records:
        yield separator + _encode(record)
        separator = b",\n"
    yield b"\n" if separator else b""
