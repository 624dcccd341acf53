"""The presence scan against plain counting, however the files are cut."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from curation.cli import main
from curation.core.errors import AnnotationFormatError, EngineError, UsageError
from curation.extensions.diagnosis import presence as module
from curation.extensions.diagnosis.presence import Presence, ScanPresence, annotation_blocks, presence

HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"


def made_rows(count: int) -> list[tuple[str, str]]:
    """Image and class of boxes: images have one to twelve boxes one after the other, one has a hundred."""
    generator = np.random.default_rng(7)
    rows: list[tuple[str, str]] = []
    while len(rows) < count:
        boxes = 100 if len(rows) > count // 2 and not any("big" in one for one, _ in rows[-200:]) else 1
        image = f"{'big' if boxes > 1 else ''}{len(rows):012d}"
        rows += [(image, f"/m/{label}") for label in generator.integers(0, 9, boxes * int(generator.integers(1, 13)))]
    return rows


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    lines = [HEADER, *(f"{image},xclick,{label},1,0.1,0.2,0.1,0.2" for image, label in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def pairs(found: Presence) -> list[tuple[str, str, int]]:
    return [tuple(row.values()) for table in found.shards.tables() for row in table.to_pylist()]  # type: ignore[misc]


@pytest.mark.parametrize(("part", "count"), [(1, 9), (300, 40), (3000, 500), (1 << 20, 2000)])
def test_however_a_file_is_cut_every_image_is_counted_once(
    part: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made_rows(count)
    monkeypatch.setattr(module, "PART", part)
    found = presence(write_csv(tmp_path / "boxes.csv", rows), out=tmp_path / "out", workers=1)
    expected = Counter(rows)
    assert len(pairs(found)) == len(expected)
    assert {(image, label): boxes for image, label, boxes in pairs(found)} == expected
    assert found.images == Counter(label for _, label in expected)
    assert found.boxes == Counter(label for _, label in rows)


def test_every_form_of_file_is_counted_by_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made_rows(2000)
    monkeypatch.setattr(module, "PART", 20_000)
    folder = tmp_path / "in"
    folder.mkdir()
    write_csv(folder / "a.csv", rows)
    table = pyarrow.table({"image_id": [one for one, _ in rows], "class": [one for _, one in rows]})
    parquet.write_table(table, folder / "b.parquet", row_group_size=900)
    labels = sorted({one for _, one in rows})
    (folder / "c.json").write_text(json.dumps(coco(rows, labels)))
    made = [presence(folder, out=tmp_path / f"{workers}", workers=workers) for workers in (1, 2)]
    assert made[0].shards.digest == made[1].shards.digest
    assert made[0].boxes == made[1].boxes == Counter(label for _, label in rows * 3)


def coco(rows: list[tuple[str, str]], labels: list[str]) -> dict[str, Any]:
    return {
        "images": [{"id": one, "file_name": f"{one}.jpg"} for one in dict.fromkeys(image for image, _ in rows)],
        "annotations": [
            {"id": number, "image_id": image, "category_id": labels.index(label), "bbox": [0, 0, 1, 1]}
            for number, (image, label) in enumerate(rows)
        ],
        "categories": [{"id": number, "name": label} for number, label in enumerate(labels)],
    }


def test_boxes_of_every_class_at_the_shell_and_of_some_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = made_rows(300)
    path = write_csv(tmp_path / "boxes.csv", rows)
    arguments = ["inspect", str(path), "--presence", str(tmp_path / "out")]
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {name: one["boxes"] for name, one in data["classes"].items()} == Counter(label for _, label in rows)
    assert main(arguments) == 0
    assert data["digest"] in capsys.readouterr().out
    some = presence(path, classes=("/m/1", "/m/3"), out=tmp_path / "some", workers=1).data()["classes"]
    assert some == {name: data["classes"][name] for name in ("/m/1", "/m/3")}


def test_files_that_are_no_annotations_are_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data, words in (
        ("gz.csv", b"\x1f\x8b\x08\x00abc\n", "compressed"),
        ("columns.csv", b"a,b\n1,2\n", "lacks a column"),
        ("ragged.csv", f"{HEADER}\na,b,c,1,0,0,0,0\nx,y\n".encode(), "cannot be read"),
        ("bad.json", b"{", "JSON"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(EngineError, match=words) as error:
            presence(tmp_path / name, out=tmp_path / f"out-{name}", workers=1)
        assert name in str(error.value)
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(EngineError, match="lacks a column"):
        presence(tmp_path / "a.parquet", out=tmp_path / "out-a", workers=1)
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError, match="no annotation files"):
        presence(tmp_path / "none", out=tmp_path / "out-none")
    monkeypatch.setattr(module, "_LARGEST_JSON", 0)
    monkeypatch.setattr(module, "_LARGEST_GROUP", 0)
    parquet.write_table(pyarrow.table({"image": ["1"], "class": ["a"]}), tmp_path / "b.parquet")
    for name in ("bad.json", "b.parquet"):
        with pytest.raises(AnnotationFormatError, match="too large"):
            [list(block.tables()) for block in annotation_blocks(tmp_path / name)]


def test_a_scan_imports_no_pandas(tmp_path: Path) -> None:
    """Each worker would spend half a second on it."""
    (tmp_path / "boxes.csv").write_text("ImageID,LabelName\na,owl\nb,cat\n")
    code = (
        "import sys, pathlib; from curation.extensions.diagnosis.presence import presence\n"
        "presence('boxes.csv', out=pathlib.Path('out'), workers=1)\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@pytest.mark.parametrize("form", ["plain", "folded"])
def test_batches_of_a_row_group_are_counted_as_one(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[str | None, int | None]] = [(f"i{n * 7 % 40}", n * n % 11) for n in range(2000)]
    rows += [(None, 3), ("i1", None), (None, 3)]
    images = pyarrow.array([image for image, _ in rows])
    table = pyarrow.table({"image_id": images.dictionary_encode() if form == "folded" else images,
                           "category_id": pyarrow.array([label for _, label in rows], pyarrow.int64())})  # fmt: skip
    parquet.write_table(table, tmp_path / "a.parquet", use_dictionary=form == "folded")
    monkeypatch.setattr(module, "_BATCH", 300)
    (block,) = annotation_blocks(tmp_path / "a.parquet")
    (counted,) = map(ScanPresence(), block.tables())
    columns = [counted.column(name).to_pylist() for name in ("image", "class", "boxes")]
    expected = Counter((image, None if label is None else str(label)) for image, label in rows)
    assert dict(zip(zip(*columns[:2], strict=True), columns[2], strict=True)) == expected
    assert counted.num_rows == len(expected)
    (some,) = map(ScanPresence(("3", "4")), block.tables())
    assert some.to_pylist() == [row for row in counted.to_pylist() if row["class"] in ("3", "4")]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(("text", "n"), [("x" * 1_000_000, 2000), ("x", 30_000_000)])
def test_a_small_parquet_file_takes_little_memory(text: str, n: int, tmp_path: Path) -> None:
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(n, np.int32), [text])
    table = pyarrow.table({"image": column, "class": column})
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=n)
    assert (tmp_path / "a.parquet").stat().st_size < 200_000
    code = """
import re, sys
from curation.extensions.diagnosis.presence import ScanPresence, annotation_blocks
(block,) = annotation_blocks(sys.argv[1])
(table,) = map(ScanPresence(), block.tables())
print(sum(table.column("boxes").to_pylist()), re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    words = [sys.executable, "-c", code, str(tmp_path / "a.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=200)
    boxes, peak = map(int, done.stdout.split())
    assert boxes == n
    assert peak / 1024 < 400
