import gzip
import json
from pathlib import Path

import pytest

from curation.core.canonical import sha256_of_file
from curation.core.errors import MissingFileError, SourceError, UsageError
from curation.sources.opening import open_path, parts_at
from tests.sources.voc_files import write_voc


def write_coco(path: Path, *, images: int = 3, box: tuple[float, ...] = (1, 2, 3, 4)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "images": [{"id": number} for number in range(images)],
        "annotations": [{"id": 1, "image_id": 0, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}],
        "categories": [{"id": 1, "name": "person"}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_compressed_files_and_byte_order_marks_change_nothing_but_the_digest(tmp_path: Path, packed: bool) -> None:
    write_coco(tmp_path / "a.json")
    (tmp_path / "a.csv").write_text("image,class\na,dog\nb,cat\n")
    (tmp_path / "a.txt").write_text("a1\nb2\n")
    for suffix in (".json", ".csv", ".txt"):
        path = tmp_path / f"a{suffix}"
        plain = open_path(path, dataset="mine", part="")
        data = b"\xef\xbb\xbf" + path.read_bytes()
        # The suffix may say that a file is compressed; what it holds is told by its bytes.
        for name in (f"b{suffix}", f"b{suffix}.gz"):
            other = tmp_path / name
            other.write_bytes(gzip.compress(data) if packed else data)
            found = open_path(other, dataset="mine", part="")
            assert found.image_ids.tolist() == plain.image_ids.tolist()
            assert found.categories == plain.categories
            assert found.files[0].sha256 == sha256_of_file(other)
            assert found.files[0].size == other.stat().st_size
            assert found.has_category_ids == (suffix == ".json")


def test_a_truncated_compressed_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(write_coco(tmp_path / "a.json").read_bytes())[:-9])
    with pytest.raises(SourceError, match="cut short"):
        open_path(path, dataset="mine", part="")


def test_parts_are_listed(tmp_path: Path) -> None:
    write_voc(tmp_path / "VOC2007", ["000001"], part="val")
    write_voc(tmp_path / "VOC2007", ["000002"], part="test")
    write_coco(tmp_path / "coco/annotations/instances_val2017.json")
    assert parts_at(tmp_path, "voc2007") == ("val", "test")
    assert parts_at(tmp_path / "coco", "coco") == ("val2017",)
    assert parts_at(tmp_path / "coco/annotations/instances_val2017.json", "coco") == ()


def test_what_is_not_there_is_told_with_what_was_tried(tmp_path: Path) -> None:
    write_coco(tmp_path / "coco/annotations/instances_val2017.json")
    with pytest.raises(MissingFileError, match="does not exist"):
        open_path(tmp_path / "absent", dataset="coco", part="train2017")
    with pytest.raises(MissingFileError) as caught:
        open_path(tmp_path / "coco", dataset="coco", part="train2017")
    assert "instances_train2017.json" in str(caught.value.expected)
    assert "val2017" in str(caught.value.found)
    with pytest.raises(MissingFileError, match="VOC folder not found"):
        open_path(tmp_path / "coco", dataset="voc2007", part="test")
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(UsageError, match="Unknown file type"):
        open_path(tmp_path / "notes.md", dataset="coco", part="")
