"""Generated annotation files of the real size and layout: COCO train2017 with polygons, VOC2007 test as XML."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from curation.core.writing import replacing
from curation.sources.datasets import COCO_CATEGORIES, VOC_NAMES

IMAGES = 118_287
ANNOTATIONS = 860_001
EMPTY_IMAGES = 1_021
WILDERNESS_IMAGES = 23_008
VOC_IMAGES = 4_952
VOC_OBJECTS = 14_976
KNOWN = (5, 2, 16, 9, 44, 6, 3, 17, 62, 21, 67, 18, 19, 4, 1, 64, 20, 63, 7, 72)
_POLYGON_POOL = 4_096
_CHUNK = 20_000


def coco_file(folder: Path) -> Path:
    """Return a 400 MB instances file of train2017's figures, written on first use and kept in `folder`."""
    path = folder / "instances_train2017.json"
    if not path.exists():
        with replacing(path) as partial:
            _write_coco(partial)
    return path


def voc_folder(folder: Path) -> Path:
    """Return a VOC2007-like folder of 4,952 XML files and 14,976 objects, written on first use."""
    root = folder / "VOC2007"
    listed = root / "ImageSets" / "Main" / "test.txt"
    if not listed.exists():
        _write_voc(root)
    return root


def _write_coco(path: Path) -> None:
    generator = np.random.default_rng(2017)
    numbers = np.sort(generator.choice(581_929, IMAGES, replace=False) + 1)
    order = generator.permutation(numbers)
    with path.open("w", encoding="ascii") as stream:
        stream.write('{"info": {"description": "generated"}, "licenses": [{"id": 1, "name": "none", "url": ""}], ')
        stream.write('"images": [' + ", ".join(_image(number) for number in order.tolist()) + "], ")
        stream.write('"annotations": [')
        image, category = _statements(generator, order)
        for start in range(0, ANNOTATIONS, _CHUNK):
            stop = min(start + _CHUNK, ANNOTATIONS)
            lines = _annotations(generator, start, image[start:stop], category[start:stop])
            stream.write((", " if start else "") + ", ".join(lines))
        categories = [{"supercategory": parent, "id": number, "name": name} for number, name, parent in COCO_CATEGORIES]
        stream.write('], "categories": ' + json.dumps(categories) + "}")


def _image(number: int) -> str:
    name = f"{number:012d}.jpg"
    return (
        f'{{"license": 3, "file_name": "{name}", "coco_url": "http://images.cocodataset.org/train2017/{name}", '
        f'"height": 480, "width": 640, "date_captured": "2013-11-14 11:18:45", '
        f'"flickr_url": "http://farm9.staticflickr.com/8186/{number}_z.jpg", "id": {number}}}'
    )


def _statements(generator: np.random.Generator, order: np.ndarray) -> tuple[list[int], list[int]]:
    """Return image and category of each annotation: every image but the empty ones gets one at least."""
    annotated = order[EMPTY_IMAGES:]
    wild = annotated[: WILDERNESS_IMAGES - EMPTY_IMAGES]
    extra = generator.choice(annotated, ANNOTATIONS - len(annotated))
    image = generator.permutation(np.concatenate([annotated, extra]))
    known = np.array(KNOWN)
    unknown = np.array([number for number, _, _ in COCO_CATEGORIES if number not in KNOWN])
    # Every statement about a tame image names a known class: which unknown ones it shows as well costs nothing to read.
    category = np.where(
        np.isin(image, wild), generator.choice(unknown, len(image)), generator.choice(known, len(image))
    )
    return image.tolist(), category.tolist()


def _annotations(generator: np.random.Generator, start: int, image: list[int], category: list[int]) -> list[str]:
    count = len(image)
    polygons = _polygons(np.random.default_rng(5))
    choice = generator.integers(0, _POLYGON_POOL, count).tolist()
    crowd = (generator.random(count) < 0.01).tolist()
    boxes = generator.integers(0, 30_000, (count, 4)) / 100
    return [
        f'{{"segmentation": {_RLE if crowd[row] else polygons[choice[row]]}, "area": {box[2] * box[3] / 2:.5f}, '
        f'"iscrowd": {int(crowd[row])}, "image_id": {image[row]}, "bbox": {box}, '
        f'"category_id": {category[row]}, "id": {start + row + 1}}}'
        for row, box in enumerate(boxes.tolist())
    ]


def _polygons(generator: np.random.Generator) -> list[str]:
    sizes = generator.integers(8, 39, _POLYGON_POOL).tolist()
    pools = [[(generator.integers(0, 60_000, 2 * size) / 100).tolist()] for size in sizes]
    return [json.dumps(pool, separators=(",", ":")) for pool in pools]


_RLE = json.dumps({"counts": np.random.default_rng(7).integers(1, 900, 300).tolist(), "size": [480, 640]})


def _write_voc(root: Path) -> None:
    generator = np.random.default_rng(2007)
    numbers = (np.sort(generator.choice(9_963, VOC_IMAGES, replace=False)) + 1).tolist()
    extra = generator.integers(0, VOC_IMAGES, VOC_OBJECTS - VOC_IMAGES)
    objects = (1 + np.bincount(extra, minlength=VOC_IMAGES)).tolist()
    annotations = root / "Annotations"
    annotations.mkdir(parents=True, exist_ok=True)
    for number, count in zip(numbers, objects, strict=True):
        (annotations / f"{number:06d}.xml").write_text(_xml(number, generator, count), encoding="ascii")
    listed = root / "ImageSets" / "Main" / "test.txt"
    listed.parent.mkdir(parents=True, exist_ok=True)
    with replacing(listed) as partial:
        partial.write_text("".join(f"{number:06d}\n" for number in numbers), encoding="ascii")


def _xml(number: int, generator: np.random.Generator, count: int) -> str:
    corners = generator.integers(1, 240, (count, 4)).tolist()
    body = "".join(
        f"\t<object>\n\t\t<name>{VOC_NAMES[int(generator.integers(20))]}</name>\n\t\t<pose>Left</pose>\n"
        f"\t\t<truncated>1</truncated>\n\t\t<difficult>{int(generator.random() < 0.2)}</difficult>\n\t\t<bndbox>\n"
        f"\t\t\t<xmin>{x}</xmin>\n\t\t\t<ymin>{y}</ymin>\n\t\t\t<xmax>{x + w}</xmax>\n\t\t\t<ymax>{y + h}</ymax>\n"
        "\t\t</bndbox>\n\t</object>\n"
        for x, y, w, h in corners
    )
    return (
        f"<annotation>\n\t<folder>VOC2007</folder>\n\t<filename>{number:06d}.jpg</filename>\n\t<source>\n"
        "\t\t<database>The VOC2007 Database</database>\n\t\t<annotation>PASCAL VOC2007</annotation>\n"
        "\t\t<image>flickr</image>\n\t\t<flickrid>341012865</flickrid>\n\t</source>\n\t<owner>\n"
        "\t\t<flickrid>generated</flickrid>\n\t\t<name>generated</name>\n\t</owner>\n\t<size>\n\t\t<width>500</width>\n"
        "\t\t<height>500</height>\n\t\t<depth>3</depth>\n\t</size>\n\t<segmented>0</segmented>\n"
        f"{body}</annotation>\n"
    )
