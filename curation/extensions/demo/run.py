"""The demo, step by step: every command is printed as a user would type it, and run; and the table that closes it."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from curation.cli import main as curation_main
from curation.core import process
from curation.core.errors import CurationError, UsageError
from curation.core.writing import make_folder, write_text
from curation.extensions.demo.detector import Detector, train
from curation.extensions.demo.world import KNOWN, MOST_COCO_IMAGES, World, draw_world, read_photo
from curation.sources.voc import read_voc

Result = Mapping[str, Any]

_NOTES = (
    "mAP: 11-point, in %, higher is better. Wilderness impact: closed precision / open precision - 1 at the threshold",
    "of that recall, mean over classes, lower is better; its average is over the ratios above 0. Undefined: no",
    "class reaches the recall, or the wilderness has too few images.",
)


def comparison_lines(results: Mapping[str, Result]) -> list[str]:
    """Return a table as lines: mAP without and with wilderness, wilderness impact at ratio 1 and on average.

    Parameters
    ----------
    results : mapping of detector name to result
        What ``curation evaluate elephant --json`` prints of each detector on the same images.
    """
    columns = {name: _numbers(result) for name, result in results.items()}
    rows = {"": list(columns)} | {
        title: [one[title] for one in columns.values()] for title in next(iter(columns.values()))
    }
    lines = [f"{title:45}" + "".join(f"{text:>12}" for text in texts) for title, texts in rows.items()]
    return ["Detectors of different caution on the same images (variant paper)", "", *lines, "", *_NOTES]


def _numbers(result: Result) -> dict[str, str]:
    def text(value: float | None, digits: int = 4) -> str:
        return "undefined" if value is None else f"{value:.{digits}f}"

    first, last = result["levels"][0], result["levels"][-1]
    at_equal_sets = {
        row["recall"]: row["WI"] for row in result["impact"] if (row["over_classes"], row["ratio"]) == ("macro", "1.0")
    }
    average = {row["recall"]: row["excl_level0"] for row in result["average_impact"] if row["over_classes"] == "macro"}
    return {
        "mAP, closed set": text(first["mAP11"], 2),
        f"mAP, wilderness ratio {last['ratio']}": text(last["mAP11"], 2),
        **{f"wilderness impact at ratio 1, recall {recall}": text(at_equal_sets.get(recall)) for recall in average},
        **{f"average wilderness impact, recall {recall}": text(value) for recall, value in average.items()},
    }


DEFAULT_SIZES = (160, 140, 330)
DETECTORS = ("bold", "cautious")
PARTS = ("closed", "wilderness")
_MARKER = ".made-by-curation-demo"
_MADE = ("world", "manifest", "truth", "detections", "scores")
_MOST = (4000, 4000, MOST_COCO_IMAGES)
_MANIFEST = "elephant/drawn-world"


def run_demo(out: Path, *, sizes: Sequence[int] = DEFAULT_SIZES) -> None:
    """Draw a world, train, build, verify, export, detect, evaluate, and print the table and the figure's path.

    Parameters
    ----------
    out : Path
        Folder to write; one that the demo did not make itself is refused.
    sizes : sequence of int
        Images of VOC train, VOC test and COCO.

    Raises
    ------
    UsageError
        The folder was not made by the demo, or there are too few or too many images.
    """
    if not all(1 <= size <= most for size, most in zip(sizes, _MOST, strict=True)):
        expected = "1 to {:,} of VOC train, 1 to {:,} of VOC test, 1 to {:,} of COCO".format(*_MOST)
        raise UsageError("The demo cannot draw that many images", where="--images", expected=expected)
    _prepare(out)
    _say(1, "Draw a small world in the layouts of VOC2007 and COCO")
    world = draw_world(out / "world", n_train=sizes[0], n_test=sizes[1], n_coco=sizes[2])
    print(f"  {world.voc_root}: {sizes[0]} train and {sizes[1]} test images")
    print(f"  {world.coco_json}: {sizes[2]} images")
    _say(2, "Train a small detector on the pixels of VOC train: it knows " + ", ".join(KNOWN))
    detector = train_on(world)
    _make_manifest_and_truth(out, world)
    _say(5, "Detect, once trusting the softmax and once doubting what looks little like anything known")
    for part in PARTS:
        _detect(detector, world, part, out)
    _say(6, "Score both on exactly these images")
    for name in DETECTORS:
        folder = out / "scores" / name
        inputs = _evaluation_inputs(out, name, world)
        _curation("evaluate", "elephant", *inputs, "--out", str(folder), report=folder / "report.txt")
    _compare(out)


def _make_manifest_and_truth(out: Path, world: World) -> None:
    manifest = str(out / "manifest")
    sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
    _say(3, "Build the Elephant manifest from the annotation files, and verify it")
    # Named as what it is: the file says train2017, but nothing here is the paper's set.
    _curation("build", "elephant", *sources, "--name", _MANIFEST, "--out", manifest)
    _curation("verify", manifest, *sources)
    _say(4, "Write the ground truth of both parts, as detectors read it")
    for part in PARTS:
        target = str(out / "truth" / f"{part}.json")
        _curation("export", manifest, "--part", part, "--format", "coco", *sources, "--out", target)


def train_on(world: World) -> Detector:
    """Return the detector trained on the VOC train part of a world, read through the package's own reader."""
    source = read_voc(world.voc_root, dataset="voc2007", part="train")
    objects = source.require_objects("Training")
    photos = [read_photo(world.voc_root / "JPEGImages" / name) for name in source.images.file_names.tolist()]
    labels = [KNOWN.index(source.categories.names[category]) for category in objects.category.tolist()]
    boxes = [(x, y, w, h) for x, y, w, h in objects.boxes.astype(int).tolist()]
    rows = zip(objects.image.tolist(), boxes, labels, strict=True)
    return train(((photos[image], box, label) for image, box, label in rows), len(KNOWN))


def _detect(detector: Detector, world: World, part: str, out: Path) -> None:
    truth = json.loads((out / "truth" / f"{part}.json").read_text(encoding="utf-8"))
    numbers = {category["name"]: category["id"] for category in truth["categories"]}
    photos = world.voc_root / "JPEGImages" if part == "closed" else world.coco_root / "train2017"
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in DETECTORS}
    for image in tqdm(truth["images"], desc=f"detecting in {part}", disable=None):
        photo = read_photo(photos / image["file_name"])
        for name in DETECTORS:
            for found in detector.detect(photo, cautious=name == "cautious"):
                label = numbers[KNOWN[found.pop("label")]]
                results[name].append({"image_id": image["id"], "category_id": label, **found})
    for name, found_ones in results.items():
        path = out / "detections" / f"{name}-{part}.json"
        write_text(path, json.dumps(found_ones))
        print(f"  {path}: {len(found_ones)} detections on {len(truth['images'])} images", flush=True)


def _evaluation_inputs(out: Path, name: str, world: World) -> list[str]:
    # The manifest knows all 20 VOC classes; of these the detector knows the few that were drawn.
    inputs = ["--manifest", str(out / "manifest"), "--classes", str(world.classes)]
    for part in PARTS:
        inputs += ["--truth", f"{part}={out / 'truth' / f'{part}.json'}"]
        inputs += ["--detections", f"{part}={out / 'detections' / f'{name}-{part}.json'}"]
    return inputs


def _compare(out: Path) -> None:
    from curation.benchmarks.elephant.evaluation import wilderness_curve

    results = {
        name: json.loads((out / "scores" / name / "results.json").read_text(encoding="utf-8")) for name in DETECTORS
    }
    print("\n" + "\n".join(comparison_lines(results)))
    paths = wilderness_curve(results, out / "scores" / "wilderness-curve", note="variant paper, drawn world")
    print(f"\nFigure: {next(path for path in paths if path.suffix == '.png')}")
    print(f"Each detector's report, error diagnosis, confusion matrix and curves: {out / 'scores'}")
    print(
        "\nNext, with your own data: the same commands, with VOCdevkit/VOC2007 and instances_train2017.json as sources"
        "\nand the results files of your detector as detections. `curation list` says what each benchmark needs."
    )


def _curation(*arguments: str, report: Path | None = None) -> None:
    """Print a command as a user would type it, and run it; its output goes to the screen, or to `report`."""
    print("\n$ curation " + shlex.join(arguments) + (f" > {shlex.quote(str(report))}" if report else ""), flush=True)
    output = io.StringIO()
    with contextlib.redirect_stdout(output) if report else contextlib.nullcontext():
        status = curation_main(arguments)
    if status == process.INTERRUPTED:
        raise SystemExit(status)
    if status:
        raise CurationError("The demo stopped: the command above did not succeed")
    if report:
        write_text(report, output.getvalue())


def _say(number: int, text: str) -> None:
    print(f"\n[{number}/6] {text}", flush=True)


def _prepare(out: Path) -> None:
    """Make the folder, or clear what an earlier demo made in it; anything else is left alone."""
    make_folder(out)
    # A demo killed while it wrote the marker leaves a temporary file that bears its name.
    others = [path for path in out.iterdir() if _MARKER not in path.name]
    if others and not (out / _MARKER).exists():
        raise UsageError(
            "The folder is not empty and was not made by the demo", where=str(out), hint="choose another --out"
        )
    write_text(out / _MARKER, "This folder is rewritten by the demo of curation.\n")
    for name in _MADE:
        if (out / name).exists():
            shutil.rmtree(out / name)


def main() -> int:
    """Run the demo as the command line says, and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m curation.extensions.demo",
        description="Draw a small world, detect in it, and score two detectors.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write (default: %(default)s)")
    parser.add_argument(
        "--images",
        type=int,
        nargs=3,
        default=DEFAULT_SIZES,
        metavar=("TRAIN", "TEST", "COCO"),
        help="how many of each to draw (default: {} {} {})".format(*DEFAULT_SIZES),
    )
    options = parser.parse_args()

    def work() -> int:
        run_demo(options.out, sizes=tuple(options.images))
        return 0

    return process.outcome(work, lambda error: print(f"error: {error}", file=sys.stderr))
