"""Parsing a VOC folder in a second process while this one decodes a large JSON file; the cache carries the result.

Thousands of small XML files keep the interpreter busy, which decodes nothing else meanwhile. The second process opens
the source as anyone would and so leaves it in the cache. Whatever becomes of that process, the caller opens the source
itself afterwards: it finds it in the cache, or reads it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curation.errors import CurationError
from curation.sources.integrity import BadBoxes


@contextmanager
def parsing_ahead(path: Path, dataset: str, part: str, *, cache: Path, bad_boxes: str) -> Iterator[None]:
    """Parse a source into the cache in another process during the ``with`` block, and wait for it at its end."""
    arguments = [str(path), dataset, part, str(cache), bad_boxes]
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "curation.sources.ahead", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        yield
        return
    try:
        yield
        process.wait()
    finally:
        process.kill()
        process.wait()


def main(arguments: list[str]) -> int:
    """Open one source into the cache; errors are left to the caller, who meets them again and reports them."""
    from curation.sources.opening import open_source

    path, dataset, part, cache, bad_boxes = arguments
    policy: BadBoxes = "drop" if bad_boxes == "drop" else "error"
    try:
        open_source(Path(path), dataset=dataset, part=part, cache=Path(cache), bad_boxes=policy)
    except (CurationError, OSError, MemoryError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
