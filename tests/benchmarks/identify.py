"""Speed of `curation identify` as a whole process, and of its index, beside a plain Python loop with hashlib.

The peer is written as such scripts usually are: read the lines, cut folder and suffix off, sort the set, hash it, and
look the digest up. It knows one form of list, compares one digest, and can tell no relative.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curation.identify.index import index_bytes, make_index, packaged_index, read_index
from curation.identify.run import identify
from curation.storage import write_bytes, write_text
from tests.benchmarks.measured import measured

USUAL, LONG, LONGEST = 50_000, 1_000_000, 10_000_000
REPEATS = 3
_PEER = """
import hashlib, sys
from pathlib import Path
stems = set()
with open(sys.argv[1], encoding="utf-8") as stream:
    for line in stream:
        if line := line.strip():
            name = line.rsplit(None, 1)[0] if " " in line else line
            stems.add(Path(name).stem)
digest = hashlib.sha256()
for stem in sorted(stems):
    digest.update(f"{stem}\\n".encode())
hashes = sorted(int.from_bytes(hashlib.sha256(stem.encode()).digest()[:8], "big") for stem in stems)
print(digest.hexdigest(), hashes[:1024][-1])
"""


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds or ratio, what is required, whether it is met."""
    generator = np.random.default_rng(14)
    usual = _drawn(out / "usual.txt", generator, USUAL)
    long = _drawn(out / "long.txt", generator, LONG)
    bare = _drawn(out / "bare.txt", generator, LONG, form="{:012d}\n")
    write_bytes(out / "own.index", index_bytes(make_index(_folder(out / "known", usual)).index))
    (found,) = identify(usual, index=out / "own.index").lists
    if found.verdict != "identified" or identify(long).ok:
        raise AssertionError("a list of the index is to be identified, a drawn one to be unknown")
    loading = _seconds(lambda: read_index(packaged_index()))
    short = _process("-m", "curation", "identify", str(usual))
    many = _process("-m", "curation", "identify", str(long))
    ids = _process("-m", "curation", "identify", str(bare))
    plain = _process("-c", _PEER, str(long))
    note = f"whole process, best of {REPEATS}, a list that is in no index"
    return [
        measured("loading the packaged index", loading, "s", f"{len(read_index(packaged_index()))} lists", most=0.05),
        measured(f"identify, {USUAL:,} lines PATH LABEL", short, "s", note, most=0.3),
        measured(f"identify, {LONG:,} lines PATH LABEL", many, "s", note, most=2),
        measured(f"identify, {LONG:,} ids", ids, "s", note, most=2),
        measured(f"plain loop, {LONG:,} lines PATH LABEL", plain, "s", note),
        measured("plain loop / identify", plain / many, "ratio", note, least=2),
    ]


def _drawn(path: Path, generator: np.random.Generator, n: int, form: str = "") -> Path:
    numbers = generator.permutation(LONGEST)[:n].tolist()
    if form:
        write_text(path, "".join(map(form.format, numbers)))
    else:
        write_text(path, "".join(f"imagenet/train/n{k % 1000:08d}/n{k:08d}_{k}.JPEG {k % 1000}\n" for k in numbers))
    return path


def _folder(folder: Path, usual: Path) -> Path:
    write_text(folder / "usual.txt", usual.read_text(encoding="utf-8"))
    return folder


def _process(*arguments: str) -> float:
    return _seconds(lambda: subprocess.run([sys.executable, *arguments], check=False, capture_output=True))


def _seconds(function: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best
