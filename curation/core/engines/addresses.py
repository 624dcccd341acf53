"""Files by path, or by address (``s3://…``, ``memory://…``): local ones plainly, others through fsspec.

Any path or address that the user names is opened. A path or address that a user's file names is opened only if it lies
below a root (`below`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from curation.core.errors import CurationWarning, MissingExtraError, MissingFileError
from curation.core.files import missing_path, open_binary

_SHOWN = 3
_STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""What file systems of fsspec call that which changes with a file, the most telling first."""


def is_address(text: str) -> bool:
    """Return whether a text is an address rather than a path: ``s3://bucket/corpus``."""
    return "://" in text


@contextmanager
def opened(address: str, *, kind: str = "file") -> Iterator[BinaryIO]:
    """Yield a file by path or address, open for reading.

    Raises
    ------
    MissingFileError
        It does not exist or cannot be read.
    MissingExtraError
        Its address needs a package that is not installed.
    """
    with _translated_errors(address, kind), cast("BinaryIO", _open(address, kind)) as stream:
        yield stream


def _open(address: str, kind: str) -> IO[bytes]:
    if not is_address(address):
        return open_binary(Path(address), kind=kind)
    system, path = _system(address)
    file: IO[bytes] = system.open(path, "rb")
    return file


@contextmanager
def _translated_errors(address: str, kind: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise missing_path(f"The {kind} does not exist", address) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=address, expected="a file") from None
    except ImportError as error:
        # fsspec says which package serves the protocol.
        hint = "pip install 'curation[ray]', and the package of fsspec that serves it"
        message = " ".join(str(error).split())[:200]
        raise MissingExtraError("The address cannot be opened", where=address[:200], found=message, hint=hint) from None
    except (OSError, ValueError) as error:
        raise MissingFileError(f"The {kind} cannot be read", where=address, found=str(error)[:200]) from None


def _system(address: str) -> tuple[Any, str]:
    import fsspec

    system, path = fsspec.core.url_to_fs(address)
    return system, str(path)


def size_and_stamp(address: str, *, kind: str = "file") -> tuple[int, str]:
    """Return the bytes of a file, and a text that changes when it does (see `opened` for the errors)."""
    with _translated_errors(address, kind):
        if not is_address(address):
            status = Path(address).stat()
            return status.st_size, f"{status.st_size} {status.st_mtime_ns}"
        system, path = _system(address)
        return _of_info(system.info(path))


def _of_info(info: Any) -> tuple[int, str]:
    size = int(info.get("size") or 0)
    return size, f"{size} {next((info[name] for name in _STAMPS if info.get(name)), '')}"


def files_below(address: str, suffixes: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield address, name below the folder, and stamp of every file of some suffixes, sorted by name.

    A link is followed to a file of the same folder tree alone. One that leads elsewhere, to nothing or in a circle is
    passed over, and a `CurationWarning` counts them; links to folders of the tree are passed over, since these are met
    themselves. Of a local folder one folder at a time is held in memory.

    Raises
    ------
    MissingFileError
        No such folder.
    """
    if not is_address(address):
        if not Path(address).is_dir():
            raise missing_path("The folder does not exist", address, expected="a folder")
        refused: list[str] = []
        yield from _local_below(address, "", suffixes, os.path.realpath(address), refused)
        if refused:
            warnings.warn(
                f"{len(refused):,} links below {address} lead out of it, to nothing or in a circle: not followed: "
                f"{', '.join(refused[:_SHOWN])}{', …' if len(refused) > _SHOWN else ''}",
                CurationWarning,
                stacklevel=2,
            )
        return
    with _translated_errors(address, "folder"):
        system, root = _system(address)
        entries = system.find(root, detail=True)
    prefix = root.rstrip("/") + "/"
    for path in sorted(entries):
        name = path.removeprefix(prefix)
        if PurePosixPath(name).suffix.lower() in suffixes:
            yield f"{address.rstrip('/')}/{name}", name, _of_info(entries[path])[1]


def _local_below(
    folder: str, prefix: str, suffixes: Collection[str], root: str, refused: list[str]
) -> Iterator[tuple[str, str, str]]:
    with _translated_errors(folder, "folder"), os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            yield from _local_below(entry.path, f"{prefix}{entry.name}/", suffixes, root, refused)
            continue
        is_wanted = os.path.splitext(entry.name)[1].lower() in suffixes  # noqa: PTH122 (a name, not a path)
        if entry.is_symlink() and not _stays_below(entry.path, root):
            if is_wanted or Path(entry.path).is_dir():
                refused.append(f"{prefix}{entry.name}")
        elif is_wanted and entry.is_file():
            status = entry.stat()
            yield entry.path, f"{prefix}{entry.name}", f"{status.st_size} {status.st_mtime_ns}"


def _stays_below(path: str, root: str) -> bool:
    """Return whether a link leads to what is there, below a folder."""
    try:
        return Path(os.path.realpath(path, strict=True)).is_relative_to(root)
    except OSError:
        return False


def last_name(address: str) -> str:
    """Return the name of a file without its folder."""
    return address.rstrip("/").rpartition("/")[2]
