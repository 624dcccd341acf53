"""The bytes of a raw file together with their digest, which is computed while the bytes are parsed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from curation.errors import MissingFileError, SourceError
from curation.input_files import plain
from curation.storage import read_bytes


class FileContent:
    """One raw file in memory.

    It is read, not mapped: a mapped file that another process truncates ends the program with a bus error. Mapping
    would spare a twentieth of the time of a first build, and no memory at its peak.

    Attributes
    ----------
    name : str
        Plain file name.
    size : int
        Bytes on disk.
    data : bytes
        What the file holds: unpacked where it is gzip, and without a byte order mark.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        self._stamp = _stamp(path)
        raw = read_bytes(path, kind="annotation file")
        self.size = len(raw)
        self._digest = _in_thread(lambda: "sha256:" + hashlib.sha256(raw).hexdigest())
        self.data = plain(raw, str(path))

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes on disk; waits until the thread that computes it is done.

        Raises
        ------
        SourceError
            The file changed since it was opened, so that digest and parse may speak of different bytes.
        """
        digest = self._digest.result()
        if _stamp(self._path) != self._stamp:
            raise SourceError(
                "The annotation file changed while it was read", where=str(self._path), hint="run again"
            )
        return digest


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        facts = path.stat()
    except OSError as error:
        raise MissingFileError(
            f"The annotation file cannot be read: {error.strerror}", where=str(path)
        ) from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _in_thread(compute: Callable[[], str]) -> Future[str]:
    """Start a computation; hashing releases the interpreter lock, so it costs a second core and no time."""
    future: Future[str] = Future()

    def work() -> None:
        try:
            future.set_result(compute())
        except BaseException as error:
            future.set_exception(error)

    # A daemon: an input error must end the program at once, not after the rest of the file is hashed.
    Thread(target=work, daemon=True, name="sha256").start()
    return future
