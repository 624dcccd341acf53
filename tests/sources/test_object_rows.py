"""Rows of images with a column of objects: Hugging Face's Parquet and ``metadata.jsonl`` as sources."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import curation
from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    DamagedFileError,
    DuplicateIdError,
    MissingFileError,
)
from curation.sources.object_rows import row_files
from curation.sources.published_list import read_published
from tests.shell import Shell

BOXES = [[1.0, 2.0, 10.0, 20.0], [5.0, 6.0, 7.5, 8.0]]
ROWS = [
    {"file_name": "a/1.jpg", "width": 64, "height": 48, "objects": {"bbox": BOXES, "category": ["cat", "dog"]}},
    {"file_name": "a/2.jpg", "width": 64, "height": 48, "objects": {"bbox": [], "category": []}},
]


def jsonl(folder: Path, rows: Sequence[Any], name: str = "metadata.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def with_objects(objects: Any, **row: Any) -> list[dict[str, Any]]:
    return [{"file_name": "1.jpg", "objects": objects, **row}]


def hub_table(path: Path, rows: Mapping[str, list[Any]], names: Sequence[str] = ()) -> Path:
    """Write what `datasets` writes: the features beside the columns, and photos within."""
    label = {"_type": "ClassLabel", "names": list(names)}
    objects = {
        "bbox": {"_type": "List", "feature": {"_type": "Value"}},
        "category": {"_type": "List", "feature": label},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": {"objects": objects if names else {}}}})}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(rows).replace_schema_metadata(metadata), path)
    return path


def test_lists_of_a_record_and_records_of_a_list_are_one_source(tmp_path: Path) -> None:
    by_record = [{"bbox": box, "category": name} for box, name in zip(BOXES, ("cat", "dog"), strict=True)]
    paths = [
        jsonl(tmp_path / "a", ROWS),
        jsonl(tmp_path / "b", [{**ROWS[0], "objects": by_record}, {**ROWS[1], "objects": None}]),
        hub_table(tmp_path / "c.parquet", {name: [row[name] for row in ROWS] for name in ROWS[0]}),
        tmp_path / "a",
    ]
    for path in paths:
        source = curation.open_source("birds", path)
        assert source.image_ids.tolist() == ["birds:a/1", "birds:a/2"]
        assert source.images.file_names.tolist() == ["a/1.jpg", "a/2.jpg"]
        assert source.objects is not None
        assert source.objects.boxes.tolist() == BOXES
        assert source.objects.areas.tolist() == [200.0, 60.0]
        assert [source.categories.names[k] for k in source.objects.category] == ["cat", "dog"]
        # Nobody numbers these classes, so detections have to name them.
        assert source.categories.numbering == "none"
        assert source.files[0].sha256.startswith("sha256:")


def test_numbers_are_named_by_the_features_that_datasets_writes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "image_id": datasets.Value("int64"),
            "image": datasets.Image(),
            "objects": datasets.List(
                {
                    "id": datasets.Value("int64"),
                    "bbox": datasets.List(datasets.Value("float32"), length=4),
                    "category": datasets.ClassLabel(names=["glove", "mask", "gown"]),
                }
            ),
        }
    )
    photo = {"bytes": b"not read", "path": "7.png"}
    record = {"id": 3, "bbox": BOXES[0], "category": 2}
    rows = datasets.Dataset.from_list([{"image_id": 7, "image": photo, "objects": [record]}], features=features)
    rows.to_parquet(tmp_path / "data/train-00000-of-00001.parquet")
    source = curation.open_source("cppe", tmp_path, part="train")
    assert source.images.numbers.tolist() == [7]
    assert source.images.file_names.tolist() == ["7.png"]
    assert source.objects is not None
    assert source.categories.names == ("glove", "mask", "gown")
    assert (source.categories.numbers, source.objects.category.tolist()) == ((0, 1, 2), [2])
    assert source.has_category_ids
    assert source.objects.numbers.tolist() == [3]


def test_files_are_parts_by_configuration_and_split(tmp_path: Path) -> None:
    for name in (
        "data/far/train.parquet", "near/train/0000.parquet", "near/train/0001.parquet", "near/test/0000.parquet",
        ".cache/x.parquet",
    ):  # fmt: skip
        hub_table(tmp_path / name, {"file_name": [f"{name}.jpg"], "objects": [[{"bbox": BOXES[0], "category": "cat"}]]})
    assert list(row_files(tmp_path)) == ["far", "near-test", "near-train"]
    assert len(curation.open_source("pets", tmp_path, part="near-train").images) == 2
    with pytest.raises(MissingFileError, match="no part 'val'") as refused:
        curation.open_source("pets", tmp_path, part="val")
    assert refused.value.found == "far, near-test, near-train"
    with pytest.raises(MissingFileError, match="several parts"):
        curation.open_source("pets", tmp_path)


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    hub_table(tmp_path / "train-00000-of-00002.parquet", {"file_name": ["1.jpg"], "objects": [[]]})
    with pytest.raises(MissingFileError, match="Files of the part are missing"):
        curation.open_source("pets", tmp_path, part="train")


BAD = {
    "no objects": ([{"file_name": "1.jpg"}], AnnotationFormatError, "no column of objects", "metadata.jsonl"),
    "no image": ([{"objects": []}], AnnotationFormatError, "names no image", "line 1"),
    "no box": (with_objects([{"category": "cat"}]), AnnotationFormatError, "has no box", r"objects\[0\]"),
    "no class": (with_objects([{"bbox": BOXES[0]}]), AnnotationFormatError, "has no class", r"objects\[0\]"),
    "three numbers": (
        with_objects([{"bbox": [1, 2, 3], "category": "cat"}]), AnnotationFormatError, "malformed",
        r"line 1, objects\[0\]",
    ),
    "text in a box": (
        with_objects([{"bbox": [1, 2, 3, "4"], "category": "cat"}]), AnnotationFormatError, "malformed",
        r"objects\[0\].bbox\[3\]",
    ),
    "negative": (with_objects([{"bbox": [1, 2, -3, 4], "category": "cat"}]), BoxError, "negative", r"objects\[0\]"),
    "uneven": (
        with_objects({"bbox": BOXES, "category": ["cat"]}), AnnotationFormatError, "differ in len", "line 1, objects",
    ),
    "number without name": (
        with_objects({"bbox": BOXES, "category": [0, 1]}), AnnotationFormatError, "has no name",
        r"objects\[0\].category",
    ),
    "a list of numbers": (with_objects([1, 2]), AnnotationFormatError, "malformed", "line 1, objects"),
    "one name, two numbers": (
        [
            {"image_id": k, "categories": [{"id": k, "name": "cat"}], "objects": []}
            for k in (1, 2)
        ],
        AnnotationFormatError, "A class has two numbers", "line 2",
    ),
    "one number, two names": (
        [{"image_id": k, "categories": [{"id": 1, "name": k}], "objects": []} for k in ("cat", "dog")],
        AnnotationFormatError, "Two classes have the same number", "line 2",
    ),
    "texts and numbers": (
        with_objects({"bbox": BOXES, "category": [1, "dog"]}, categories=[{"id": 1, "name": "cat"}]),
        AnnotationFormatError, "are texts, others are numbers", "metadata.jsonl",
    ),
    "twice": ([ROWS[0], ROWS[0]], DuplicateIdError, "same image id", "line 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_rows_that_are_not_right_are_named(name: str, tmp_path: Path) -> None:
    rows, error, what, where = BAD[name]
    with pytest.raises(error, match=what) as refused:
        curation.open_source("pets", jsonl(tmp_path, rows))
    assert re.search(where, refused.value.where or "")


def test_the_hint_on_bad_boxes_works(tmp_path: Path) -> None:
    path = jsonl(tmp_path, with_objects({"bbox": [*BOXES, [0, 0, -1, 4]], "category": ["a", "b", "c"]}))
    source = curation.open_source("pets", path, bad_boxes="drop")
    assert len(source.objects or ()) == 2
    assert sum(source.dropped.values()) == 1


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "b.jsonl").write_text("{]\n")
    for name, what in (("a.parquet", "cannot be read"), ("b.jsonl", "not a JSON object")):
        with pytest.raises(CurationError, match=what):
            curation.open_source("pets", tmp_path / name)
    with pytest.raises((AnnotationFormatError, DamagedFileError), match="cannot be read"):
        read_published(tmp_path / "a.parquet")


def test_damage_is_an_error_in_words(tmp_path: Path) -> None:
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    whole = hub_table(tmp_path / "whole.parquet", columns).read_bytes()
    rng, path, refused = random.Random(4), tmp_path / "t.parquet", 0
    for number in range(150):
        data = bytearray(whole[: rng.randrange(len(whole))] if number % 3 == 0 else whole)
        for _ in range(rng.randint(1, 4) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data))
        for read in (lambda: curation.open_source("pets", path), lambda: read_published(path)):
            try:
                read()
            except CurationError:
                refused += 1
    assert refused > 100


def test_a_text_that_unfolds_to_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 300_000]))
    parquet.write_table(pa.table({"file_name": text, "objects": [[]] * 20_000}), tmp_path / "t.parquet")
    for read in (lambda path: curation.open_source("pets", path), read_published):
        with pytest.raises(CurationError, match="larger in memory than"):
            read(tmp_path / "t.parquet")


def test_a_table_is_a_list_too(tmp_path: Path) -> None:
    path = hub_table(
        tmp_path / "t.parquet",
        {"image": [{"path": "x/1.jpg", "bytes": b"."}, {"path": "x/2.jpg", "bytes": b"."}], "label": [0, 1]},
    )
    [listed] = read_published(path).lists
    assert listed.paths == b"x/1.jpg\nx/2.jpg\n"
    assert read_published(path).form == "parquet"


def test_detections_are_scored_against_rows_and_a_benchmark_is_built_of_them(tmp_path: Path, shell: Shell) -> None:
    folder = tmp_path / "hub"
    for split in ("train", "test"):
        jsonl(
            folder, [{**row, "file_name": f"{split}{k}.jpg"} for k, row in enumerate(ROWS)], f"{split}/metadata.jsonl"
        )
    detections = [
        {"file_name": "test0.jpg", "category": name, "bbox": box, "score": 0.9}
        for name, box in zip(("cat", "dog"), BOXES, strict=True)
    ]
    (tmp_path / "d.json").write_text(json.dumps(detections))
    data = shell.data("evaluate", "coco", "--truth", folder, "--detections", tmp_path / "d.json", "--json")
    assert [row["value"] for row in data["measures"] if row["measure"] == "AP50"] == [pytest.approx(100)]
    tasks = "".join(
        f'[[classes.tasks]]\nname = "t{number}"\nclasses = ["{name}"]\n' for number, name in ((1, "cat"), (2, "dog"))
    )
    (tmp_path / "tasks.toml").write_text(
        f'rule = "tasks"\nname = "mylab/pets"\n[sources]\ntrain = {{}}\ntest = {{}}\n{tasks}'
    )
    words = (tmp_path / "tasks.toml", "--source", f"train={folder}", "--source", f"test={folder}")
    shell.out("build", *words, "--out", tmp_path / "m")
    built = curation.load(str(tmp_path / "m"))
    # An image without a box shows no class, and is in no list.
    assert {part: built.ids(f"t1-{part}") for part in ("train", "test")} == {
        "train": ("pets:train0",),
        "test": ("pets:test0",),
    }
