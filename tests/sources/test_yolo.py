"""YOLO folders as truth: what an export wrote comes back, and one error for each mistake."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.core.errors import CurationError
from curation.sources.opening import open_path, parts_at

image = pytest.importorskip("PIL.Image")
SIZES = {"a_1": (200, 100), "b_2": (50, 400), "c_3": (64, 64)}
BOXES = {"a_1": [(0, (10, 20, 30, 40)), (1, (100, 0, 50, 50))], "b_2": [(1, (5, 100, 20, 200))]}
YAML = "path: /home/somebody/datasets/toy\ntrain: images/train\nval: images/val\nnc: 2\nnames:\n  0: cat\n  1: dog\n"


def write_yolo(root: Path, *, images: str = "images/val", labels: str = "labels/val", yaml: str = YAML) -> Path:
    for folder in (images, labels):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "data.yaml").write_text(yaml)
    for stem, (width, height) in SIZES.items():
        image.new("L", (width, height)).save(root / images / f"{stem}.png")
        lines = [
            f"{number} {(x + w / 2) / width} {(y + h / 2) / height} {w / width} {h / height}\n"
            for number, (x, y, w, h) in BOXES.get(stem, [])
        ]
        if lines:
            (root / labels / f"{stem}.txt").write_text("".join(lines))
    return root


@pytest.mark.parametrize(
    ("images", "labels", "val"),
    [
        ("images/val", "labels/val", "images/val"),
        ("val/images", "val/labels", "../val/images"),
        ("images", "labels", "[images]"),
        ("photos", "photos", "photos"),
        ("images", "labels", "val.txt"),
    ],
)
def test_boxes_sizes_and_classes_are_those_of_the_files(images: str, labels: str, val: str, tmp_path: Path) -> None:
    yaml = YAML.replace("val: images/val", f"val: {val}").replace("train: images/train\n", "")
    root = write_yolo(tmp_path / "toy", images=images, labels=labels, yaml=yaml)
    if val == "val.txt":
        (root / val).write_text("".join(f"./{images}/{stem}.png\n" for stem in SIZES))
    for path in (root, root / "data.yaml"):
        source = open_path(path, dataset="toy", part="val")
        assert source.image_ids.tolist() == [f"toy:{stem}" for stem in SIZES]
        assert [*zip(source.images.widths, source.images.heights, strict=True)] == [*SIZES.values()]
        assert (source.categories.names, source.categories.numbers) == (("cat", "dog"), (0, 1))
        assert source.has_category_ids
        objects = source.require_objects("a test")
        expected = [(n, number, box) for n, stem in enumerate(SIZES) for number, box in BOXES.get(stem, [])]
        assert [(one, two) for one, two, _ in expected] == [*zip(objects.image, objects.category, strict=True)]
        assert np.allclose(objects.boxes, [box for *_, box in expected])
    assert parts_at(root, "toy") == ("val",)
    assert len(curation.open_source("toy", root).images) == 3


def test_label_files_without_a_photo_are_counted(tmp_path: Path) -> None:
    root = write_yolo(tmp_path)
    (root / "labels/val/gone.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (root / "labels/val/classes.txt").write_text("cat\ndog\n")
    assert open_path(root, dataset="toy", part="val").dropped == {"label files without a photo": 1}


def test_a_line_that_is_written_again_is_one_object(tmp_path: Path) -> None:
    """As for Ultralytics, which removes duplicate labels; equal boxes of two classes or images are not repeated."""
    root = write_yolo(tmp_path)
    first, second = "0 0.5 0.5 0.25 0.25\n", "1 0.5 0.5 0.25 0.25\n"
    (root / "labels/val/c_3.txt").write_text(f"{first}{second}0 0.50 .5 0.250 0.25\n{second}{first}")
    (root / "labels/val/b_2.txt").write_text(first)
    source = open_path(root, dataset="toy", part="val")
    objects = source.require_objects("a test")
    assert [*zip(objects.image, objects.category, strict=True)] == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]
    assert source.dropped == {"repeated lines of label files": 3}


def test_a_polygon_is_the_box_around_it(tmp_path: Path) -> None:
    root = write_yolo(tmp_path)
    (root / "labels/val/c_3.txt").write_text("1 0.25 0.5 0.5 0.25 0.75 0.5 0.5 0.75\n")
    objects = open_path(root, dataset="toy", part="val").require_objects("a test")
    assert objects.boxes[-1].tolist() == [16, 16, 32, 32]


def broken(root: Path, what: str) -> None:
    label = root / "labels/val/c_3.txt"
    yaml = root / "data.yaml"

    def listing(line: str) -> None:
        yaml.write_text("val: v.txt\nnames: [cat, dog]\n")
        (root / "v.txt").write_text(line)

    changes: dict[str, Any] = {
        "no yaml": yaml.unlink,
        "no part": lambda: yaml.write_text("names: [cat, dog]\n"),
        "other part": lambda: yaml.write_text("test: images/val\nnames: [cat, dog]\n"),
        "no folder": lambda: yaml.write_text("val: pictures\nnames: [cat, dog]\n"),
        "outside": lambda: yaml.write_text(f"val: {root.parent}\nnames: [cat, dog]\n"),
        "list outside": lambda: listing("../x.png"),
        "list of nothing": lambda: listing("images/x.png"),
        "wrong nc": lambda: yaml.write_text(YAML.replace("nc: 2", "nc: 3")),
        "tag": lambda: yaml.write_text("val: !!python/name:os.system images/val\n"),
        "empty folder": lambda: shutil.rmtree(root / "images/val") or (root / "images/val").mkdir(),
        "no labels": lambda: shutil.rmtree(root / "labels"),
        "broken photo": lambda: (root / "images/val/c_3.png").write_bytes(b"no photo"),
        "twice": lambda: shutil.copy(root / "images/val/c_3.png", root / "images/val/c_3.jpg"),
        "confidence": lambda: label.write_text("0 0.5 0.5 0.1 0.1 0.9\n"),
        "class": lambda: label.write_text("2 0.5 0.5 0.1 0.1\n"),
        "pixels": lambda: label.write_text("0 30 20 10 10\n"),
        "words": lambda: label.write_text("cat 0.5 0.5 0.1 0.1\n"),
        "few": lambda: label.write_text("0 0.5 0.5\n"),
        "bytes": lambda: label.write_bytes(b"\xff\xfe0 0.5"),
    }
    changes[what]()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no yaml", "no data.yaml, which names its classes"),
        ("no part", "train, val or test: a folder of photos"),
        ("other part", "image_set='test'"),
        ("no folder", "toy/pictures"),
        ("outside", "a folder of photos below"),
        ("list outside", "leads outside"),
        ("list of nothing", "No photo of the part has a label file"),
        ("wrong nc", "another number of classes"),
        ("tag", "YAML cannot be read"),
        ("empty folder", "No photos of part 'val'"),
        ("no labels", "labels/val/a_1.txt"),
        ("broken photo", "c_3.png"),
        ("twice", "have the same stem"),
        ("confidence", "go to detections"),
        ("class", "0 to 1"),
        ("pixels", "shares of the image"),
        ("words", "c_3.txt: line 1"),
        ("few", "another number of values"),
        ("bytes", "not UTF-8"),
    ],
)
def test_a_wrong_folder_is_one_error_that_says_what_was_looked_for(what: str, words: str, tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "toy")
    broken(root, what)
    with pytest.raises(CurationError) as refused:
        curation.evaluate.coco(truth=root, image_set="val", detections=tmp_path / "none.csv")
    assert words in str(refused.value), refused.value


N_PHOTOS = 12
CLASSES = ("hat", "vest")


class Photos:
    """Photos with boxes in pixels of the photo as shown, and detections near them: what pycocotools makes of both."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        self.folder = folder
        self.stored = [(640, 480) if number % 3 else (480, 640) for number in range(N_PHOTOS)]
        self.orientation = [(1, 6, 8, 3, 5)[number % 5] for number in range(N_PHOTOS)]
        self.sizes = [size[::-1] if tag >= 5 else size for size, tag in zip(self.stored, self.orientation, strict=True)]
        self.boxes = []
        for number, (width, height) in enumerate(self.sizes):
            for _ in range(4):
                w, h = rng.uniform(0.1, 0.5, 2) * (width, height)
                x, y = rng.uniform(0, 1, 2) * (width - w, height - h)
                self.boxes.append((number, int(rng.integers(2)), (x, y, w, h)))
        rows = [
            {"image_id": f"{number:03d}", "category": CLASSES[label], "score": float(rng.uniform())}
            | {"bbox": [x + rng.normal(0, 9), y + rng.normal(0, 9), w, h]}
            for number, label, (x, y, w, h) in self.boxes
        ]
        self.detections = folder / "detections.json"
        self.detections.write_text(json.dumps(rows))
        self.rows = rows

    def lines(self, number: int) -> list[tuple[int, np.ndarray]]:
        """Return class and shares ``cx, cy, w, h`` of a photo's boxes."""
        size = np.array(self.sizes[number] * 2)
        boxes = [(label, np.array(box)) for image, label, box in self.boxes if image == number]
        return [(label, np.array([*(box[:2] + box[2:] / 2), *box[2:]]) / size) for label, box in boxes]

    def write(self, photos: str, labels: str, line: Any = lambda label, shares: f"{label} {_text(shares)}") -> None:
        for name in (photos, labels):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for number, (size, tag) in enumerate(zip(self.stored, self.orientation, strict=True)):
            exif = image.Exif()
            exif[0x0112] = tag
            image.new("L", size).save(self.folder / photos / f"{number:03d}.jpg", exif=exif)
            lines = [line(label, shares) for label, shares in self.lines(number)]
            (self.folder / labels / f"{number:03d}.txt").write_text("\n".join(lines) + "\n")

    @property
    def average_precision(self) -> float:
        """AP of pycocotools in percent."""
        coco, evaluation = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
        truth = coco.COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": number + 1, "width": w, "height": h} for number, (w, h) in enumerate(self.sizes)],
            "annotations": [
                {"id": n, "image_id": number + 1, "category_id": label, "bbox": [*box], "area": box[2] * box[3]}
                | {"iscrowd": 0}
                for n, (number, label, box) in enumerate(self.boxes, 1)
            ],
            "categories": [{"id": n, "name": name} for n, name in enumerate(CLASSES)],
        }
        truth.createIndex()
        rows = [
            row | {"image_id": int(row["image_id"]) + 1, "category_id": CLASSES.index(row["category"])}
            for row in self.rows
        ]
        made = evaluation.COCOeval(truth, truth.loadRes(rows), "bbox")
        made.evaluate()
        made.accumulate()
        made.summarize()
        return float(made.stats[0]) * 100

    def measured(self, part: str = "val", truth: Path | None = None) -> float:
        result = curation.evaluate.coco(truth=truth or self.folder, image_set=part, detections=self.detections)
        return float(result["AP"])


def _text(values: Any) -> str:
    return " ".join(f"{value:.9f}" for value in values)


@pytest.fixture
def photos(tmp_path: Path) -> Photos:
    (tmp_path / "toy").mkdir()
    return Photos(tmp_path / "toy")


NAMES = "names: [hat, vest]\n"


def test_boxes_are_shares_of_the_photo_as_its_orientation_tag_shows_it(photos: Photos) -> None:
    cv2 = pytest.importorskip("cv2")
    photos.write("images/val", "labels/val")
    (photos.folder / "data.yaml").write_text(f"val: images/val\n{NAMES}")
    source = open_path(photos.folder, dataset="toy", part="val")
    # As OpenCV reads the photos, which Ultralytics trains on.
    shapes = [cv2.imread(str(path)).shape for path in sorted((photos.folder / "images/val").iterdir())]
    assert [*zip(source.images.heights, source.images.widths, strict=True)] == [shape[:2] for shape in shapes]
    assert photos.measured() == pytest.approx(photos.average_precision, abs=1e-4)
    assert photos.average_precision > 30


@pytest.mark.parametrize(("count", "values"), [(4, 2), (4, 3), (1, 2), (1, 3), (17, 3), (2, 2)])
def test_keypoints_after_a_box_are_passed_over(count: int, values: int, photos: Photos) -> None:
    rng = np.random.default_rng(count)

    def line(label: int, shares: np.ndarray) -> str:
        points = rng.uniform(0, 1, (count, values))
        points[:, 2:] = rng.integers(0, 3, (count, values - 2))
        return f"{label} {_text([*shares, *points.ravel()])}"

    photos.write("images/val", "labels/val", line)
    yaml = photos.folder / "data.yaml"
    yaml.write_text(f"val: images/val\nkpt_shape: [{count}, {values}]\n{NAMES}")
    assert photos.measured() == pytest.approx(photos.average_precision, abs=1e-4)
    for shape in (f"[{count + 1}, {values}]", f"[{count}]", f"[{count}, 4]", "[0, 2]", "[many, 2]", "[4.0, 2]", "8"):
        yaml.write_text(f"val: images/val\nkpt_shape: {shape}\n{NAMES}")
        with pytest.raises(CurationError, match="kpt_shape"):
            photos.measured()


@pytest.mark.parametrize("name", ["data.yaml", "dataset.yaml", "dataset.yml", "toy.yaml", "helmets.yml"])
def test_a_yaml_is_found_by_the_names_that_tools_give_it(name: str, photos: Photos) -> None:
    photos.write("images/val", "labels/val")
    # What FiftyOne writes: a path of another working folder.
    (photos.folder / name).write_text("names:\n  0: hat\n  '1': vest\npath: exports/toy\nval: ./images/val/\n")
    (photos.folder / "hyp.yaml").write_text("lr0: 0.01\n")
    if name == "toy.yaml":
        (photos.folder / "other.yaml").write_text("names: [cat, dog]\nval: images/val\n")
    assert photos.measured() == pytest.approx(photos.average_precision, abs=1e-4)
    assert parts_at(photos.folder, "toy") == ("val",)


@pytest.mark.parametrize(
    ("layout", "classes"),
    [
        (("images", "labels"), "classes.txt"),
        (("images", "labels"), "labels/classes.txt"),
        (("obj", "obj"), "obj.names"),
        ((".", "."), "classes.txt"),
        (("val/images", "val/labels"), "classes.txt"),
    ],
)
def test_the_command_that_an_error_suggests_writes_the_yaml_that_is_missing(
    layout: tuple[str, str], classes: str, photos: Photos
) -> None:
    photos.write(*layout)
    (photos.folder / classes).write_text("hat\r\nvest\n\n")
    # Label Studio's, which are no annotations.
    (photos.folder / "notes.json").write_text('{"categories": [{"id": 0, "name": "hat"}]}')
    with pytest.raises(CurationError) as caught:
        photos.measured()
    assert "no data.yaml" in str(caught.value.found)
    subprocess.run(["sh", "-c", str(caught.value.hint)], check=True)
    assert photos.measured() == pytest.approx(photos.average_precision, abs=1e-4)


@pytest.mark.parametrize("prefix", ["data/", "/home/somebody/toy/", "./data/obj/", "../toy/"])
def test_a_list_of_photos_may_name_folders_of_another_machine(prefix: str, photos: Photos) -> None:
    photos.write("images/train", "labels/train")
    names = [f"{prefix}images/train/{number:03d}.jpg\n" for number in range(N_PHOTOS)]
    (photos.folder / "train.txt").write_text("".join(names))
    (photos.folder / "data.yaml").write_text(f"path: .\ntrain: train.txt\n{NAMES}")
    assert photos.measured("train") == pytest.approx(photos.average_precision, abs=1e-4)
    # One photo that does not exist: the others are not taken in its stead.
    (photos.folder / "train.txt").write_text("".join([*names, f"{prefix}images/train/999.jpg\n"]))
    with pytest.raises(CurationError):
        photos.measured("train")


def corners(box: np.ndarray, angle: float) -> np.ndarray:
    """Return the corners of a box that is turned about its centre, shape (4, 2)."""
    cx, cy, w, h = box
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.array([(-w, -h), (w, -h), (w, h), (-w, h)]) / 2 @ turn.T + (cx, cy)


def test_oriented_boxes_are_refused_by_name(photos: Photos) -> None:
    def line(label: int, shares: np.ndarray) -> str:
        return f"{label} {_text(corners(np.array([*(0.3 + 0.4 * shares[:2]), *(0.4 * shares[2:])]), 0.3).ravel())}"

    photos.write("images/val", "labels/val", line)
    yaml = photos.folder / "data.yaml"
    for task in ("", "task: obb\n"):
        yaml.write_text(f"val: images/val\n{task}{NAMES}")
        with pytest.raises(CurationError, match=r"oriented boxes \(OBB\)") as caught:
            photos.measured()
        assert f"all {len(photos.boxes)} lines" in str(caught.value.found)
    # What the error suggests: the box around the corners.
    assert "task: segment" in str(caught.value.hint)
    yaml.write_text(f"val: images/val\ntask: segment\n{NAMES}")
    objects = open_path(photos.folder, dataset="toy", part="val").require_objects("a test")
    for path, first in ((photos.folder / "labels/val/000.txt", 0), (photos.folder / "labels/val/011.txt", 44)):
        shares = np.array([line.split()[1:] for line in path.read_text().splitlines()], float).reshape(-1, 4, 2)
        points = shares * photos.sizes[first // 4]
        low, high = points.min(axis=1), points.max(axis=1)
        assert np.allclose(objects.boxes[first : first + 4], np.concatenate([low, high - low], axis=1))
