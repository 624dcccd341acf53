"""A box drawn in a real browser, in Annotate mode: it stands in the log with the right pixels."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from curation.decisions.box_edits import BoxRow, Replay, read_box_log
from curation.review.missing_boxes import BOXES_FILE
from tests.review.review_world import coco_id
from tests.review.scripted_reviewer import browser_page, keep_picture
from tests.review.test_serving import Served, ended, started
from tests.worlds.coco_file import coco_content, write_json

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
SIZE = (640, 480)
THINGS = {"zebra": (40, 60, 200, 220), "unannotated": (330, 150, 500, 400)}


@pytest.fixture
def served(review_environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    """A review of two drawn photos, on each of which the annotations lack the second object."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in (1, 2):
        photo = Image.new("RGB", SIZE, (190, 205, 190))
        pen = ImageDraw.Draw(photo)
        pen.rectangle(THINGS["zebra"], fill=(250, 250, 250), outline=(10, 10, 10), width=8)
        pen.ellipse(THINGS["unannotated"], fill=(170, 60, 40), outline=(90, 20, 10), width=6)
        photo.save(photos / f"{number:012d}.jpg")
    x, y, right, low = THINGS["zebra"]
    rows = [(number, "zebra", [x, y, right - x, low - y]) for number in (1, 2)]
    names = {number: f"{number:012d}.jpg" for number in (1, 2)}
    truth = write_json(tmp_path / "instances.json", coco_content(names, rows, ["zebra", "horse"], size=SIZE))
    folder = tmp_path / "drawn-review"
    given = ("--source", f"coco={truth}", "--photos", str(photos), "--no-cache")
    one = started(review_environment, folder, *given)
    try:
        yield one, folder
    finally:
        ended(one, signal.SIGTERM)


@pytest.fixture
def page() -> Iterator[Any]:
    with browser_page(height=900, draws=True) as opened:
        yield opened


def logged(folder: Path, rows: int, page: Any) -> list[BoxRow]:
    """Return the rows of the log once it has so many."""
    for _ in range(100):
        path = folder / BOXES_FILE
        found = list(read_box_log(path).rows) if path.exists() else []
        if len(found) >= rows:
            return found
        page.wait_for_timeout(200)
    return found


def test_a_box_that_is_drawn_is_in_the_log_with_its_pixels(served: tuple[Served, Path], page: Any) -> None:
    one, folder = served
    page.goto(f"http://127.0.0.1:{one.port}/?token={one.token}")
    page.locator('[data-cy="looker"]').first.wait_for()
    notice = page.get_by_role("button", name="Dismiss")
    if notice.count():
        notice.first.click()
    page.locator('[data-cy="looker"]').first.click()
    page.locator('[data-cy="modal"]').wait_for()
    page.get_by_text("Annotate", exact=True).first.click()
    page.wait_for_timeout(3000)
    page.locator('[data-cy="detection-mode"]').first.click()
    left, high, right, low = THINGS["unannotated"]
    drag(page, (left, high), (right, low))
    keep_picture(page, "annotate")
    edit, outcome = logged(folder, 2, page)[:2]
    assert (edit.operation, edit.reviewer, edit.size) == ("add", "anna", SIZE)
    assert edit.image_id in (coco_id(1), coco_id(2))
    assert edit.after is not None
    assert edit.after.label == "unknown"
    # One pixel of the screen is more than half a pixel of the photo.
    expected = (left, high, right - left, low - high)
    assert all(abs(float(one) - other) < 2 for one, other in zip(edit.after.box, expected, strict=True)), edit.after
    assert (outcome.outcome, outcome.status, outcome.number) == ("applied", 200, edit.number)
    # Undo is the App's own, and one more edit in the log.
    page.keyboard.press("Control+z")
    rows = logged(folder, 4, page)
    assert [row.operation or row.outcome for row in rows[2:]] == ["remove", "applied"]
    # The enlarged view has a button for the declaration, by the name of its operator.
    ask(page, "boxes_complete")
    rows = logged(folder, 5, page)
    assert rows[4].row == "complete"
    found = Replay.of(rows)
    assert (found.boxes[edit.image_id, "anna"], found.complete) == ({}, {(edit.image_id, "anna")})


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw from one pixel of the photo to another: it fills the canvas as far as it can, in the middle."""
    box = page.locator('[data-cy="modal"] canvas').first.bounding_box()
    scale = min(box["width"] / SIZE[0], box["height"] / SIZE[1])
    edge = [box[name] + (box[side] - scale * size) / 2 for name, side, size in
            (("x", "width", SIZE[0]), ("y", "height", SIZE[1]))]  # fmt: skip
    first, last = ([corner + scale * one for corner, one in zip(edge, place, strict=True)] for place in (start, end))
    page.mouse.move(*first)
    page.mouse.down()
    page.mouse.move(*last, steps=8)
    page.mouse.up()


def ask(page: Any, operator: str) -> None:
    """Run an operator of the plugin as its button in the enlarged view does."""
    page.evaluate("name => __foo__.executeOperator(`@curation/review/${name}`, {})", operator)
