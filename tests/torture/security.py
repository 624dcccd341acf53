"""Hostile files, each read by a whole command in a process of its own, under limits on memory and time.

A case writes what a stranger may hand over and says which command reads it. The command ends with an answer or an
error of ours (exit status 0, 1 or 2, no traceback), in little memory and time, and leaves nothing outside its outputs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.forks import Forks

MOST_MIB = 1536
"""Memory of a whole command, its libraries (up to 500 MiB) among it."""
MOST_SECONDS = 60
"""Processor time, imports among it."""
_MARK = "touched"


class _Touch:
    """Unpickled, it would make a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {_MARK}",)


@dataclass(frozen=True)
class Case:
    """What a stranger hands over, and what reads it.

    Attributes
    ----------
    name : str
    write : callable
        Writes it into a folder.
    words : str
        The command line; ``{in}`` is the folder.
    statuses : tuple of int
        Exit statuses that are right.
    told : str
        What the answer or error says, ``""`` for anything.
    """

    name: str
    write: Callable[[Path], None]
    words: str
    statuses: tuple[int, ...] = (2,)
    told: str = ""


def _gzip_bomb(folder: Path) -> None:
    with gzip.open(folder / "coco.json.gz", "wb", 9) as stream:
        stream.write(b'{"images": [')
        for _ in range(80):
            stream.write(b" " * (1 << 20))


def _npz(folder: Path, claimed: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (5 << 23, 1)})
    with (
        zipfile.ZipFile(folder / "s.npz", "w", method) as archive,
        archive.open("scores.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(320 if claimed is None else claimed):
            member.write(bytes(1 << 20))


def _pickled(folder: Path) -> None:
    np.savez(folder / "s.npz", scores=np.array([_Touch()], dtype=object), gt=np.array([1]))
    (folder / "s.npy").write_bytes(pickle.dumps(_Touch()))


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _png_bomb(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/a.png").write_bytes(_png(60_000, 60_000, zlib.compress(bytes(1 << 20))))
    text = b"c\0\0" + zlib.compress(bytes(96 << 20), 6)
    data = _png(4, 4, zlib.compress(bytes(4 * 13)))
    held = struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
    (folder / "photos/b.png").write_bytes(data[:33] + held + data[33:])


def _parquet_bomb(folder: Path) -> None:
    """Write 12 GB of one long text, held once, beside classes and scores."""
    import pyarrow as pa
    from pyarrow import parquet

    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, np.int32)), pa.array(["x" * 300_000]))
    rest = {"class": "cat", "label": 0, "score_0": 0.5, "score_1": 0.5}
    columns = {"image": text, **{name: [one] * 40_000 for name, one in rest.items()}}
    parquet.write_table(pa.table(columns), folder / "t.parquet")


def _xml(folder: Path, head: str, body: str = "", listed: str = "000001") -> None:
    (folder / "Annotations").mkdir()
    (folder / "ImageSets/Main").mkdir(parents=True)
    (folder / "ImageSets/Main/test.txt").write_text(f"{listed}\n")
    text = f"{head}<annotation><filename>000001.jpg</filename>{body}</annotation>"
    (folder / "Annotations/000001.xml").write_text(text)


_LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
)  # fmt: skip


def _tar(folder: Path, *, members: Sequence[tuple[str, bytes, bytes]]) -> None:
    with tarfile.open(folder / "c.tar", "w") as archive:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def _tar_bomb(folder: Path) -> None:
    lying = tarfile.TarInfo("a.jpg")
    lying.size = 1 << 45
    (folder / "c.tar").write_bytes(lying.tobuf(tarfile.GNU_FORMAT) + bytes(4096))


def _text(name: str, text: str | bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _linked_photo(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/a.png").symlink_to("/etc/passwd")


def _linked_list(folder: Path) -> None:
    from tests.torture.readers import targets

    for name, data in targets()["manifest"].files.items():
        _text(f"m/{name}", data)(folder)
    (folder / "outside.txt").write_bytes((folder / "m/ids/wild.txt").read_bytes())
    (folder / "m/ids/wild.txt").unlink()
    (folder / "m/ids/wild.txt").symlink_to(folder / "outside.txt")


def _deep_yaml() -> str:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join([f'*{chr(97 + k)}'] * 9)}]" for k in range(9)]
    return "\n".join(rows)


_CUT = "cut {in}/coco.json.gz -k 2 --no-cache"
_SCORES = "evaluate imagenet --scores {in}/s.npz"
_EMBED = "similarity embed --photos {in}/photos --encoder colour --out {in}/out"
_VOC = "cut {in} --dataset voc2007 --part test -k 2 --no-cache"
_CORPUS = "similarity embed --corpus {in}/c.tar --encoder colour --out {in}/out"

CASES: tuple[Case, ...] = (
    Case("gzip bomb", _gzip_bomb, _CUT, told="unpacks to more"),
    Case("gzip bomb of bombs", lambda f: _text("coco.json.gz", gzip.compress(gzip.compress(bytes(64 << 20))))(f), _CUT),
    Case("zip bomb in npz", _npz, _SCORES, told="unpacks to far more"),
    Case("npz packed by LZMA", lambda f: _npz(f, 1, zipfile.ZIP_LZMA), _SCORES, told="packed"),
    Case("pickled npz", _pickled, _SCORES, told="no objects"),
    Case("pickle called npy", _pickled, "evaluate imagenet --scores {in}/s.npy", told="cannot be read"),
    Case("PNG bomb", _png_bomb, _EMBED, told="million pixels"),
    Case("Parquet bomb of scores", _parquet_bomb, "evaluate imagenet --scores {in}/t.parquet",
         told="12,000,000,000 bytes of texts"),
    Case("XML entities", lambda f: _xml(f, f"{_LAUGHS}]>", "&j;"), _VOC, told="document type"),
    Case("XML of a file", lambda f: _xml(f, '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "&e;"), _VOC,
         told="document type"),
    Case("XML without end", lambda f: _xml(f, "", "<object>" * 200_000), _VOC),
    Case("YAML of aliases", _text("d.yaml", _deep_yaml()), "review summary {in}/d.yaml"),
    Case("YAML of objects", _text("d.yaml", f"!!python/object/apply:os.system ['touch {_MARK}']"),
         "review summary {in}/d.yaml"),
    Case("JSON without end", _text("coco.json", b"[" * 2_000_000), "cut {in}/coco.json -k 2 --no-cache"),
    Case("numbers without end", _text("d.jsonl", b'{"image_id": ' + b"9" * 60_000 + b"}\n"),
         "review summary {in}/d.jsonl"),
    Case("TOML without end", _text("t.toml", b"a = " + b"[" * 200_000),
         "build owod --tasks {in}/t.toml --source train={in}/t.toml --source test={in}/t.toml --out {in}/out"),
    Case("tar of links and names that climb", lambda f: _tar(f, members=[
        ("../up.jpg", tarfile.REGTYPE, b"x"), ("/abs.jpg", tarfile.REGTYPE, b"x"),
        ("link.jpg", tarfile.SYMTYPE, b""), ("hard.jpg", tarfile.LNKTYPE, b""), ("pipe.jpg", tarfile.FIFOTYPE, b"")]),
        _CORPUS, statuses=(0, 2)),
    Case("tar bomb", _tar_bomb, _CORPUS),
    Case("photo that is a link", _linked_photo, _EMBED),
    Case("id list that is a link", _linked_list, "show {in}/m"),
    Case("image set that climbs", lambda f: _xml(f, "", listed="../../../etc/passwd"), _VOC),
    Case("escapes in a name", _text("d.csv", "image_id,dataset,stage,action\n\x1b[2J\x1b]0;x\x07,coco,manual,remove\n"),
         "review summary {in}/d.csv"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did with a case: what is wrong (``""`` for nothing), its memory and processor time."""

    wrong: str
    mib: float
    seconds: float
    told: str


def outcome(case: Case, folder: Path, forks: Forks) -> Outcome:
    """Run a case in an empty folder."""
    inputs, place, told = folder / "in", folder / "place", folder / "told"
    inputs.mkdir()
    case.write(inputs)
    place.mkdir()
    before = {"told", "told.spent", *(path.name for path in folder.iterdir())}
    (status,) = forks.run(
        {
            "words": [word.replace("{in}", str(inputs)) for word in case.words.split()],
            "told": str(told),
            "folder": str(place),
            "seconds": MOST_SECONDS,
            "environment": {"CURATION_CACHE": str(inputs / "cache"), "COLUMNS": "80"},
        }
    )
    spent = Path(f"{told}.spent")
    mib, seconds = map(float, spent.read_text().split()) if spent.is_file() else (0.0, 0.0)
    text = told.read_text(errors="replace")
    return Outcome(_wrong(case, status, text, mib, folder, before), mib, seconds, text)


def _wrong(case: Case, status: int, told: str, mib: float, folder: Path, before: set[str]) -> str:
    if "Traceback" in told or status not in case.statuses:
        return f"exit status {status}: {told[-800:]}"
    if ": see `curation" in told or "There is no `curation" in told or "error: `curation " in told:
        return f"no such command: {told[:300]}"
    if status and "error: " not in told:
        return f"no error is told: {told[-300:]}"
    if case.told not in told:
        return f"not told of {case.told!r}: {told[-300:]}"
    if any(not (sign.isprintable() or sign in "\n\r") for sign in told):
        return "what is told would steer a terminal"
    if mib > MOST_MIB:
        return f"it took {mib:,.0f} MiB"
    if {path.name for path in folder.iterdir()} - before or any((folder / "place").iterdir()):
        return "files outside the outputs"
    return ""


def run(options: argparse.Namespace) -> int:
    """Run every case; print a table and return how many went wrong."""
    wrong = 0
    for case in CASES:
        if options.only in case.name:
            with tempfile.TemporaryDirectory(prefix="torture-") as folder, Forks(Path(folder)) as forks:
                found = outcome(case, Path(folder), forks)
            wrong += bool(found.wrong)
            line = next((one for one in found.told.splitlines() if one.startswith("error")), found.told[:80].strip())
            print(f"{case.name:<36}{found.mib:>6,.0f} MiB {found.seconds:>6.1f} s  {found.wrong or line}", flush=True)
    print(f"{len(CASES)} hostile files, {wrong} of them did what they may not")
    return wrong
