"""Speed of reading lists and of the audit's rules on a million list lines, against plain Python sets.

40 lists of 25,000 lines each from 120,000 images: COCO ids, some lists with VOC's among them, some with repeats. The
peer is written as such scripts usually are: read every file into a list, make sets, intersect every pair, and hash the
sorted ids. It computes less: no line numbers, no relations, no words.

Beside it a folder of 150 lists with 3 million lines: COCO ids, and every tenth an imglist with folders and labels.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from curation.audit.lists import ListSet, read_lists
from curation.audit.run import run_audit
from curation.audit.targets import folder_target
from curation.storage import write_text
from tests.benchmarks.measured import measured

LISTS, LINES, IMAGES = 40, 25_000, 120_000
LARGE, LARGE_LINES, LABELLED_EVERY = 150, 20_000, 10
REPEATS = 3


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, seconds, lines a second or ratio, what is required, whether it is met."""
    folder = _files(out / "lists")
    seconds, found = _timed(lambda: _overlaps(folder))
    reading, lists = _timed(lambda: read_lists(folder))
    audit, judged = _timed(lambda: run_audit(folder_target(read_lists(folder))))
    if not {"DS1", "DS2", "DS4"} <= {one.rule.name for one in judged.results if one.outcome.verdict == "fail"}:
        raise AssertionError("the lists are drawn to break DS1, DS2 and DS4, and the audit does not see it")
    plain, theirs = _timed(lambda: _plain(folder))
    _check(found, theirs)
    total, large_total = LISTS * LINES, LARGE * LARGE_LINES
    large = _large_folder(out / "large")
    large_seconds, _ = _timed(lambda: _overlaps(large))
    large_rules, _ = _timed(lambda: run_audit(folder_target(read_lists(large))))
    large_note = f"{large_total:,} lines in {LARGE} files; best of {REPEATS}"
    note = f"{total:,} lines in {LISTS} files, {len(lists.images):,} ids; best of {REPEATS}"
    return [
        measured("reading", reading, "s", note),
        measured("reading, images and overlaps", seconds, "s", note),
        measured("reading and the audit's rules", audit, "s", note),
        measured("plain sets: reading, repeats, overlaps, digests", plain, "s", note),
        measured("lines a second, images and overlaps", total / seconds, "1/s", note, least=1e6),
        measured("lines a second, rules", total / audit, "1/s", note, least=1e6),
        measured("plain sets / images and overlaps", plain / seconds, "ratio", note),
        measured(
            "large folder, lines a second, images and overlaps",
            large_total / large_seconds,
            "1/s",
            large_note,
            least=1e6,
        ),
        measured("large folder, lines a second, rules", large_total / large_rules, "1/s", large_note, least=1e6),
    ]


def _files(folder: Path) -> Path:
    generator = np.random.default_rng(40)
    numbers = np.sort(generator.choice(581_929, IMAGES, replace=False) + 1)
    for place in range(LISTS):
        chosen = generator.choice(numbers, LINES, replace=place % 8 == 7)
        lines = [f"{number:012}" for number in chosen.tolist()]
        if place % 5 == 4:
            voc = generator.choice(9_963, LINES // 5, replace=False) + 1
            lines[: LINES // 5] = [f"{number:06}" for number in voc.tolist()]
        name = f"t{place // 4 + 1}_{('train', 'val', 'ft', 'test')[place % 4]}.txt"
        write_text(folder / name, "".join(f"{line}\n" for line in lines))
    return folder


def _large_folder(folder: Path) -> Path:
    generator = np.random.default_rng(150)
    for place in range(LARGE):
        chosen = np.sort(generator.choice(581_929, LARGE_LINES, replace=False) + 1).tolist()
        lines = [f"{number:012}" for number in chosen]
        if place % LABELLED_EVERY == 0:
            lines = [f"val/n{number % 1000:08}/im_{number:08}.JPEG {number % 1000}" for number in chosen]
        write_text(folder / f"set{place:03}.txt", "".join(f"{line}\n" for line in lines))
    return folder


def _plain(folder: Path) -> dict[str, Any]:
    lists = {}
    for path in sorted(folder.rglob("*.txt")):
        with path.open(encoding="utf-8") as stream:
            name = path.relative_to(folder).with_suffix("").as_posix()
            lists[name] = [line.strip() for line in stream if line.strip()]
    sets = {name: set(ids) for name, ids in lists.items()}
    repeats = {name: Counter(Counter(ids).values()) for name, ids in lists.items()}
    overlap = {(one, two): len(sets[one] & sets[two]) for one, two in combinations(sets, 2)}
    digests = {
        name: hashlib.sha256("".join(f"{one}\n" for one in sorted(ids)).encode()).hexdigest()
        for name, ids in sets.items()
    }
    return {"repeats": repeats, "overlap": overlap, "digests": digests}


def _overlaps(folder: Path) -> ListSet:
    lists = read_lists(folder)
    lists.images.overlaps  # noqa: B018 - worked out once, when asked for
    return lists


def _check(found: ListSet, plain: dict[str, Any]) -> None:
    """Raise unless both computed the same: a ratio of two different things would mean nothing."""
    place, own = found.place, found.images.overlaps
    overlap = {pair: int(own[place[pair[0]], place[pair[1]]]) for pair in plain["overlap"]}
    repeats = {one.name: Counter(np.bincount(one.members).tolist()) for one in found.lists}
    same = overlap == plain["overlap"] and all(
        {k: n for k, n in repeats[name].items() if k > 1} == {k: n for k, n in times.items() if k > 1}
        for name, times in plain["repeats"].items()
    )
    if not same:
        raise AssertionError("the lists and plain sets disagree")


def _timed(compute: Callable[[], Any]) -> tuple[float, Any]:
    best = float("inf")
    for _ in range(REPEATS):
        gc.collect()
        start = time.perf_counter()
        result = compute()
        best = min(best, time.perf_counter() - start)
    return best, result
