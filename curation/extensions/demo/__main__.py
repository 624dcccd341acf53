"""The demo: draw a world, train a detector on it, and run the commands of the main job as a user would type them.

The detector looks at pixels: regions unlike the scene behind them, named by the class they look most like. Two variants
of it differ in caution. `bold` assigns every region to a known class, as most detectors do; `cautious` lowers the score
of regions that are less like the class than its training examples.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.cli import main as curation_main
from curation.core import process
from curation.core.errors import CurationError, UsageError
from curation.core.writing import write_text
from curation.extensions.demo.world import KNOWN, World, draw_world, read_picture
from curation.sources.voc import read_voc

Photo = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]

_CONTRAST, _SMALLEST, _GRID, _SHARPNESS = 40, 6, 2, 6


class Detector(NamedTuple):
    """A trained model of K classes.

    Attributes
    ----------
    centres : ndarray, shape (K, f)
        Mean features of each class.
    reach : ndarray, shape (K,)
        Median distance between the centre of a class and its examples.
    """

    centres: Floats
    reach: Floats

    def detect(self, photo: Photo, *, cautious: bool) -> list[dict[str, Any]]:
        """Return detections of a photo: ``label`` (class position), ``bbox``, ``score``, ``background_score``."""
        detections = []
        for box in regions(photo):
            distance = np.linalg.norm(look(photo, box) - self.centres, axis=1)
            likeness = np.exp(-_SHARPNESS * distance / self.reach)
            scores = likeness / likeness.sum()
            if cautious:
                scores = scores * np.exp(-np.maximum(distance / self.reach - 1, 0))
            for label in np.flatnonzero(scores >= 0.05).tolist():
                score, rest = round(float(scores[label]), 6), round(max(0.0, 1 - float(scores.sum())), 6)
                detections.append({"label": label, "bbox": list(box), "score": score, "background_score": rest})
        return detections


def train(examples: Iterable[tuple[Photo, Box, int]], n_classes: int) -> Detector:
    """Return the detector fitted to boxes ``x, y, w, h`` of photos and the positions of their classes."""
    looks: list[list[Floats]] = [[] for _ in range(n_classes)]
    for photo, box, label in examples:
        looks[label].append(look(photo, box))
    centres = np.array([np.mean(rows, axis=0) for rows in looks])
    distances = [np.linalg.norm(np.array(rows) - centre, axis=1) for rows, centre in zip(looks, centres, strict=True)]
    return Detector(centres, np.array([max(float(np.median(distance)), 1e-9) for distance in distances]))


def regions(photo: Photo) -> list[Box]:
    """Return boxes ``x, y, w, h`` of regions that differ from the median colour of their rows, from left to right.

    Scenes are horizontal bands (sky, ground), so the median of a row is its background.
    """
    colours = photo.astype(np.float64)
    differs = np.abs(colours - np.median(colours, axis=1, keepdims=True)).max(axis=2) > _CONTRAST
    columns = np.concatenate([[False], differs.sum(axis=0) > 1, [False]])
    starts, ends = np.flatnonzero(np.diff(columns.astype(int)) == 1), np.flatnonzero(np.diff(columns.astype(int)) == -1)
    boxes = []
    for left, right in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = np.flatnonzero(differs[:, left:right].any(axis=1))
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        if min(right - left, bottom - top) >= _SMALLEST:
            boxes.append((left, top, right - left, bottom - top))
    return boxes


def look(photo: Photo, box: Box) -> Floats:
    """Return features of a box: colours from 0 to 1 on a 2 x 2 grid, minus their mean, and its shape."""
    from PIL import Image

    x, y, width, height = box
    part = Image.fromarray(photo).crop((x, y, x + width, y + height)).resize((_GRID, _GRID), Image.Resampling.BOX)
    colours = np.asarray(part, np.float64) / 255
    return np.append((colours - colours.mean()).ravel(), 3 * np.log(width / height))


SIZES = (160, 140, 330)
DETECTORS = ("bold", "cautious")
PARTS = ("closed", "wilderness")


def run_demo(out: Path, *, sizes: Sequence[int] = SIZES) -> None:
    """Draw a world, train, build, verify, export, detect and evaluate; print the ranking and where the figure is.

    Parameters
    ----------
    out : Path
        A new or empty folder.
    sizes : sequence of int
        Images of VOC train, VOC test and COCO.

    Raises
    ------
    UsageError
        The folder is not empty.
    CurationError
        A command failed.
    """
    from curation.benchmarks.elephant.figures import wilderness_curve

    if out.is_dir() and any(out.iterdir()):
        raise UsageError("The folder is not empty", where=str(out), hint="remove it, or choose another --out")
    print(f"A drawn world of {sum(sizes)} photos, and a detector of {', '.join(KNOWN)} that is trained on {sizes[0]}")
    world = draw_world(out / "world", n_train=sizes[0], n_test=sizes[1], n_coco=sizes[2])
    detector = train_on(world)
    manifest, scores, board = str(out / "manifest"), out / "scores", str(out / "scores.jsonl")
    sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
    # The name states that the world is drawn: the file is named train2017, but is not the set of the paper.
    _curation("build", "elephant", *sources, "--name", "elephant/drawn-world", "--out", manifest)
    _curation("verify", manifest, *sources)
    for part in PARTS:
        truth = out / "truth" / f"{part}.json"
        _curation("export", manifest, "--part", part, "--format", "coco", *sources, "--out", str(truth))
        _detect(detector, world, part, out)
    for name in DETECTORS:
        files = {part: (out / "truth" / f"{part}.json", _detections(out, name, part)) for part in PARTS}
        # The manifest knows all 20 VOC classes; of these the detector knows the few that were drawn.
        inputs = ["--manifest", manifest, "--classes", str(world.classes)]
        for part, (truth, detections) in files.items():
            inputs += ["--truth", f"{part}={truth}", "--detections", f"{part}={detections}"]
        outputs = ["--out", str(scores / name), "--append", board, "--name", name]
        _curation("evaluate", "elephant", *inputs, *outputs, report=out / f"{name}.txt")
    _curation("leaderboard", board)
    results = {name: json.loads((scores / name / "results.json").read_text(encoding="utf-8")) for name in DETECTORS}
    paths = wilderness_curve(results, scores / "wilderness-curve", note="variant paper, drawn world")
    print(f"\nFigure: {next(path for path in paths if path.suffix == '.png')}")
    print(f"Each detector's tables, error diagnosis, confusion matrix and curves: {scores}")
    print("With your own data: the same commands. `curation list` says what each benchmark needs.")


def train_on(world: World) -> Detector:
    """Return the detector trained on the VOC train part of a world, read through the package's own reader."""
    source = read_voc(world.voc_root, dataset="voc2007", part="train")
    objects = source.require_objects("Training")
    photos = [read_picture(world.voc_root / "JPEGImages" / name) for name in source.images.file_names.tolist()]
    labels = [KNOWN.index(source.categories.names[category]) for category in objects.category.tolist()]
    boxes = [(x, y, w, h) for x, y, w, h in objects.boxes.astype(int).tolist()]
    rows = zip(objects.image.tolist(), boxes, labels, strict=True)
    return train(((photos[image], box, label) for image, box, label in rows), len(KNOWN))


def _detections(out: Path, name: str, part: str) -> Path:
    return out / "detections" / f"{name}-{part}.json"


def _detect(detector: Detector, world: World, part: str, out: Path) -> None:
    """Write the detections of both variants on the images of a part, as COCO results."""
    truth = json.loads((out / "truth" / f"{part}.json").read_text(encoding="utf-8"))
    numbers = {category["name"]: category["id"] for category in truth["categories"]}
    photos = world.voc_root / "JPEGImages" if part == "closed" else world.coco_root / "train2017"
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in DETECTORS}
    for image in truth["images"]:
        photo = read_picture(photos / image["file_name"])
        for name in DETECTORS:
            for row in detector.detect(photo, cautious=name == "cautious"):
                label = numbers[KNOWN[row.pop("label")]]
                results[name].append({"image_id": image["id"], "category_id": label, **row})
    for name, rows in results.items():
        write_text(_detections(out, name, part), json.dumps(rows))


def _curation(*arguments: str, report: Path | None = None) -> None:
    """Print a command as a user would type it, and run it; its output goes to the screen, or to `report`."""
    print("\n$ curation " + shlex.join(arguments) + (f" > {shlex.quote(str(report))}" if report else ""), flush=True)
    with report.open("w", encoding="utf-8") if report else nullcontext(sys.stdout) as stream, redirect_stdout(stream):
        status = curation_main(arguments)
    if status == process.INTERRUPTED:
        raise SystemExit(status)
    if status:
        raise CurationError("The demo stopped: the command above did not succeed")


def main() -> int:
    """Run the demo as the command line says, and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m curation.extensions.demo",
        description="Draw a small world, detect in it, and score two detectors.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="a new folder (default: %(default)s)")
    options = parser.parse_args()

    def work() -> int:
        run_demo(options.out)
        return 0

    return process.outcome(work, lambda error: print(f"error: {error}", file=sys.stderr))


if __name__ == "__main__":
    raise SystemExit(main())
