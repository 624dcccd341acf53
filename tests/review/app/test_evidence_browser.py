"""The enlarged view in a real browser: evidence beside the image, the keys of a stage, and no way to draw."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from PIL import Image

from curation.review.proposals.proposal import Evidence, ProposalSet, write_proposals
from tests.review.app.review_world import coco_id, write_world
from tests.review.app.scripted_reviewer import Reviewer, ReviewServer, browser_page

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NEAREST = "voc2012:2008_000008"


@pytest.fixture(scope="module")
def served(review_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    """An App on the twelve photos, one of them empty."""
    folder = tmp_path_factory.mktemp("evidence")
    world = write_world(folder / "world")
    (folder / "voc").mkdir()
    Image.new("RGB", (320, 200), (180, 40, 200)).save(folder / "voc" / "2008_000008.jpg")
    (world.photos / "000000000003.jpg").write_bytes(b"")
    looks = Evidence(kind="image_image", detail=f"looks like {NEAREST}", score="0.8123", threshold="0.7012")
    made = tuple(msgspec.structs.replace(one, evidence=(*one.evidence, looks)) for one in world.proposals())
    proposed = ProposalSet(id_classes=("person",), thresholds={}, inputs=(), proposals=made)
    write_proposals(folder / "proposals.jsonl", proposed)
    given = ("--name", "evidence", "--stage", "candidate", "--source", f"coco={world.annotations}")
    given += ("--photos", str(world.photos), "--photos", f"id:voc2012={folder / 'voc'}")
    given += ("--proposals", str(folder / "proposals.jsonl"))
    server = ReviewServer(folder / "review", review_environment, given)
    server.start()
    yield server
    # What fails meanwhile must not leave a server that is waited for without end.
    server.kill()


@pytest.fixture
def page() -> Iterator[Any]:
    with browser_page() as opened:
        yield opened


def test_the_evidence_stands_beside_the_image(served: ReviewServer, page: Any) -> None:
    assert "1 image not shown, photo unreadable" in served.told
    media = []
    page.on("response", lambda answer: media.append((answer.status, answer.url)) if "/media" in answer.url else None)
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.goto(served.address)
    page.get_by_text("11 samples", exact=True).first.wait_for()
    # FiftyOne's advertisement comes late, and not here.
    page.wait_for_timeout(2000)
    assert page.get_by_role("button", name="Dismiss").count() == 0
    for tag in ("remove?", "person"):
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

    # No field takes the keys: a verdict goes on, and the evidence with it.
    assert evidence.locator("input, textarea").count() == 0
    someone = Reviewer(page, served)
    assert "keep" not in someone.bar()
    page.keyboard.press("k")
    someone.wait_for_message("k: keep is not available at this stage; choose remove, near, far, unsure")
    page.keyboard.press("r")
    page.locator(f'#curation-review-evidence[data-image="{coco_id(11)}"]').wait_for()
    page.keyboard.press("ArrowLeft")
    evidence.wait_for()
    evidence.get_by_text("remove", exact=True).wait_for()
    assert someone.rows() == [(coco_id(12), "reject")]
    # A review changes no annotations, so there is no way into the mode that would.
    assert not page.get_by_text("Annotate", exact=True).first.is_visible()
    page.keyboard.press("f")
    someone.wait_for_rows(2)
    assert someone.rows()[1:] == [(coco_id(12), "add_far")]
    someone.close()
