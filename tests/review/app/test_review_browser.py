"""The whole way in a real browser, with keys and with buttons: killed, resumed, undone, exported."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from curation.cli import main
from curation.review.decisions.files import read_decisions
from tests.review.app.review_world import coco_id
from tests.review.app.scripted_reviewer import (
    ACTIONS,
    AT_ONCE,
    Reviewer,
    ReviewServer,
    browser_page,
    draw_photos,
    numbers,
)

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DRAWN = 34


@pytest.fixture
def page() -> Iterator[Any]:
    with browser_page() as opened:
        yield opened


@pytest.fixture
def drawn(review_environment: dict[str, str], tmp_path: Path) -> Iterator[ReviewServer]:
    """A server on drawn images, in the order of their numbers."""
    annotations, photos = draw_photos(tmp_path / "drawn", DRAWN)
    given = ("--name", tmp_path.name, "--source", f"coco={annotations}", "--photos", str(photos))
    server = ReviewServer(tmp_path / "review", review_environment, given)
    server.start()
    yield server
    server.kill()


def test_keys_lose_nothing_and_double_nothing(drawn: ReviewServer, page: Any, tmp_path: Path) -> None:
    """The log equals the script's list, in order: through two kills, undos, and keys faster than the App."""
    someone = Reviewer(page, drawn)
    someone.open()
    expected: list[tuple[str, str]] = []

    # The grid: what is ticked. The checkbox that was clicked keeps the focus; a text field takes the letters itself.
    assert f"0 of {DRAWN}" in someone.bar()
    page.keyboard.press("n")
    someone.wait_for_message("No image is selected")
    someone.tick(0, 1, 2)
    page.locator('input[type="text"], input:not([type])').first.focus()
    page.keyboard.press("k")
    page.wait_for_timeout(300)
    assert someone.rows() == []
    page.evaluate("document.activeElement.blur()")
    page.keyboard.down("n")
    for _ in range(5):
        page.keyboard.down("n")
    page.keyboard.up("n")
    expected += [(one, "to_near") for one in numbers(1, 2, 3)]
    someone.wait_for_rows(3)
    page.get_by_text(f"{DRAWN - 3} samples", exact=True).first.wait_for()
    assert f"3 of {DRAWN}" in someone.bar()

    # The enlarged view, at human pace: on to the next image. A held key is one verdict.
    assert someone.enlarge() == coco_id(4)
    for place, letter in enumerate("krnfu", 4):
        judged = someone.judge(letter)
        assert judged == (coco_id(place), ACTIONS[letter])
        expected.append(judged)
        page.wait_for_timeout(150)
    expected.append(_seen_at_once_as_the_app_shows_it(someone))
    page.keyboard.down("f")
    for _ in range(5):
        page.keyboard.down("f")
    page.keyboard.up("f")
    expected.append((coco_id(10), "to_far"))
    someone.wait_for_rows(len(expected))
    someone.wait_for_image(coco_id(11))
    page.keyboard.press("Control+k")
    page.keyboard.press("?")
    page.get_by_text("Keys of the review").wait_for()
    page.keyboard.press("r")
    page.get_by_text("Keys of the review").wait_for(state="hidden")
    assert someone.rows() == expected

    # Killed: the page says so and stays where it is; the key pressed again is one verdict.
    drawn.kill()
    page.keyboard.press("k")
    someone.wait_for_message("If the review was ended, start it again")
    assert someone.rows() == expected
    drawn.start()
    someone.open()
    assert f"10 of {DRAWN}" in someone.bar()
    assert someone.enlarge() == coco_id(11)

    # As fast as they go, and killed amid it: the log holds a beginning of what was pressed, whole rows in their order.
    pressed = [(coco_id(11 + place), ACTIONS["krnfu"[place % 5]]) for place in range(14)]
    for place in range(14):
        page.keyboard.press("krnfu"[place % 5])
    someone.wait_for_rows(len(expected) + 6)
    drawn.kill()
    rows = someone.rows()
    assert rows[: len(expected)] == expected
    recorded = rows[len(expected) :]
    assert recorded == pressed[: len(recorded)]
    expected = rows
    drawn.start()
    someone.open()
    first = 11 + len(recorded)
    assert someone.enlarge() == coco_id(first)

    # Undo of what was decided before the view was opened: that is in no list, and is followed by what was shown before.
    for number in (first - 1, first - 2):
        page.keyboard.press("z")
        someone.wait_for_image(coco_id(number))
        expected.append((coco_id(number), "undo"))
    for number in (first - 2, first - 1):
        judged = someone.judge("k")
        assert judged == (coco_id(number), ACTIONS["k"])
        expected.append(judged)
    assert someone.shown() == coco_id(first)

    # Back two images and on again, across images that were decided: undo opens what it took back.
    for letter in "nn":
        expected.append(someone.judge(letter))
    for number in (first + 1, first):
        page.keyboard.press("z")
        someone.wait_for_image(coco_id(number))
        expected.append((coco_id(number), "undo"))
    expected.append(someone.judge("r"))
    assert someone.shown() == coco_id(first + 1)
    page.keyboard.press("ArrowRight")
    someone.wait_for_image(coco_id(first + 2))
    expected.append(someone.judge("f"))
    assert someone.shown() == coco_id(first + 3)
    page.keyboard.press("z")
    someone.wait_for_image(coco_id(first + 2))
    expected.append((coco_id(first + 2), "undo"))
    page.keyboard.press("ArrowLeft")
    someone.wait_for_image(coco_id(first + 1))

    # All that is left at once, and more keys than images: the end of the list is told, and nothing is judged twice.
    left = range(first + 1, DRAWN + 1)
    for _ in range(len(left) + 10):
        page.keyboard.press("u")
    expected += [(coco_id(number), "unsure") for number in left]
    page.locator('[data-cy="modal"]').wait_for(state="hidden", timeout=90_000)
    someone.wait_for_rows(len(expected))
    page.wait_for_timeout(1000)
    assert someone.rows() == expected
    assert f"{DRAWN} of {DRAWN}, all decided" in someone.bar()
    page.keyboard.press("z")
    page.get_by_text("1 sample", exact=True).first.wait_for()
    expected.append((coco_id(DRAWN), "undo"))
    assert someone.enlarge() == coco_id(DRAWN)
    page.keyboard.press("k")
    expected.append((coco_id(DRAWN), "keep"))
    someone.wait_for_message("End of the list")

    # A click in the strip does what the key does; the export holds what stands.
    page.get_by_role("button", name="z undo").click()
    expected.append((coco_id(DRAWN), "undo"))
    someone.wait_for_rows(len(expected))
    assert someone.rows() == expected
    assert main(["review", "export", "--folder", str(drawn.folder), "--out", str(tmp_path / "export.jsonl")]) == 0
    standing = {image: action for image, action in expected if action != "undo"}
    del standing[coco_id(DRAWN)]
    exported = read_decisions(tmp_path / "export.jsonl").decisions
    assert {row.image_id: row.action for row in exported} == standing
    assert len(exported) == DRAWN - 1
    # A server waits for a page that is still open.
    page.goto("about:blank")
    assert "every decision is in the log" in drawn.stop()


GUIDE = """# Does the photo show a horse?

## near
An animal with hooves.

## far
Anything else.

## remove
A horse, also drawn or as a toy.

## Reasons
1. toy
2. mirror image
"""


def test_the_guide_the_reasons_skip_and_the_last_decisions(
    review_environment: dict[str, str], page: Any, tmp_path: Path
) -> None:
    """The question is asked, a number is the reason, skip leaves no row, and a decision is opened again and changed."""
    annotations, photos = draw_photos(tmp_path / "drawn", 8)
    (tmp_path / "guide.md").write_text(GUIDE)
    given = ("--name", tmp_path.name, "--source", f"coco={annotations}", "--photos", str(photos))
    server = ReviewServer(tmp_path / "review", review_environment, (*given, "--guide", str(tmp_path / "guide.md")))
    server.start()
    try:
        someone = Reviewer(page, server)
        someone.open()
        assert "Does the photo show a horse?" in someone.bar()
        assert someone.enlarge() == coco_id(1)
        page.keyboard.press("2")
        assert page.locator("#curation-review-reason").input_value() == "mirror image"
        someone.judge("r")
        assert page.locator("#curation-review-reason").input_value() == ""
        # Chosen twice is not chosen; a click chooses as the key does, and so do letters in the field.
        page.keyboard.press("1")
        page.keyboard.press("1")
        someone.judge("n")
        page.get_by_role("button", name="1 toy").click()
        page.get_by_role("button", name="f far").click()
        someone.wait_for_image(coco_id(4))
        page.locator("#curation-review-reason").fill("fog")
        page.keyboard.press("Enter")
        # Skip: the next image, and no row.
        page.keyboard.press("x")
        someone.wait_for_image(coco_id(5))
        someone.judge("k")
        latest = page.locator("#curation-review-latest a")
        assert [one.get_attribute("data-image") for one in latest.all()] == numbers(5, 3, 2, 1)
        assert "left" in someone.bar()
        # One of them again, judged anew; from the enlarged view and from the grid.
        latest.nth(2).click()
        someone.wait_for_image(coco_id(2))
        page.keyboard.press("f")
        someone.wait_for_rows(5)
        someone.close()
        latest.nth(3).click()
        page.locator('[data-cy="modal"]').wait_for()
        someone.wait_for_image(coco_id(1))
        page.keyboard.press("n")
        someone.wait_for_rows(6)
        rows = [(row.image_id, row.action, row.reason) for row in read_decisions(server.log).decisions]
        assert rows == [
            (coco_id(1), "remove", "mirror image"),
            (coco_id(2), "to_near", ""),
            (coco_id(3), "to_far", "toy"),
            (coco_id(5), "keep", "fog"),
            (coco_id(2), "to_far", ""),
            (coco_id(1), "to_near", ""),
        ]
        page.goto("about:blank")
        server.stop()
    finally:
        server.kill()


def _seen_at_once_as_the_app_shows_it(someone: Reviewer) -> tuple[str, str]:
    """Judge an image; the next is seen with its boxes and evidence before the App shows it, and where it shows it."""
    page = someone.page
    # Kept from hearing that the App has drawn it, the page goes on showing what it showed at once.
    page.evaluate("addEventListener('canvas-loaded', event => window.held && event.stopPropagation(), true)")
    page.evaluate("window.held = true")
    following = numbers(int(someone.shown()[-12:]) + 1)[0]
    # Only a photo that is there in time is shown at once.
    page.wait_for_function("number => decoded.includes(number)", arg=following[-12:])
    judged = someone.judge("n")
    assert page.locator(AT_ONCE).get_attribute("data-image") == following
    assert page.locator("#curation-review-evidence").get_attribute("data-image") == following
    assert page.locator(AT_ONCE).inner_text() in ("zebra", "pizza")
    page.wait_for_function("name => window.ownName === name", arg=following)
    assert page.evaluate("ownAt > shownAt")
    page.wait_for_timeout(500)
    place = page.locator('[data-cy="modal-looker-container"]')
    at_once = place.screenshot()
    page.evaluate("window.held = false; window.dispatchEvent(new Event('wheel'))")
    assert page.locator(AT_ONCE).count() == 0
    one, other = (np.asarray(Image.open(BytesIO(shot)).convert("RGB"), int) for shot in (at_once, place.screenshot()))
    # Letters, and the shaded edges of an enlarged photo, may differ; a box or a photo elsewhere is far more.
    assert (np.abs(one - other).max(axis=2) > 40).mean() < 0.01
    return judged
