"""The bytes of a raw file together with their digest, which is computed while the bytes are parsed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from curation.canonical import sha256_of_bytes
from curation.storage import read_bytes


class FileContent:
    """One raw file in memory.

    Attributes
    ----------
    name : str
        Plain file name.
    data : bytes
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.data = read_bytes(path, kind="annotation file")
        self._digest = _in_thread(lambda: sha256_of_bytes(self.data))

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes; waits until the thread that computes it is done."""
        return self._digest.result()


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
