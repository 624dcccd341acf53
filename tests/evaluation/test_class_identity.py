"""Which class a detection is of: category ids that nobody states, Ultralytics' two numberings, classes of no box."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import curation
from curation.core.errors import PredictionError
from curation.sources.datasets import COCO_CATEGORIES
from tests.extensions.diagnosis.mistaken import Rows, Truth, world


def by_pycocotools(truth: Truth, rows: Rows) -> float:
    """Return AP in %, of records with the ids of the truth."""
    coco, evaluation = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        objects = coco.COCO()
        objects.dataset = copy.deepcopy(truth)
        objects.createIndex()
        run = evaluation.COCOeval(objects, objects.loadRes(copy.deepcopy(rows)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return 100 * float(run.stats[0])


def boxes_of(truth: Truth, *, ids: bool) -> Rows:
    """Return one row a box; images without one have a row without a class."""
    names = {category["id"]: category["name"] for category in truth["categories"]}
    images = {image["id"]: {key: image[key] for key in ("file_name", "width", "height")} for image in truth["images"]}
    return [
        {"image_id": box["image_id"], "category": names[box["category_id"]], "bbox": box["bbox"], "area": box["area"],
         **({"category_id": box["category_id"]} if ids else {}), **images[box["image_id"]]}
        for box in truth["annotations"]
    ]  # fmt: skip


TABLES: dict[str, Any] = {
    "rows": list,
    "a DataFrame": pd.DataFrame,
    "images": lambda rows: [
        {"image_id": image, "labels": [row["category"] for row in group],
         "boxes": [[x, y, x + w, y + h] for x, y, w, h in (row["bbox"] for row in group)]}
        for image in dict.fromkeys(row["image_id"] for row in rows)
        for group in [[row for row in rows if row["image_id"] == image]]
    ],
}  # fmt: skip
EVALUATIONS = ("coco", "voc")


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("benchmark", EVALUATIONS)
def test_a_truth_without_category_ids_takes_no_numbers_and_each_remedy_works(form: str, benchmark: str) -> None:
    truth, rows = world(20)
    # The detector numbers classes in another order than their names have.
    names = {category["id"]: f"{'zyxwvuts'[place]}" for place, category in enumerate(truth["categories"])}
    for category in truth["categories"]:
        category["name"] = names[category["id"]]
    evaluate = getattr(curation.evaluate, benchmark)
    right = evaluate(truth=truth, detections=rows).numbers()
    if benchmark == "coco":
        assert right["coco/AP"] == pytest.approx(by_pycocotools(truth, rows))
    with pytest.raises(PredictionError, match="states no category ids") as refused:
        evaluate(truth=TABLES[form](boxes_of(truth, ids=False)), detections=rows)
    assert "names into the detections" in str(refused.value)
    assert "category_id of each row" in str(refused.value)
    named = [{key: row[key] for key in ("image_id", "bbox", "score")} | {"category": names[row["category_id"]]}
             for row in rows]  # fmt: skip
    if form != "images":  # Corners there lose digits, and labels hold no second name.
        assert evaluate(truth=TABLES[form](boxes_of(truth, ids=False)), detections=named).numbers() == right
        assert evaluate(truth=TABLES[form](boxes_of(truth, ids=True)), detections=rows).numbers() == right
        both = [row | {"category": names[row["category_id"]]} for row in rows]
        assert evaluate(truth=TABLES[form](boxes_of(truth, ids=False)), detections=both).numbers() == right


def write_yolo(root: Path, truth: Truth) -> Path:
    """Write a truth as Ultralytics reads it: its classes in their order, from 0."""
    image = pytest.importorskip("PIL.Image")
    position = {category["id"]: place for place, category in enumerate(truth["categories"])}
    (root / "images").mkdir(parents=True)
    (root / "labels").mkdir()
    for one in truth["images"]:
        width, height = one["width"], one["height"]
        image.new("L", (width, height)).save(root / "images" / one["file_name"])
        boxes = [(position[box["category_id"]], *box["bbox"]) for box in truth["annotations"]
                 if box["image_id"] == one["id"]]  # fmt: skip
        lines = [f"{kind} {(x + w / 2) / width!r} {(y + h / 2) / height!r} {w / width!r} {h / height!r}\n"
                 for kind, x, y, w, h in boxes]  # fmt: skip
        (root / "labels" / one["file_name"]).with_suffix(".txt").write_text("".join(lines))
    names = [category["name"] for category in truth["categories"]]
    (root / "data.yaml").write_text(f"test: images\nnc: {len(names)}\nnames: {json.dumps(names)}\n")
    return root


def by_ultralytics(truth: Truth, rows: Rows, *, first: int, named: bool = True) -> Rows:
    """Return the records of ``predictions.json``: ids from `first`, the photo of each named since 2025."""
    position = {category["id"]: place for place, category in enumerate(truth["categories"])}
    files = {image["id"]: image["file_name"] for image in truth["images"]}
    return [
        {"image_id": int(Path(files[row["image_id"]]).stem), **({"file_name": files[row["image_id"]]} if named else {}),
         "category_id": position[row["category_id"]] + first, "bbox": row["bbox"], "score": row["score"]}
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize("numbers", [[4], [3, 9], [1, 2, 3, 5, 7]])
def test_predictions_of_ultralytics_are_read_with_their_own_truth(numbers: list[int], tmp_path: Path) -> None:
    truth, rows = world(20, numbers=numbers)
    root = write_yolo(tmp_path / "yolo", truth)
    truth["annotations"] = [box | {"bbox": box["bbox"]} for box in truth["annotations"]]
    for used in [numbers, *([one] for one in numbers), numbers[1:], numbers[:-1]]:
        some = [row for row in rows if row["category_id"] in used]
        if not some:
            continue
        right = by_pycocotools(truth, some)
        for first, named in ((1, True), (0, False), (1, False), (0, True)):
            detections = by_ultralytics(truth, some, first=first, named=named)
            ids = {row["category_id"] for row in detections}
            if (first, named) == (0, True) and 0 not in ids:
                continue  # Ultralytics never wrote this.
            path = tmp_path / "predictions.json"
            path.write_text(json.dumps(detections))
            result = curation.evaluate.coco(truth=root, detections=path)
            certain = named or 0 in ids or len(numbers) in ids
            says = any("Ultralytics" in text for text in result.notes)
            if certain and (first == 1 or max(ids) < len(numbers)):
                assert result["AP"] == pytest.approx(right, abs=1e-6), (used, first, named)
                assert says == (first == 1 and 0 not in ids)
                # What `evaluate` reads rightly `inspect` does not accuse, and what it mends both read.
                numbering = [
                    found for found in curation.inspect(root, detections=path).findings if "ategory" in found.what
                ]
                assert not numbering
            # Ids that both numberings can have are read as the truth's, and the boxes doubt that.
            elif first == 1 and not says and right > 10:
                assert any("looks for a mistake" in text for text in result.notes), (used, first, named)


def test_ids_of_coco_are_read_with_a_yolo_truth_of_its_80_classes(tmp_path: Path) -> None:
    """Ultralytics writes 1 to 90 where it validates on val2017."""
    numbers = [number for number, *_ in COCO_CATEGORIES]
    truth, rows = world(30, numbers=numbers)
    names = {number: name for number, name, *_ in COCO_CATEGORIES}
    for category in truth["categories"]:
        category["name"] = names[category["id"]]
    root = write_yolo(tmp_path / "yolo", truth)
    files = {image["id"]: image["file_name"] for image in truth["images"]}
    result = curation.evaluate.coco(
        truth=root, detections=[row | {"file_name": files[row["image_id"]]} for row in rows]
    )
    assert result["AP"] == pytest.approx(by_pycocotools(truth, rows), abs=1e-6)
    assert "90" in str(result.notes)


@pytest.mark.parametrize("is_coco", [True, False])
def test_ids_that_both_numberings_of_ultralytics_have_are_told_by_the_boxes(tmp_path: Path, is_coco: bool) -> None:
    """A detector of some classes: COCO's 22 to 44 on val2017, positions from 1 on photos with COCO's names."""
    numbers = [number for number, *_ in COCO_CATEGORIES]
    names = {number: name for number, name, *_ in COCO_CATEGORIES}
    truth, rows = world(30, numbers=[number for number in numbers if 22 <= number <= 44])
    truth["categories"] = [{"id": number, "name": names[number]} for number in numbers]
    root = write_yolo(tmp_path / "yolo", truth)
    files = {image["id"]: image["file_name"] for image in truth["images"]}
    number_of = (lambda number: number) if is_coco else (lambda number: numbers.index(number) + 1)
    found = [
        row | {"category_id": number_of(row["category_id"]), "file_name": files[row["image_id"]],
               "image_id": Path(files[row["image_id"]]).stem}
        for row in rows
    ]  # fmt: skip
    for row in found:
        row["image_id"] = int(row["image_id"]) if row["image_id"].isdigit() else row["image_id"]
    result = curation.evaluate.coco(truth=root, detections=found)
    assert result["AP"] == pytest.approx(by_pycocotools(truth, rows), abs=1e-6)
    (tmp_path / "found.json").write_text(json.dumps(found))
    assert curation.inspect(root, detections=tmp_path / "found.json").findings == ()


@pytest.mark.parametrize("benchmark", EVALUATIONS)
def test_detections_of_classes_that_the_truth_lacks_are_left_out_where_asked(benchmark: str) -> None:
    truth, rows = world(20)
    strange = [row | {"category_id": 12} if number % 9 == 0 else row for number, row in enumerate(rows)]
    evaluate = getattr(curation.evaluate, benchmark)
    with pytest.raises(PredictionError, match="other_classes='drop' leaves out"):
        evaluate(truth=truth, detections=strange)
    result = evaluate(truth=truth, detections=strange, other_classes="drop")
    rest = [row for row in strange if row["category_id"] != 12]
    assert result.numbers() == evaluate(truth=truth, detections=rest).numbers()
    [count] = result.data["inputs"]["test"]["detections"]["reported"].values()
    assert count == len(strange) - len(rest)
    if benchmark == "coco":
        assert result["AP"] == pytest.approx(by_pycocotools(truth, rest))
    # Where no class is the truth's, nothing is left to score.
    with pytest.raises(PredictionError, match="not known"):
        evaluate(truth=truth, detections=[row | {"category_id": 99} for row in rows], other_classes="drop")
