"""The whole way in a real browser, on real photos: saved view, selection, operator, panel, export."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.decisions.files import read_decisions
from curation.proposals.proposal import Evidence, Proposal, ProposalSet, write_proposals
from curation.sources.opening import open_source
from tests.review.conftest import free_port

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DATASET = "looked-at"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)


def suspects(annotations: Path, path: Path) -> list[str]:
    """Propose near for the photos with a bear, zebra or sheep; return their ids by rank."""
    source = open_source(annotations, dataset="coco", part="val2017", cache=False)
    images, categories = source.class_pairs()
    names = source.categories.names
    ids = sorted(
        {
            str(source.image_ids[image])
            for image, category in zip(images.tolist(), categories.tolist(), strict=True)
            if names[category] in ("bear", "zebra", "sheep", "cow", "elephant", "horse")
        }
    )
    evidence = (Evidence(kind="near_listed", detail="an animal", threshold=""),)
    proposals = tuple(
        Proposal(image_id=one, proposal="near", reason="near: animals", evidence=evidence, rank=rank)
        for rank, one in enumerate(ids, 1)
    )
    write_proposals(path, ProposalSet(id_classes=("dog",), thresholds={}, inputs=(), proposals=proposals))
    return ids


@pytest.fixture
def server(shared: Path, review_environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Address of an App on the 79 real photos, the review's folder, and the proposed ids."""
    mini = shared / "data" / "coco" / "mini"
    annotations = mini / "annotations" / "instances_val2017.json"
    ids = suspects(annotations, tmp_path / "proposals.jsonl")
    port, folder = free_port(), tmp_path / "review"
    command = [
        sys.executable,
        "-m",
        "curation",
        "review",
        "start",
        "--folder",
        str(folder),
        "--name",
        DATASET,
    ]
    command += ["--source", f"coco={annotations}", "--photos", str(mini / "val2017"), "--batch-size", "20"]
    command += ["--proposals", str(tmp_path / "proposals.jsonl"), "--reviewer", "anna", "--no-cache"]
    command += ["--remote", "--port", str(port), "--address", "127.0.0.1"]
    with (
        (tmp_path / "server.txt").open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, env=review_environment) as program,
    ):
        assert program.stderr is not None
        told = ""
        for line in program.stderr:
            told += line
            if line.startswith("The App is at"):
                break
        assert "The App is at" in told, told
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", told)
        assert found, told
        yield found[0], folder, ids
        program.terminate()
        _, told = program.communicate(timeout=60)
        assert "every verdict is in the log" in told
        assert program.returncode == 0


@pytest.fixture
def page(review_environment: dict[str, str]) -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is absent: pip install playwright")
    program = next(
        (found for one in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(one))),
        None,
    )
    if program is None:
        pytest.skip("no Chromium browser is at hand")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=list(QUIET))
        opened = browser.new_page(viewport={"width": 1800, "height": 1000})
        opened.set_default_timeout(60_000)
        # The App asks for fonts from elsewhere; tests talk to this machine only.
        opened.route("**/*", lambda route: route.continue_() if "//127.0.0.1:" in route.request.url else route.abort())
        yield opened
        browser.close()


def tick(page: Any, *places: int) -> None:
    for place in places:
        photo = page.locator('[data-cy="looker"]').nth(place)
        photo.hover()
        photo.locator('[data-cy^="looker-checkbox"]').first.click()


def keep_picture(page: Any, name: str) -> None:
    """Keep a screenshot where the environment names a folder for them: pictures are looked at by eye."""
    if folder := os.environ.get("CURATION_SCREENSHOTS"):
        page.wait_for_timeout(1500)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_a_curator_reviews_real_photos(server: tuple[str, Path, list[str]], page: Any) -> None:
    address, folder, ids = server
    assert len(ids) >= 6
    page.goto(address)
    page.locator('[data-cy="looker"]').first.wait_for()
    notice = page.get_by_role("button", name="Dismiss")
    notice.click()
    # A view that is chosen before the page has counted the dataset may be lost.
    page.get_by_text("79 samples", exact=True).first.wait_for()

    # A saved view: only what was proposed for this reason.
    page.locator('[data-cy="saved-views-selection-container"], [data-cy="selection-view"]').first.click()
    page.get_by_text("near: animals", exact=True).first.click()
    page.get_by_text(re.compile(rf"^{len(ids)} samples$")).first.wait_for()

    # The operator, from its button above the grid.
    tick(page, 0, 1)
    page.get_by_text("Decide", exact=True).first.click()
    page.get_by_text("2 images selected").first.wait_for()
    keep_picture(page, "decide")
    page.get_by_role("radio", name="near").click()
    page.get_by_role("combobox").last.fill("a zebra")
    page.get_by_role("button", name="Execute").click()
    page.get_by_text("2 images: near (a zebra)").first.wait_for()
    keep_picture(page, "decided")
    page.get_by_role("button", name="Close", exact=True).click()
    page.get_by_role("dialog").wait_for(state="hidden")

    # The panel, beside the grid, in the same view.
    page.get_by_text("Review", exact=True).first.click()
    page.get_by_text("Tick images in the grid", exact=True).first.wait_for()
    page.get_by_role("button", name="Far (f)", exact=True).click()
    page.get_by_text(re.compile("^No image is selected")).first.wait_for()
    tick(page, 2, 3, 4)
    page.get_by_text("3 images selected").first.wait_for()
    page.get_by_role("button", name="Remove (r)", exact=True).click()
    page.get_by_text("3 images: remove").first.wait_for()
    page.get_by_text("5 of 79 images decided").first.wait_for()
    tick(page, 5)
    page.get_by_text("1 image selected").first.wait_for()
    page.get_by_role("button", name="Far (f)", exact=True).click()
    page.get_by_text("6 of 79 images decided").first.wait_for()
    keep_picture(page, "panel")
    page.get_by_role("button", name="Undo (z)", exact=True).click()
    page.get_by_text("5 of 79 images decided").first.wait_for()
    page.get_by_role("button", name="Export", exact=True).click()
    page.get_by_text("Written: export.jsonl").first.wait_for()
    page.get_by_role("button", name="Next batch", exact=True).click()
    page.get_by_text("15 samples", exact=True).first.wait_for()
    keep_picture(page, "batch")

    rows = read_decisions(folder / "export.jsonl").decisions
    expected = {(one, "to_near", "a zebra") for one in ids[:2]} | {(one, "remove", "") for one in ids[2:5]}
    assert {(row.image_id, row.action, row.reason) for row in rows} == expected
    assert {(row.reviewer, row.dataset, row.stage, row.batch) for row in rows} == {("anna", "coco", "manual", "0001")}
    # The log holds all that happened: two, three, one, and the one taken back.
    assert len(read_decisions(folder / "decisions.jsonl").decisions) == 7
