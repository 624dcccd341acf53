"""Which files of a folder this tool wrote, and with which bytes: a list beside them that `sha256sum -c` reads too.

A line is ``<64 hex digits>  <file name>``, sorted. A file that was edited since, or came from elsewhere, is not in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LEDGER = ".curation.sha256"

_HEX = 64
_MAX_BYTES = 64 << 20

Entries = frozenset[tuple[str, str]]
"""Pairs of file name and digest; a name has two digests only where a kill fell between a record and a rename."""


def entries_of(folder: Path) -> Entries:
    """Return what the ledger of a folder lists; nothing where there is none, and no line that it cannot read."""
    path = folder / LEDGER
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return frozenset()
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return frozenset()
    found = (line.partition("  ") for line in text.split("\n"))
    return frozenset((name, digest) for digest, _, name in found if name and len(digest) == _HEX)


def ledger_text(entries: Entries) -> str:
    """Return the text of a ledger: the same entries are the same bytes."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(entries))


def may_be_listed(name: str) -> bool:
    """Return whether a file name fits on a line; one with a line feed is never recognised as this tool's own."""
    return name.isprintable()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder's ledger, so that commands that write into one folder at once lose no line."""
    handle = None
    # Without locks (Windows, some network disks) a line may get lost, and its file is refused later: never worse.
    with suppress(OSError, ImportError):
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
