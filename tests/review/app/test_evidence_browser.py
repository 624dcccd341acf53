"""The enlarged view in a real browser: evidence beside the image, keys, thumbnail; a box drawn in Annotate mode."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from curation.review.app.missing_boxes import BOXES_FILE
from curation.review.decisions.box_edits import BoxRow, Replay, read_box_log
from curation.review.decisions.files import read_decisions
from curation.review.proposals.proposal import Evidence, ProposalSet, write_proposals
from tests.review.app.review_world import HEIGHT, WIDTH, coco_id, write_world
from tests.review.app.scripted_reviewer import Reviewer, ReviewServer, browser_page, keep_picture

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NEAREST = "voc2012:2008_000008"
UNANNOTATED = (66.0, 12.0, 90.0, 58.0)
"""Corners of a box beside those that the annotations have."""


@pytest.fixture(scope="module")
def served(review_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    """An App on the twelve photos, one of them empty: verdicts of one test and boxes of the other have two logs."""
    folder = tmp_path_factory.mktemp("evidence")
    world = write_world(folder / "world")
    (folder / "voc").mkdir()
    Image.new("RGB", (320, 200), (180, 40, 200)).save(folder / "voc" / "2008_000008.jpg")
    (world.photos / "000000000003.jpg").write_bytes(b"")
    looks = Evidence(kind="image_image", detail=f"looks like {NEAREST}", score="0.8123", threshold="0.7012")
    made = tuple(msgspec.structs.replace(one, evidence=(*one.evidence, looks)) for one in world.proposals())
    proposed = ProposalSet(id_classes=("person",), thresholds={}, inputs=(), proposals=made)
    write_proposals(folder / "proposals.jsonl", proposed)
    given = ("--name", "evidence", "--source", f"coco={world.annotations}", "--photos", str(world.photos), "--no-cache")
    given += ("--photos", f"id:voc2012={folder / 'voc'}", "--proposals", str(folder / "proposals.jsonl"))
    server = ReviewServer(folder / "review", review_environment, given)
    server.start()
    yield server
    # What fails meanwhile must not leave a server that is waited for without end.
    server.kill()


@pytest.fixture
def page() -> Iterator[Any]:
    with browser_page(draws=True) as opened:
        yield opened


def test_the_evidence_stands_beside_the_image(served: ReviewServer, page: Any) -> None:
    assert "1 image not shown, photo empty" in served.told
    media = []
    page.on("response", lambda answer: media.append((answer.status, answer.url)) if "/media" in answer.url else None)
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.goto(served.address)
    page.get_by_text("11 samples", exact=True).first.wait_for()
    page.get_by_role("button", name="Dismiss").click()
    keep_picture(page, "grid-with-tags")
    for tag in ("remove?", "0.812", "person"):
        page.get_by_text(tag, exact=True).first.wait_for()

    page.locator('[data-cy="looker"]').first.click()
    evidence = page.locator(f'#curation-review-evidence[data-image="{coco_id(12)}"]')
    evidence.wait_for()
    for told in ("person (1 object)", "an annotation names an ID class", "0.8123", "0.7012", NEAREST, "known: person"):
        evidence.get_by_text(told, exact=True).first.wait_for()
    # The nearest ID image is there as a picture, handed out by the server.
    photo = evidence.locator("img")
    page.wait_for_function("document.querySelector('#curation-review-evidence img').naturalWidth === 320")
    assert photo.get_attribute("alt") == NEAREST
    assert any(status == 200 and "2008_000008.jpg" in url for status, url in media)
    # Beside, not behind: the image's own panel is on the screen, to the left.
    image = page.locator('[data-cy="modal-looker-container"]').bounding_box()
    beside = evidence.bounding_box()
    assert image["width"] > 500
    assert image["x"] + image["width"] <= beside["x"] + 2
    assert beside["width"] > 250
    keep_picture(page, "enlarged-with-evidence")

    # No field takes the keys: a verdict goes on, and the evidence with it.
    assert evidence.locator("input, textarea").count() == 0
    page.keyboard.press("r")
    page.locator(f'#curation-review-evidence[data-image="{coco_id(11)}"]').wait_for()
    page.keyboard.press("ArrowLeft")
    evidence.wait_for()
    evidence.get_by_text("remove", exact=True).wait_for()
    rows = read_decisions(served.log).decisions
    assert [(row.image_id, row.action, row.reviewer) for row in rows] == [(coco_id(12), "remove", "anna")]
    # An arrow that is pressed before the step is done comes after it.
    for key in ("u", "ArrowLeft", "r"):
        page.keyboard.press(key)
    until = time.monotonic() + 30
    while len(rows) < 3 and time.monotonic() < until:
        page.wait_for_timeout(50)
        rows = read_decisions(served.log).decisions
    assert [(row.image_id, row.action) for row in rows] == [
        (coco_id(12), said) for said in ("remove", "unsure", "remove")
    ]
    page.keyboard.press("Escape")


def logged(path: Path, rows: int, page: Any) -> list[BoxRow]:
    """Return the rows of the log once it has so many."""
    for _ in range(400):
        found = list(read_box_log(path).rows) if path.exists() else []
        if len(found) >= rows:
            return found
        page.wait_for_timeout(50)
    return found


def test_a_box_that_is_drawn_is_in_the_log_with_its_pixels(served: ReviewServer, page: Any) -> None:
    log, someone = served.folder / BOXES_FILE, Reviewer(page, served)
    someone.open()
    shown = someone.enlarge()
    page.get_by_text("Annotate", exact=True).first.click()
    # A canvas is 300 pixels wide until something is drawn on it.
    page.wait_for_function("document.querySelector('[data-cy=modal] canvas')?.width > 300")
    page.wait_for_timeout(500)
    page.locator('[data-cy="detection-mode"]').first.click()
    left, high, right, low = UNANNOTATED
    drag(page, (left, high), (right, low))
    keep_picture(page, "annotate")
    edit, outcome = logged(log, 2, page)[:2]
    assert (edit.operation, edit.reviewer, edit.size) == ("add", "anna", (WIDTH, HEIGHT))
    assert edit.image_id == shown
    assert edit.after is not None
    assert edit.after.label == "unknown"
    # One pixel of the screen is a tenth of a pixel of the photo.
    expected = (left, high, right - left, low - high)
    assert all(abs(float(one) - other) < 0.3 for one, other in zip(edit.after.box, expected, strict=True)), edit.after
    assert (outcome.outcome, outcome.status, outcome.number) == ("applied", 200, edit.number)
    # Undo is the App's own, and one more edit in the log.
    page.keyboard.press("Control+z")
    rows = logged(log, 4, page)
    assert [row.operation or row.outcome for row in rows[2:]] == ["remove", "applied"]
    # The enlarged view has a button for the declaration, by the name of its operator.
    page.evaluate("__foo__.executeOperator('@curation/review/boxes_complete', {})")
    rows = logged(log, 5, page)
    assert rows[4].row == "complete"
    found = Replay.of(rows)
    assert (found.boxes[edit.image_id, "anna"], found.complete) == ({}, {(edit.image_id, "anna")})


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw from one pixel of the photo to another: it fills the canvas as far as it can, in the middle."""
    box = page.locator('[data-cy="modal"] canvas').first.bounding_box()
    scale = min(box["width"] / WIDTH, box["height"] / HEIGHT)
    edge = [box[name] + (box[side] - scale * size) / 2 for name, side, size in
            (("x", "width", WIDTH), ("y", "height", HEIGHT))]  # fmt: skip
    first, last = ([corner + scale * one for corner, one in zip(edge, place, strict=True)] for place in (start, end))
    page.mouse.move(*first)
    page.mouse.down()
    page.mouse.move(*last, steps=8)
    page.mouse.up()
