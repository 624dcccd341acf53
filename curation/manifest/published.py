"""Lists of images as authors publish them: text files and JSON, ids with or without name space and extension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from curation.errors import ManifestError
from curation.ids import coco_native
from curation.storage import read_bytes

_EXTENSION = re.compile(r"\.(jpe?g|png)\Z", re.IGNORECASE)
_MAX_BYTES = 512 << 20
_VOC2007_DIGITS = 6
_VOC2012_YEAR = 1_000_000


class _Image(msgspec.Struct, frozen=True):
    id: int | str
    file_name: str = ""


class _CocoImages(msgspec.Struct, frozen=True):
    images: list[_Image]


def read_published(path: Path, ids: Sequence[str]) -> list[str]:
    """Return the ids of a published list in file order, namespaced as the part they are to be compared with.

    Parameters
    ----------
    path : Path
        ``.txt``: one id a line. ``.json``: an array of ids, or COCO JSON, whose ``images`` count.
    ids : sequence of str
        Ids of the part. Bare ids take its namespace; with several namespaces, the one under which the part knows them.

    Raises
    ------
    MissingFileError
        There is no such file.
    ManifestError
        It is not such a list.
    """
    data = read_bytes(path, kind="published list")
    if len(data) > _MAX_BYTES:
        raise ManifestError(
            "The published list is too large to be one", where=str(path), found=f"{len(data)} bytes"
        )
    entries = _from_json(data, path) if path.suffix.lower() == ".json" else _from_text(data, path)
    known = set(ids)
    namespaces = sorted({one.partition(":")[0] for one in known})
    return [_namespaced(entry, namespaces, known) for entry in entries]


def _from_text(data: bytes, path: Path) -> list[str | int]:
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ManifestError(
            "The published list is not UTF-8 text", where=str(path), found=str(error)[:200]
        ) from None
    entries: list[str | int] = []
    for number, line in enumerate(lines, start=1):
        word = line.strip()
        if len(word.split()) > 1 or len(word) > 300 or not word.isprintable():
            raise ManifestError(
                "A line of the published list is not one image id",
                where=f"{path}, line {number}",
                expected="one id a line",
                found=repr(word[:80]),
            )
        if word:
            entries.append(word)
    return entries


def _from_json(data: bytes, path: Path) -> list[str | int]:
    try:
        if data.lstrip()[:1] == b"{":
            images = msgspec.json.decode(data, type=_CocoImages).images
            return [PurePosixPath(image.file_name).name or image.id for image in images]
        return msgspec.json.decode(data, type=list[str | int])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(
            "The published list is neither an array of ids nor COCO JSON",
            where=str(path),
            found=str(error)[:300],
        ) from None


def _namespaced(entry: str | int, namespaces: list[str], known: set[str]) -> str:
    if isinstance(entry, str) and ":" in entry:
        return entry
    candidates = [f"{namespace}:{_native(entry, namespace)}" for namespace in namespaces]
    return next((one for one in candidates if one in known), candidates[0] if candidates else str(entry))


def _native(entry: str | int, namespace: str) -> str:
    """Return the native form of an id as a list writes it: a number without zeros, a file name."""
    text = _EXTENSION.sub("", PurePosixPath(str(entry)).name)
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        return text
    if namespace == "coco":
        return coco_native(int(text))
    if namespace == "voc2007":
        return text.zfill(_VOC2007_DIGITS)
    if namespace == "voc2012" and len(text) == 10:
        return f"{int(text) // _VOC2012_YEAR}_{int(text) % _VOC2012_YEAR:06d}"
    return text
