"""Pictures of every state of a review, on drawn photos, to be looked at by eye.

``python -m tests.review.app.pictures DIR`` takes them; ``blind-1280.png`` and ``last-ten-1280.png`` are those of
README.md and docs/review.md.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from curation.cli import main
from curation.extensions.demo.world import draw_world
from curation.review.decisions.pairs import PAIRS, PhotoPair, pairs_csv
from tests.review.app.scripted_reviewer import Reviewer, ReviewServer, browser_page

WIDE, NARROW = (1280, 720), (400, 720)
GUIDE = """# Does the photo show a sheep, a boat or an aeroplane?
## near
An animal with hooves, a vehicle on water or in the air.
## far
Nothing of the kind.
## remove
One of the three, also as a toy, a drawing or a mirror image.
## Reasons
1. toy or drawing
2. too small to tell
3. mirror image
"""


class Photographer:
    """Takes a picture of a page at both widths."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder

    def take(self, name: str) -> None:
        """Write NAME-1280.png and NAME-400.png."""
        for width, height in (NARROW, WIDE):
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.wait_for_timeout(2000)
            self.page.screenshot(path=str(self.folder / f"{name}-{width}.png"))

    def review(self, server: ReviewServer) -> Reviewer:
        """Open a review that runs."""
        reviewer = Reviewer(self.page, server)
        reviewer.open()
        return reviewer


def thin_photos(folder: Path) -> tuple[str, ...]:
    """Draw very wide and very high photos; the options of a review of them."""
    folder.mkdir()
    sizes = [(2000, 60), (60, 2000), (1500, 300), (40, 30)]
    for number, size in enumerate(sizes, 1):
        Image.linear_gradient("L").resize(size).convert("RGB").save(folder / f"{number:012d}.jpg")
    rows = [{"id": n, "file_name": f"{n:012d}.jpg", "width": w, "height": h} for n, (w, h) in enumerate(sizes, 1)]
    boxes = [
        {
            "id": n,
            "image_id": n,
            "category_id": 1,
            "bbox": [w / 4, h / 4, w / 2, h / 2],
            "area": w * h / 4,
            "iscrowd": 0,
        }
        for n, (w, h) in enumerate(sizes, 1)
    ]
    content = {"images": rows, "annotations": boxes, "categories": [{"id": 1, "name": "kite", "supercategory": "x"}]}
    (folder / "coco.json").write_text(json.dumps(content))
    return "--source", f"coco={folder / 'coco.json'}", "--photos", str(folder)


def drawn_pairs(photos: Sequence[Path], folder: Path) -> Path:
    """Write pairs of which every second one is a photo and its part; the others are two photos."""
    folder.mkdir()
    pairs = []
    for number, (path, other) in enumerate(zip(photos[:8], photos[8:16], strict=True)):
        copy = folder / f"{number}.jpg"
        photo = Image.open(path if number % 2 == 0 else other)
        photo.crop((20, 20, photo.width - 20, photo.height - 10)).save(copy)
        pairs.append(
            PhotoPair(
                f"coco:{path.stem}", copy.name, str(path), str(copy), "test", "corpus", "perceptual", 60 - number, 64
            )
        )
    (folder / PAIRS).write_text(pairs_csv(pairs))
    return folder / PAIRS


def take_pictures(out: Path, work: Path) -> None:
    """Draw the photos, run each review, and take its pictures."""
    draw_world(work / "world", n_train=4, n_test=4, n_coco=60)
    (work / "id.txt").write_text("sheep\nboat\naeroplane\n")
    (work / "guide.md").write_text(GUIDE)
    coco = work / "world" / "coco"
    source = f"coco={coco / 'annotations' / 'instances_train2017.json'}"
    proposals = str(work / "proposals.jsonl")
    command = ["review", "propose", "--classes", str(work / "id.txt"), "--source", source, "--out", proposals]
    main([*command, "--near", "coco=zebra,elephant,kite"])
    environment = {**os.environ, "FIFTYONE_DO_NOT_TRACK": "true"}
    folder = work / "my-review"
    given = ("--source", source, "--photos", str(coco / "train2017"), "--proposals", proposals)
    given += ("--guide", str(work / "guide.md"), "--blind")
    anna, ben = ReviewServer(folder, environment, given), ReviewServer(folder, environment, (), "ben")
    cleo = ReviewServer(folder, environment, (), "cleo", "adjudicate")
    pairs = drawn_pairs(sorted((coco / "train2017").iterdir()), work / "copies")
    others = {
        "pairs": ReviewServer(work / "leaks", environment, ("--pairs", str(pairs))),
        "thin": ReviewServer(work / "thin-photos", environment, thin_photos(work / "thin")),
    }
    servers = [anna, ben, cleo, *others.values()]
    try:
        with browser_page() as page:
            camera = Photographer(page, out)
            anna.start()
            reviewer = camera.review(anna)
            camera.take("grid")
            reviewer.tick(0, 1)
            camera.take("ticked")
            page.reload()
            reviewer.open()
            reviewer.enlarge()
            camera.take("single")
            page.keyboard.press("?")
            camera.take("help")
            page.keyboard.press("?")
            for letter in "rnfrknfunfr":
                reviewer.judge(letter)
            page.keyboard.press("2")
            camera.take("last-ten")
            page.keyboard.press("1")
            page.evaluate("localStorage.setItem('mui-mode', 'light')")
            page.goto("about:blank")
            reviewer = camera.review(anna)
            camera.take("light-grid")
            reviewer.enlarge()
            camera.take("light")
            page.evaluate("localStorage.setItem('mui-mode', 'dark')")
            page.goto("about:blank")
            ben.start()
            reviewer = camera.review(ben)
            reviewer.enlarge()
            camera.take("blind")
            for letter in "rffrnnfu":
                reviewer.judge(letter)
            page.goto("about:blank")
            anna.stop()
            ben.stop()
            cleo.start()
            reviewer = camera.review(cleo)
            camera.take("adjudicate-grid")
            reviewer.enlarge()
            camera.take("adjudicate")
            page.goto("about:blank")
            cleo.stop()
            for name, server in others.items():
                server.start()
                reviewer = camera.review(server)
                camera.take(f"{name}-grid")
                reviewer.enlarge()
                for number in (1, 2, 3, 4):
                    camera.take(f"{name}-{number}")
                    page.keyboard.press("ArrowRight")
                    page.wait_for_timeout(1000)
                page.goto("about:blank")
                server.stop()
    finally:
        for server in servers:
            server.kill()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work:
        take_pictures(target, Path(work))
