"""A long list that is read in blocks has the entries, the answer and the digests of one that is read as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from curation.extensions.identify.run import identify
from curation.sources import long_lists
from curation.sources.published_list import read_published

_LINES = 31_000
_MOST_KIB = 240 << 10
"""Peak memory of 2 million paths: read as a whole they take three times as much."""
_ORDER = np.random.default_rng(3).permutation(40_000)[:_LINES].tolist()
_IN_BLOCKS = {
    "ids": "".join(f"{n:012d}\n" for n in _ORDER),
    "short numbers": "".join(f"{n}\n" for n in _ORDER),
    "paths": "".join(f"train/{n % 7}/img_{n:06d}.jpg\n" for n in _ORDER),
    "comments and blanks": "# a list\n\n" + "".join(f"a\\b//{n}.JPEG \n" for n in _ORDER),
    "labels": "".join(f"n{n % 9:08d}/n{n:06d}.JPEG {n % 9}\n" for n in _ORDER),
    "flags": "".join(f"{n:06d} {n % 3 - 1}\n" for n in _ORDER),
    "stems repeat": "".join(f"{n // 50:04d}/{n % 50:02d}.png\n" for n in _ORDER),
    "lines repeat": "".join(f"x/{n // 2}.png\n" for n in _ORDER),
    "namespaces": "".join(f"coco:{n:012d}\n" for n in _ORDER),
    "no last line feed": "\n".join(f"{n:012d}" for n in _ORDER),
    "mark and letters": "\ufeff" + "".join(f"Bäume/{n}.png\r\n" for n in _ORDER),
}
_AS_A_WHOLE = {
    "cut number": _IN_BLOCKS["ids"][:-4],
    "cut path": _IN_BLOCKS["paths"][:-6],
    "cut label": _IN_BLOCKS["labels"][:-3],
    "one blank": _IN_BLOCKS["paths"] + "a b.jpg\n",
    "one label": _IN_BLOCKS["paths"] + "a.jpg 3\n",
    "table": "path,label\n" + "".join(f"x/{n}.png,cat\n" for n in _ORDER),
    "two files": "".join(f"l/{n}.png r/{n}.png\n" for n in _ORDER),
    "frames": "".join(f"{n % 90} {n}\n" for n in _ORDER),
    "few lines": "a.jpg\nb.jpg\n",
    "a line that fills a block": _IN_BLOCKS["paths"] + "a" * 200_000 + "\n" + _IN_BLOCKS["paths"],
}


@pytest.mark.parametrize("name", [*_IN_BLOCKS, *_AS_A_WHOLE])
def test_blocks_and_the_whole_give_one_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes((_IN_BLOCKS | _AS_A_WHOLE)[name].encode())
    whole, answer = read_published(path), identify(path)
    monkeypatch.setattr(long_lists, "LONG", 1)
    monkeypatch.setattr(long_lists, "_BLOCK", 50_000)
    read = long_lists.read_long(path)
    [listed], [expected] = read.lists, whole.lists
    assert (listed.packed is not None) == (name in _IN_BLOCKS)
    assert (read.form, read.sha256, read.size) == (whole.form, whole.sha256, whole.size)
    assert b"".join(listed.blocks()) == expected.paths
    assert listed.lines.tolist() == expected.lines.tolist()
    assert (listed.labels is None) == (expected.labels is None)
    assert listed.labels is None or listed.labels.tolist() == expected.labels.tolist()
    assert (listed.are_stems, listed.odd, listed.odd_lines) == (expected.are_stems, expected.odd, expected.odd_lines)
    blocked = identify(path)
    assert blocked.text() == answer.text()
    assert blocked.data() == answer.data()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak memory of a process")
def test_two_million_paths_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(
        "".join(f"train/{n % 1000:04d}/image_of_a_camera_{n * 7919 % 2_000_003:09d}.jpg\n" for n in range(2_000_000))
    )
    code = (
        "import sys; from curation.extensions.identify.run import identify; identify(sys.argv[1]).text();"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    peak = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True).stdout
    assert int(peak) < _MOST_KIB
