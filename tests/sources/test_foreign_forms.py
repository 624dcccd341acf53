"""Forms that are not read: each is refused by its name, and the printed command writes what is read."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import curation
from curation.core.errors import AnnotationFormatError, CurationError, SourceError
from curation.extensions.identify.run import identify
from curation.sources.foreign_forms import refuse_foreign
from curation.sources.published_list import read_published

BOXES = {"a": [("car", [10, 20, 30, 40]), ("van", [1, 2, 3, 4])], "b": [("car", [5, 6, 7, 8])], "c": []}
LINES = {
    "labelTxt": lambda name, x, y, w, h: f"{x}.0 {y}.0 {x + w}.0 {y}.0 {x + w}.0 {y + h}.0 {x}.0 {y + h}.0 {name} 0",
    "label_2": lambda name, x, y, w, h: f"{name} 0.00 0 -1.57 {x}.00 {y}.00 {x + w}.00 {y + h}.00 1.5 1.6 3.7 1 2 3 0",
    "annotations": lambda name, x, y, w, h: f"{x},{y},{w},{h},1,{('car', 'van').index(name)},0,0",
}
NAMES = {"labelTxt": "DOTA", "label_2": "KITTI", "annotations": "VisDrone"}


def write(root: Path, folder: str) -> Path:
    (root / folder).mkdir(parents=True)
    for stem, boxes in BOXES.items():
        header = "imagesource:GoogleEarth\ngsd:0.146\n" * (folder == "labelTxt")
        lines = "".join(f"{LINES[folder](name, *box)}\n" for name, box in boxes)
        (root / folder / f"{stem}.txt").write_text(header + lines)
    return root


def write_wider(path: Path) -> Path:
    blocks = [
        f"0--Parade/{stem}.jpg\n{len(boxes)}\n"
        + "".join(f"{' '.join(map(str, box))} 0 0 0 0 0 0 \n" for _, box in boxes)
        for stem, boxes in BOXES.items()
    ]
    # An image without a face has a line of zeros.
    path.write_text("".join(blocks) + "0 0 0 0 0 0 0 0 0 0 \n")
    return path


def converted(path: Path, tmp_path: Path) -> dict[str, list[tuple[str, list[float]]]]:
    """Run the command of the refusal, and return the boxes of what it writes by the stems of the images."""
    with pytest.raises(AnnotationFormatError, match="are not read") as refused:
        curation.open_source("mine", path)
    command = str(refused.value.hint).partition(" writes what")[0]
    if shutil.which("awk") is None:
        pytest.skip("there is no awk here")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    source = curation.open_source("mine", tmp_path / "rows.jsonl")
    found = source.require_objects("the test")
    assert [*source.images.native] == sorted(source.images.native)
    boxes: dict[str, list[tuple[str, list[float]]]] = {name: [] for name in source.images.native}
    for image, category, box in zip(found.image, found.category, found.boxes.tolist(), strict=True):
        boxes[source.images.native[image]].append((source.categories.names[category], box))
    return boxes


@pytest.mark.parametrize("folder", LINES)
def test_the_command_converts_files_of_an_image(folder: str, tmp_path: Path) -> None:
    classes = {"car": "0", "van": "1"} if folder == "annotations" else {"car": "car", "van": "van"}
    expected = {stem: [(classes[name], box) for name, box in boxes] for stem, boxes in BOXES.items()}
    assert converted(write(tmp_path / "it's", folder), tmp_path) == expected
    with pytest.raises(AnnotationFormatError, match=NAMES[folder]):
        refuse_foreign(tmp_path / "it's")


def test_the_command_converts_wider(tmp_path: Path) -> None:
    expected = {f"0--Parade/{stem}": [("face", box) for _, box in boxes] for stem, boxes in BOXES.items()}
    assert converted(write_wider(tmp_path / "wider.txt"), tmp_path) == expected


CVAT = (
    '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n  </meta>\n'
    + '  <image id="0" name="a.jpg" width="64" height="48">\n    <box label="car" xtl="1" ytl="2" xbr="3" ybr="4"/>\n'
    "  </image>\n" * 1
)
FILES = {
    "annotations.xml": (CVAT + "</annotations>\n", "CVAT XML", "9 lines, 1 image"),
    "a.json": ('{"version": "5.0", "shapes": [{"label": "car"}], "imagePath": "a.jpg"}', "labelme", "1 JSON file"),
    "ls.json": ('[{"annotations": [{"result": [{"original_width": 6}]}]}]', "Label Studio", "tasks"),
    "yolov3.cfg": ("# a net\n[net]\nbatch=64\n[convolutional]\nfilters=32\n", "darknet cfg", "[net]"),
    "a.xml": ("<annotation><object></object></annotation>", "VOC XML", "1 object"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused_by_name_and_is_no_list(name: str, tmp_path: Path) -> None:
    text, form, counts = FILES[name]
    (tmp_path / name).write_text(text)
    for read in (lambda path: curation.open_source("mine", path), read_published, identify):
        with pytest.raises(CurationError) as refused:
            read(tmp_path / name)
        assert form in refused.value.what
        assert counts in str(refused.value.found)
        assert refused.value.hint


SOUND = {
    "boxes.txt": "a.jpg 1\nb.jpg 2\n",
    "numbers.txt": "1\n2\n3\n",
    "voc.txt": "000001 -1\n000002 1\n",
    "words.txt": "car 1 2 3 4 5 6 7 8 9 10 11 12\n",
    "coco.json": '{"images": [{"id": 1}], "annotations": [], "categories": []}',
    "names.txt": "a.jpg\n1\nb.jpg\n2\n",
    "commas.csv": "1,2,3,4,1,0,0,0\n",
    "some.txt": "1,2,3,4,1,0,0,0\na.jpg\n",
    "page.xml": "<annotations/>",
    "cfg.cfg": "[nets]\n",
}


@pytest.mark.parametrize("name", SOUND)
def test_other_files_are_not_taken_for_such(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SOUND[name])
    refuse_foreign(tmp_path / name)
    refuse_foreign(tmp_path)


def test_a_folder_with_photos_is_refused_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, "annotations")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").touch()
    for dataset in ("mine", "coco"):
        with pytest.raises(SourceError, match=re.escape("Annotations of VisDrone are not read")):
            curation.open_source(dataset, tmp_path)
