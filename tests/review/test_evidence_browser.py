"""The enlarged view in a real browser, on drawn photos: evidence beside the image, keys, thumbnail."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from curation.decisions.files import read_decisions
from curation.proposals.proposal import Evidence, ProposalSet, write_proposals
from tests.review.conftest import free_port
from tests.review.review_world import ReviewWorld, coco_id
from tests.review.test_review_browser import keep_picture, page  # noqa: F401  (a fixture)

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DATASET = "evidence"
NEAREST = "voc2012:2008_000008"


@pytest.fixture
def served(world: ReviewWorld, review_environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of an App on the twelve photos, one of them empty, and the review's folder."""
    (tmp_path / "voc").mkdir()
    Image.new("RGB", (320, 200), (180, 40, 200)).save(tmp_path / "voc" / "2008_000008.jpg")
    (world.photos / "000000000003.jpg").write_bytes(b"")
    looks = Evidence(kind="image_image", detail=f"looks like {NEAREST}", score="0.8123", threshold="0.7012")
    made = tuple(msgspec.structs.replace(one, evidence=(*one.evidence, looks)) for one in world.proposals())
    proposed = ProposalSet(id_classes=("person",), thresholds={}, inputs=(), proposals=made)
    write_proposals(tmp_path / "proposals.jsonl", proposed)
    port, folder = free_port(), tmp_path / "review"
    command = [sys.executable, "-m", "curation", "review", "start", "--folder", str(folder), "--name", DATASET]
    command += ["--source", f"coco={world.annotations}", "--photos", str(world.photos), "--no-cache"]
    command += ["--photos", f"id:voc2012={tmp_path / 'voc'}", "--proposals", str(tmp_path / "proposals.jsonl")]
    command += ["--reviewer", "anna", "--remote", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=review_environment
    ) as program:
        try:
            assert program.stderr is not None
            told = ""
            for line in program.stderr:
                told += line
                if found := re.match(r"The App is at (\S+)", line):
                    address = found[1]
                    break
            else:
                pytest.fail(told)
            assert "1 image not shown, photo empty" in told
            yield address, folder
        finally:
            # What fails meanwhile must not leave a server that is waited for without end.
            program.terminate()
            program.communicate(timeout=60)


def test_the_evidence_stands_beside_the_image(served: tuple[str, Path], page: Any) -> None:  # noqa: F811
    address, folder = served
    media = []
    page.on("response", lambda answer: media.append((answer.status, answer.url)) if "/media" in answer.url else None)
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.goto(address)
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
    rows = read_decisions(folder / "decisions.jsonl").decisions
    assert [(row.image_id, row.action, row.reviewer) for row in rows] == [(coco_id(12), "remove", "anna")]
    # An arrow that is pressed before the step is done comes after it.
    for key in ("u", "ArrowLeft", "r"):
        page.keyboard.press(key)
    until = time.monotonic() + 30
    while len(rows) < 3 and time.monotonic() < until:
        page.wait_for_timeout(50)
        rows = read_decisions(folder / "decisions.jsonl").decisions
    assert [(row.image_id, row.action) for row in rows] == [
        (coco_id(12), said) for said in ("remove", "unsure", "remove")
    ]
    page.keyboard.press("Escape")
