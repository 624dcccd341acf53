"""Lists of images as authors publish them: text files and JSON, ids with or without name space and extension."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from curation.canonical import sha256_of_bytes
from curation.errors import ManifestError, MissingFileError
from curation.ids import native_of
from curation.input_files import filled_lines, read_plain
from curation.json_keys import refuse_repeated_keys
from curation.storage import read_bytes

_EXTENSION = re.compile(r"\.(jpe?g|png)\Z", re.IGNORECASE)
_MAX_BYTES = 512 << 20
_MAX_LIST_BYTES = 64 << 20

_FORMS: Mapping[str, re.Pattern[str]] = {
    "coco": re.compile(r"[0-9]{12}"),
    "voc2007": re.compile(r"[0-9]{6}"),
    "voc2012": re.compile(r"[0-9]{4}_[0-9]{6}"),
}
"""The one form in which the ids of a name space stand in lists that mix several datasets."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """An authors' list as its file holds it: path, bytes, and their digest ``sha256:<hex>``."""

    path: Path
    data: bytes
    sha256: str

    def lines(self) -> tuple[str, ...]:
        """Return the words of the lines in file order, repeats kept.

        Raises
        ------
        ManifestError
            The file is not UTF-8, or a line is empty or no single word.
        """
        words = _from_text(self.data, self.path)
        count = self.data.count(b"\n") + (not self.data.endswith(b"\n") if self.data else 0)
        if len(words) != count:
            raise ManifestError(
                "A published list has empty lines",
                where=str(self.path),
                expected="one id a line",
                found=f"{len(words)} ids on {count} lines",
            )
        return tuple(str(word) for word in words)


def read_published_file(path: Path) -> PublishedFile:
    """Return the bytes and the digest of an authors' list.

    Raises
    ------
    MissingFileError
        There is no regular file of this name, or it cannot be read.
    ManifestError
        It is larger than any list of ids.
    """
    if not path.is_file():
        raise MissingFileError("The published list is no file", where=str(path))
    if (size := path.stat().st_size) > _MAX_LIST_BYTES:
        raise ManifestError(
            "The published list is too large to be one",
            where=str(path),
            expected=f"at most {_MAX_LIST_BYTES} bytes",
            found=str(size),
        )
    data = read_bytes(path, kind="published list")
    return PublishedFile(path, data, sha256_of_bytes(data))


def namespaced_by_form(text: str, namespaces: Iterable[str]) -> str | None:
    """Return ``namespace:text`` under the one of some name spaces in whose form an id is written; None without one.

    Twelve digits are COCO's, six VOC2007's, year and number VOC2012's; another name space takes any text.

    >>> namespaced_by_form("000005", ["voc2007", "voc2012", "coco"])
    'voc2007:000005'
    """
    fitting = [name for name in namespaces if name not in _FORMS or _FORMS[name].fullmatch(text)]
    return f"{fitting[0]}:{text}" if len(fitting) == 1 else None


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
        Ids of the part. Bare ids take its namespace; with several namespaces, the one in whose form they are
        written, else the one under which the part knows them.

    Raises
    ------
    MissingFileError
        There is no such file.
    ManifestError
        It is not such a list.
    """
    data = read_plain(path, kind="published list")
    if len(data) > _MAX_BYTES:
        raise ManifestError(
            "The published list is too large to be one", where=str(path), found=f"{len(data)} bytes"
        )
    entries = _from_json(data, path) if path.suffix.lower() == ".json" else _from_text(data, path)
    known = set(ids)
    namespaces = sorted({one.partition(":")[0] for one in known})
    return [_namespaced(entry, namespaces, known) for entry in entries]


def _from_text(data: bytes, path: Path) -> list[str | int]:
    what = "The published list is not UTF-8 text"
    lines = filled_lines(data, str(path), ManifestError, what, encoding="utf-8")
    for number, word in lines:
        if len(word.split()) > 1 or len(word) > 300 or not word.isprintable():
            raise ManifestError(
                "A line of the published list is not one image id",
                where=f"{path}, line {number}",
                expected="one id a line",
                found=repr(word[:80]),
            )
    words: list[str | int] = [word for _, word in lines]
    return words


def _from_json(data: bytes, path: Path) -> list[str | int]:
    refuse_repeated_keys(data, str(path), ManifestError)
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
    # Filled up with zeros, VOC's 000139 would be COCO's 139: the digits as written decide before any filling.
    if len(namespaces) > 1 and (exact := namespaced_by_form(_stem(entry), namespaces)):
        return exact
    candidates = [f"{namespace}:{native_of(_stem(entry), namespace)}" for namespace in namespaces]
    return next((one for one in candidates if one in known), candidates[0] if candidates else str(entry))


def _stem(entry: str | int) -> str:
    """Return an id without folder and extension, where a list writes file names."""
    return _EXTENSION.sub("", PurePosixPath(str(entry)).name)
