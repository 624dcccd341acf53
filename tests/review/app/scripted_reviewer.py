"""A reviewer by script: a real server on drawn images, a real browser, keys at human pace or as fast as they go."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.review.app.database import free_port
from tests.review.app.review_world import coco_id

QUIET = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    # The App asks for fonts from elsewhere; tests talk to this machine only.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
ACTIONS = {"k": "keep", "r": "remove", "n": "to_near", "f": "to_far", "s": "same", "d": "different", "u": "unsure"}
NAME_SHOWN = '[data-cy="modal"] [data-cy="sidebar-entry-image_id"]'
AT_ONCE = "#curation-review-next"
_SEEN = """
addEventListener("keydown", () => { pressedAt = performance.now(); shownAt = ownAt = answeredAt = null; }, true);
const request = window.fetch;
window.fetch = async (address, options) => {
  const answer = await request(address, options);
  if (String(address).includes("/review/judge")) window.answeredAt = performance.now();
  return answer;
};
window.nameSeen = () => document.querySelector('%s')?.dataset.image || document.querySelector('%s')?.textContent;
(function look() {
  const now = performance.now(), name = nameSeen(), own = document.querySelector('%s')?.textContent;
  if (name && name !== window.nameShown) { window.nameShown = name; window.shownAt = now; }
  if (own && own !== window.ownName) { window.ownName = own; window.ownAt = now; }
  requestAnimationFrame(look);
})();
window.decoded = "";
const decode = HTMLImageElement.prototype.decode;
HTMLImageElement.prototype.decode = function () { return decode.call(this).then(() => { decoded += this.src; }); };
"""
"""Note in the page when a key was pressed, when its decision was on the disk, when a reviewer saw another image, when
the App's own view showed it, and which photos are ready to be shown."""


def draw_photos(folder: Path, count: int) -> tuple[Path, Path]:
    """Draw images 1 to `count`, each with its number and one box; return the annotation file and the photos."""
    photos, annotations = folder / "photos", folder / "instances_val2017.json"
    photos.mkdir(parents=True)
    width, height, box = 320, 240, [40.0, 40.0, 160.0, 120.0]
    for number in range(1, count + 1):
        photo = Image.new("RGB", (width, height), ((37 * number) % 256, (91 * number) % 256, (53 * number) % 256))
        drawing = ImageDraw.Draw(photo)
        drawing.rectangle((40, 40, 200, 160), fill=((91 * number) % 256, 120, (37 * number) % 256))
        drawing.text((90, 90), str(number), fill="white")
        photo.save(photos / f"{number:012d}.jpg", quality=60)
    numbers = range(1, count + 1)
    content = {
        "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": width, "height": height} for n in numbers],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 1 + n % 2, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for n in numbers
        ],
        "categories": [
            {"id": 1, "name": "zebra", "supercategory": "x"},
            {"id": 2, "name": "pizza", "supercategory": "x"},
        ],
    }
    annotations.write_text(json.dumps(content))
    return annotations, photos


class ReviewServer:
    """A command such as ``curation review start`` in a process of its own, which can be killed and started again."""

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        given: Sequence[str],
        reviewer: str = "anna",
        verb: str = "start",
    ) -> None:
        self._verb = verb
        self.folder = folder
        self.log = folder / "decisions.jsonl"
        self.address = self.told = ""
        self._environment, self._given, self._reviewer = environment, list(given), reviewer
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server, on files the first time and on the folder alone later; wait until it is at work."""
        command = [sys.executable, "-m", "curation", "review", self._verb, "--folder", str(self.folder), "--remote"]
        given, self._given = self._given, []
        self._process = subprocess.Popen(
            [*command, "--reviewer", self._reviewer, "--port", str(free_port()), *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        assert self._process.stderr is not None
        self.told = ""
        for line in self._process.stderr:
            self.told += line
            if found := re.search(r"The App is at (http://\S+)", line):
                self.address = found[1].rstrip(";")
                return
        raise AssertionError(self.told)

    def kill(self) -> None:
        """End it as a power cut does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def stop(self) -> str:
        """End it as Ctrl-C does; what it said."""
        assert self._process is not None
        self._process.terminate()
        _, told = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, told
        self._process = None
        return told


@contextmanager
def browser_page() -> Iterator[Any]:
    """A page of a headless Chromium; skips where there is none."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is absent: pip install playwright")
    found = (shutil.which(one) for one in ("chromium", "chromium-browser", "google-chrome"))
    program = next((one for one in found if one), None)
    if program is None:
        pytest.skip("no Chromium browser is at hand")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=[*QUIET, "--disable-gpu"])
        yield new_page(browser)
        browser.close()


def new_page(browser: Any, width: int = 1280) -> Any:
    """Return a page of a profile of its own."""
    page = browser.new_page(viewport={"width": width, "height": 720})
    page.set_default_timeout(30_000)
    page.add_init_script(_SEEN % (AT_ONCE, NAME_SHOWN, NAME_SHOWN))
    return page


@dataclass
class Reviewer:
    """Someone before the page who notes each verdict that was given: image and action, in order."""

    page: Any
    server: ReviewServer

    def open(self) -> None:
        """Open the review where its address leads; wait for tiles and the strip."""
        self.page.goto(self.server.address)
        self.page.wait_for_url("**/datasets/**")
        self.page.locator('[data-cy="looker"]').first.wait_for()
        self.page.locator("#curation-review-bar").wait_for()

    def tick(self, *places: int) -> None:
        """Tick tiles of the grid."""
        for place in places:
            photo = self.page.locator('[data-cy="looker"]').nth(place)
            photo.hover()
            photo.locator('[data-cy^="looker-checkbox"]').first.click()

    def enlarge(self, place: int = 0) -> str:
        """Open the enlarged view of a tile; the image shown."""
        tile, view = self.page.locator('[data-cy="looker"]').nth(place), self.page.locator('[data-cy="modal"]')
        tile.click()
        with suppress(pytest.importorskip("playwright.sync_api").TimeoutError):
            view.wait_for(timeout=5000)
        # The grid may be drawn anew under a click: a reviewer clicks again.
        if not view.is_visible():
            tile.click()
        # A narrow window hides the sidebar.
        self.page.locator(NAME_SHOWN).wait_for(state="attached")
        return self.shown()

    def close(self) -> None:
        """Close the enlarged view."""
        self.page.keyboard.press("Escape")
        self.page.locator('[data-cy="modal"]').wait_for(state="hidden")

    def shown(self) -> str:
        """Return the image that is seen in the enlarged view, as soon as one is."""
        return str(self.page.wait_for_function("nameSeen()").json_value())

    def wait_for_image(self, image: str) -> None:
        """Wait until an image is seen in the enlarged view."""
        self.page.wait_for_function("image => nameSeen() === image", arg=image)

    def judge(self, letter: str) -> tuple[str, str]:
        """Press a key and wait for another image, or for the end of the list; what was judged."""
        before = self.shown()
        self.page.keyboard.press(letter)
        self.page.wait_for_function(
            "before => window.nameShown !== before && window.shownAt || !document.querySelector('[data-cy=modal]')",
            arg=before,
        )
        return before, ACTIONS[letter]

    def milliseconds(self) -> tuple[float, float]:
        """Return how long the last key took until its decision was on the disk, and until the next image was seen."""
        self.page.wait_for_function("window.answeredAt")
        disk, image = self.page.evaluate("[answeredAt - pressedAt, shownAt - pressedAt]")
        return float(disk), float(image)

    def wait_for_rows(self, count: int, seconds: float = 90) -> None:
        """Wait until the log holds a number of rows."""
        end = time.monotonic() + seconds
        while len(self.rows()) < count:
            assert time.monotonic() < end, f"{len(self.rows())} of {count} rows: {self.message()}"
            self.page.wait_for_timeout(50)

    def wait_for_message(self, text: str) -> None:
        """Wait until the page says something."""
        self.page.wait_for_function(
            "text => document.querySelector('#curation-review-message').textContent.includes(text)", arg=text
        )

    def message(self) -> str:
        """Return what the page said last."""
        return str(self.page.evaluate("document.querySelector('#curation-review-message')?.textContent || ''"))

    def bar(self) -> str:
        """Return what stands in the bar."""
        return str(self.page.locator("#curation-review-bar").inner_text())

    def rows(self) -> list[tuple[str, str]]:
        """Return image and action of each row of the log, in its order; an undo is ``("…", "undo")``."""
        log = self.server.log
        rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        assert {row["reviewer"] for row in rows} <= {"anna"}
        return [(row["image_id"], "undo" if row["reason"].startswith("undo") else row["action"]) for row in rows]


def numbers(*these: int) -> list[str]:
    return [coco_id(one) for one in these]
