"""Digests remembered by what the file system says of a file, so that 400 MB are not hashed on every run.

As in git's index, a file whose size, times and inode are as they were is taken to hold what it held; a stamp taken
within two seconds of the file's last change is not trusted, since a second change in that time might not show.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from curation.storage import write_bytes

_RACY = 2_000_000_000


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    listing: str
    digest: str
    size: int
    changed: int
    recorded: int


class Stamp:
    """What the file system says of some files at one moment.

    Attributes
    ----------
    listing : str
        Hex digest of path, size, modification and change time, inode and device of each file.
    changed : int
        Nanoseconds since the epoch of the last change of any of them.
    taken : int
        Nanoseconds since the epoch when the file system was asked.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.taken = time.time_ns()
        digest = hashlib.sha256()
        self.changed = 0
        for path in paths:
            facts = os.stat(path)  # noqa: PTH116 (thousands of paths; a Path each would cost more than the call)
            line = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)
            digest.update(f"{path}\0{line}\n".encode("utf-8", "surrogateescape"))
            self.changed = max(self.changed, facts.st_mtime_ns, facts.st_ctime_ns)
        self.listing = digest.hexdigest()


class Memo:
    """Remembered digests, one small file a set of paths, in a folder.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, stamp: Stamp) -> tuple[str, int] | None:
        """Return the remembered digest and size, or None where there is none to trust (a damaged entry is none)."""
        try:
            entry = msgspec.json.decode(self._path(stamp).read_bytes(), type=_Entry)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if (
            entry.listing != stamp.listing
            or entry.recorded - entry.changed <= _RACY
            or entry.changed != stamp.changed
        ):
            return None
        return entry.digest, entry.size

    def record(self, stamp: Stamp, digest: str, size: int) -> None:
        """Remember a digest; raises `OSError` or `UsageError` where the folder may not be written."""
        entry = _Entry(stamp.listing, digest, size, stamp.changed, stamp.taken)
        write_bytes(self._path(stamp), msgspec.json.encode(entry), guarded=False)

    def _path(self, stamp: Stamp) -> Path:
        return self.folder / f"{stamp.listing[:40]}.json"
