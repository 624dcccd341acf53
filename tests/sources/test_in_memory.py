"""The same data as file, dictionary, rows and DataFrame: identical columns, or the same error."""

import copy
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import curation
from curation.core.errors import AnnotationFormatError, CurationError, UsageError
from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import read_detections
from curation.evaluation.truth import ground_truth
from curation.sources.in_memory import encoded_json, results_bytes
from curation.sources.source import Source

World = dict[str, Any]
FLAGS = ("iscrowd", "difficult", "ignore", "truncated", "occluded")
WORLD: World = {
    "images": [{"id": n, "file_name": f"photos/{n}.jpg", "width": 60 + n, "height": 40} for n in (3, 1, 2)],
    "annotations": [
        {"id": 1, "image_id": 3, "category_id": 2, "bbox": [0.5, 1, 9, 9], "area": 70.25, "iscrowd": 0},
        {"id": 2, "image_id": 3, "category_id": 7, "bbox": [4, 4, 8, 8], "area": 64, "iscrowd": 1},
        {"id": 3, "image_id": 1, "category_id": 7, "bbox": [4, 4, 8.5, 8], "area": 68, "iscrowd": 0},
    ],
    "categories": [{"id": 2, "name": "owl", "supercategory": "bird"}, {"id": 7, "name": "ant", "supercategory": ""}],
}
FOUND = [
    {"image_id": 3, "category_id": 2, "bbox": [0, 1, 9, 9], "score": 0.75},
    {"image_id": 1, "category_id": 7, "bbox": [4.5, 4, 8, 8], "score": 0.5},
]


def rows_of(world: World) -> list[dict[str, Any]]:
    """Return one row a box, and one for each image without boxes."""
    kinds = {one["id"]: one for one in world["categories"]}
    rows = []
    for image in world["images"]:
        facts = {"image_id": image["id"]} | {key: image[key] for key in ("file_name", "width", "height")}
        own = [one for one in world["annotations"] if one["image_id"] == image["id"]]
        for one in own:
            kind = kinds[one["category_id"]]
            said = {key: one[key] for key in ("bbox", "area", *FLAGS) if key in one}
            more = {"category": kind["name"], "category_id": kind["id"], "supercategory": kind["supercategory"]}
            rows.append({**facts, **more, **said})
        if not own:
            rows.append(facts | {"category": None, "bbox": None})
    return rows


def array_of(box: list[Any]) -> Any:
    """Return a box of numbers as an array, anything else as it is."""
    return box if box is None or any(isinstance(one, str) for one in box) else np.array(box)


def in_numpy(value: Any) -> Any:
    """Return the same data in NumPy's types: float32 where nothing is lost, arrays for boxes."""
    if isinstance(value, dict):
        return {key: array_of(one) if key == "bbox" else in_numpy(one) for key, one in value.items()}
    if isinstance(value, list):
        return [in_numpy(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return np.int64(value)
    return np.float32(value) if isinstance(value, float) and float(np.float32(value)) == value else value


def by_columns(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows with the columns x, y, w, h; a row without a box has none of them."""
    frame = pd.DataFrame(rows)
    boxes = [[np.nan] * 4 if box is None or len(box) != 4 else box for box in frame.pop("bbox")]
    frame[["x", "y", "w", "h"]] = pd.DataFrame(boxes, index=frame.index)
    return frame


FORMS: dict[str, Callable[[World], Any]] = {
    "dictionary": copy.deepcopy,
    "dictionary of numpy": lambda world: {key: in_numpy(one) for key, one in world.items()},
    "dictionary of Series": lambda world: {key: pd.Series(one, dtype=object) for key, one in world.items()},
    "rows": rows_of,
    "rows of numpy": lambda world: in_numpy(rows_of(world)),
    "Series of rows": lambda world: pd.Series(rows_of(world)),
    "frame": lambda world: pd.DataFrame(rows_of(world)),
    "frame of x, y, w, h": lambda world: by_columns(rows_of(world)),
}


def as_file(world: World, folder: Path) -> Path:
    path = folder / "truth.json"
    path.write_text(json.dumps(world), encoding="utf-8")
    return path


def columns_of(source: Source) -> dict[str, Any]:
    """Return every column of a source, as lists."""
    assert source.objects is not None
    tables = {"images": source.images, "categories": source.categories, "objects": source.objects}
    found = {
        f"{name}.{column.name}": getattr(table, column.name)
        for name, table in tables.items()
        for column in fields(table)
    }
    return {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in found.items()}


def outcome(act: Callable[[], Any]) -> Any:
    """Return what a call gives, or its error: class and words, without where, and what is shown of bytes."""
    try:
        return act()
    except CurationError as error:
        found = None if error.what == "The annotation file is not JSON" else error.found
        return type(error), error.what, error.expected, found, error.hint


def truth_of(given: Any, bad_boxes: Any = "error") -> Any:
    return outcome(lambda: columns_of(curation.open_source("mine", given, bad_boxes=bad_boxes)))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a sound truth, annotations in the order of their images, every class in use."""
    size = st.integers(1, 500)
    number = st.one_of(st.integers(0, 400), st.floats(0, 400, width=32))
    ids = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=4, unique=True))
    texts = draw(st.booleans())
    images = [
        {"id": f"p{one}" if texts else one, "file_name": f"{one}.jpg", "width": draw(size), "height": draw(size)}
        for one in ids
    ]
    names = draw(st.lists(st.sampled_from(["owl", "ant", "Öl", "a b", "dog"]), min_size=1, max_size=3, unique=True))
    numbers = sorted(draw(st.lists(st.integers(0, 90), min_size=len(names), max_size=len(names), unique=True)))
    kinds = [
        {"id": one, "name": name, "supercategory": draw(st.sampled_from(["", "thing"]))}
        for one, name in zip(numbers, names, strict=True)
    ]
    placed = sorted(draw(st.lists(st.integers(0, len(ids) - 1), max_size=4)) + [0] * len(kinds))
    annotations = [
        {
            "id": row + 1,
            "image_id": images[place]["id"],
            "category_id": kinds[row % len(kinds)]["id"],
            "bbox": [draw(number) for _ in range(4)],
            "area": draw(number),
            **{flag: draw(st.sampled_from([0, 1])) for flag in FLAGS},
        }
        for row, place in enumerate(placed)
    ]
    return {"images": images, "annotations": annotations, "categories": kinds}


@settings(max_examples=40, deadline=None)
@given(world=worlds())
def test_a_sound_truth_has_the_columns_of_its_file_in_every_form(world: World) -> None:
    with TemporaryDirectory() as folder:
        expected = truth_of(as_file(world, Path(folder)))
    assert isinstance(expected, dict)
    for name, form in FORMS.items():
        assert truth_of(form(world)) == expected, name


BROKEN: dict[str, tuple[str, int, str, Any]] = {
    "a width that is no whole number": ("images", 0, "width", 64.9),
    "a width as text": ("images", 0, "width", "64"),
    "a negative width": ("images", 0, "width", -1),
    "a file name that is a number": ("images", 0, "file_name", 5),
    "a box of negative size": ("annotations", 0, "bbox", [1, 1, -2, 3]),
    "a box beyond any image": ("annotations", 0, "bbox", [1, 1, 2, 3e9]),
    "a box of texts": ("annotations", 0, "bbox", ["1", 1, 2, 3]),
    "a box that is not finite": ("annotations", 0, "bbox", [1, float("nan"), 2, 3]),
    "a box without end": ("annotations", 0, "bbox", [1, 2, float("inf"), 3]),
    "a flag that is none": ("annotations", 0, "iscrowd", 2),
    "a flag between": ("annotations", 1, "iscrowd", 0.5),
    "a negative area": ("annotations", 0, "area", -4.0),
    "an area without end": ("annotations", 0, "area", float("inf")),
    "a name that is no text": ("categories", 0, "name", 1.5),
    "a name of half a letter": ("categories", 0, "name", "\ud800"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_truth_has_the_error_of_its_file_in_every_form(case: str, form: str, tmp_path: Path) -> None:
    section, row, field, value = BROKEN[case]
    if value == "\ud800" and form.startswith("frame"):
        pytest.skip("pandas holds no half of a letter")
    world = copy.deepcopy(WORLD)
    world[section][row][field] = value
    for policy in ("error", "drop"):
        expected = truth_of(as_file(world, tmp_path), policy)
        assert truth_of(FORMS[form](world), policy) == expected
    assert not isinstance(truth_of(as_file(world, tmp_path)), dict)


RESULT_FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": copy.deepcopy,
    "numpy": in_numpy,
    "Series": pd.Series,
    "frame": pd.DataFrame,
    "frame of x, y, w, h": by_columns,
    "joined frame": lambda rows: pd.concat([pd.DataFrame(rows), pd.DataFrame([{"other": 1}])]).iloc[:-1],
}


def detections_of(data: bytes, folder: Path) -> Any:
    truth = ground_truth(curation.open_source("coco", WORLD), classes_of_source(curation.open_source("coco", WORLD)))
    path = folder / "found.json"
    path.write_bytes(data)
    read = read_detections(path, truth.truth).detections
    return {one.name: np.asarray(getattr(read, one.name)).tolist() for one in fields(read)}


@pytest.mark.parametrize("form", RESULT_FORMS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("score", 0.5),
        ("score", 1.5),
        ("score", "0.5"),
        ("image_id", 99),
        ("image_id", 1.5),
        ("category_id", 4),
        ("bbox", [1, 1, -2, 3]),
        ("bbox", [1, "1", 2, 3]),
    ],
)
def test_detections_have_the_columns_or_the_error_of_their_file(
    form: str, field: str, value: Any, tmp_path: Path
) -> None:
    rows = copy.deepcopy(FOUND)
    rows[1][field] = value
    expected = outcome(lambda: detections_of(json.dumps(rows).encode(), tmp_path))
    assert outcome(lambda: detections_of(results_bytes(RESULT_FORMS[form](rows)), tmp_path)) == expected
    assert isinstance(expected, dict) == ((field, value) == ("score", 0.5))


def test_a_truth_by_image_has_classes_by_name_or_number() -> None:
    image = {"image_id": 5, "width": 60, "height": 40, "boxes": np.array([[1.0, 2, 4, 6]]), "iscrowd": np.array([1])}
    empty = {"image_id": 6, "width": 60, "height": 40, "boxes": np.empty((0, 4)), "iscrowd": [], "labels": []}
    for label, numbers, names in ((["owl"], (1,), ("owl",)), (np.array([7]), (7,), ("7",))):
        source = curation.open_source("mine", [{**image, "labels": label}, empty])
        assert (source.categories.numbers, source.categories.names) == (numbers, names)
        assert source.objects is not None
        assert source.objects.boxes.tolist() == [[1, 2, 3, 4]]
        assert source.objects.crowd.tolist() == [True]
        assert source.images.numbers.tolist() == [5, 6]
    with pytest.raises(UsageError, match="Malformed boxes of an image"):
        curation.open_source("mine", [{**image, "labels": []}])


ROW = {"image_id": 1, "category": "owl", "x": 1, "y": 2, "w": 3, "h": 4, "width": 60, "height": 40, "file_name": "a"}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW, {**ROW, "width": 61}], "differ in width.*60 and 61"),
        ([ROW, {**ROW, "file_name": "b"}], "differ in file_name.*'a' and 'b'"),
        ([{**ROW, "category": "1"}, {**ROW, "category": 1}], "are texts, others are numbers.*'1' and 1"),
        ([{**ROW, "category_id": 1}, {**ROW, "category_id": 2}], "differ in category_id.*1 and 2"),
        ([{**ROW, "category_id": 1}, {**ROW, "category": "ant"}], "no category_id.*'ant'"),
        ([{**ROW, "category_id": 1}, {**ROW, "category": "ant", "category_id": 1}], "same category id"),
        ([{**ROW, "category": None}], "box has no class"),
    ],
)
def test_rows_that_disagree_are_refused_with_both_values(rows: list[dict[str, Any]], says: str) -> None:
    for form in (pd.DataFrame(rows), rows):
        with pytest.raises(curation.CurationError, match=f"(?s){says}"):
            curation.open_source("mine", form)


@pytest.mark.parametrize("name", ["image_id", "category", "x", "width"])
def test_a_column_that_stands_twice_is_refused_by_name(name: str) -> None:
    frame = pd.concat([pd.DataFrame([ROW]), pd.DataFrame([{name: 2}])], axis=1)
    with pytest.raises(UsageError, match=f"(?s)appears twice.*found: {name}"):
        curation.open_source("mine", frame)
    found = pd.DataFrame(FOUND)
    with pytest.raises(UsageError, match=r"(?s)appears twice.*found: score"):
        curation.evaluate.voc(truth=WORLD, detections=pd.concat([found, found[["score"]]], axis=1))


def test_whole_numbers_that_a_table_made_floats_are_taken_exactly() -> None:
    frame = pd.DataFrame([ROW, {"image_id": 2, "category": "owl", "x": 1, "y": 1, "w": 1, "h": 1}])
    assert frame["width"].dtype == np.float64
    source = curation.open_source("mine", frame.astype({"image_id": float}))
    assert source.images.widths.tolist() == [60, 0]
    assert source.image_ids.tolist() == ["mine:1", "mine:2"]
    large = pd.DataFrame([{**ROW, "image_id": float(2**60)}])
    with pytest.raises(AnnotationFormatError, match=r"got `?float"):
        curation.open_source("mine", large)


def itself() -> list[Any]:
    one: list[Any] = []
    one.append(one)
    return one


@pytest.mark.parametrize(
    ("value", "says"),
    [(itself(), "Circular"), ({(1, 2): 3}, "not allowed"), ([3j], "not allowed"), ([object], "not allowed")],
)
def test_what_json_cannot_hold_is_refused(value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        encoded_json(value)


def replaced(value: Any, old: Any, new: Any) -> Any:
    """Return plain data with each value that is `old` replaced."""
    if isinstance(value, dict):
        return {key: replaced(member, old, new) for key, member in value.items()}
    if isinstance(value, list):
        return [replaced(member, old, new) for member in value]
    return new if type(value) is type(old) and value == old else value


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, np.bytes_])
def test_bytes_are_refused_wherever_they_stand(make: Callable[[bytes], Any]) -> None:
    """As JSON they would be a text in base64: a class of another name, a mask of other pixels."""
    owl, mask = make(b"owl"), {"size": [40, 60], "counts": make(b"abc")}
    truths = [
        replaced(WORLD, WORLD["categories"][0]["name"], owl),
        {**WORLD, "annotations": [WORLD["annotations"][0] | {"segmentation": mask}, *WORLD["annotations"][1:]]},
        [{**ROW, "category": owl}],
        pd.DataFrame([{**ROW, "category": owl}]),
        pd.DataFrame([{**ROW, "file_name": owl}]),
        [{"image_id": 1, "boxes": [[0, 0, 3, 3]], "labels": [owl]}],
    ]
    for truth in truths:
        with pytest.raises(UsageError, match="Bytes where a text"):
            curation.open_source("mine", truth)
    for found in ([FOUND[0] | {"category": owl}], [FOUND[0] | {"segmentation": mask}],
                  pd.DataFrame([FOUND[0] | {"category": owl}]),
                  {3: {"boxes": [[0, 0, 3, 3]], "scores": [0.5], "labels": [owl]}}):  # fmt: skip
        with pytest.raises(UsageError, match="Bytes where a text"):
            curation.evaluate.voc(truth=WORLD, detections=found)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**40])
def test_ids_beyond_64_bits_are_one_error(number: int) -> None:
    truths = [replaced(WORLD, 3, number), replaced(WORLD, 7, number), [{**ROW, "image_id": number}],
              [{**ROW, "category": number}], pd.DataFrame([{**ROW, "image_id": number}]),
              [{**ROW, "category_id": number}]]  # fmt: skip
    for truth in truths:
        with pytest.raises(CurationError, match="malformed"):
            curation.open_source("mine", truth)
    for found in ([FOUND[0] | {"image_id": number}], [FOUND[0] | {"category_id": number}],
                  {number: {"boxes": [[0, 0, 3, 3]], "scores": [0.5], "labels": [2]}}):  # fmt: skip
        with pytest.raises(CurationError, match="cannot be read"):
            curation.evaluate.voc(truth=WORLD, detections=found)
