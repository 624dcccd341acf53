"""Published lists in the forms in which authors have put them out."""

import json
from pathlib import Path

import pytest

from curation.core.errors import CurationError, ManifestError, MissingFileError
from curation.manifest.importing import read_published_ids

COCO = ["coco:000000000009", "coco:000000397133"]
VOC = ["voc2007:000012", "voc2007:009963"]
VOC12 = ["voc2012:2008_000008"]


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("000012\n009963\n", VOC, VOC),
        ("12\r\n9963", VOC, VOC),
        ("voc2007:000012\n\n", VOC, ["voc2007:000012"]),
        ("VOC2007/JPEGImages/000012.jpg\n", VOC, ["voc2007:000012"]),
        ("000000000009.jpg\n397133\n", COCO, COCO),
        ("2008_000008\n2008000008\n", VOC12, VOC12 * 2),
        ("000012\n000000000009\n", [*VOC, *COCO], ["voc2007:000012", "coco:000000000009"]),
        # Filled up, VOC's 000009 would be COCO's 9, which the part holds too.
        ("000009\n", ["voc2007:000009", *COCO], ["voc2007:000009"]),
        ("9\n", [*VOC, *COCO], ["coco:000000000009"]),
        ("zebra\n", VOC, ["voc2007:zebra"]),
        ("", VOC, []),
    ],
)
def test_text(tmp_path: Path, text: str, ids: list[str], expected: list[str]) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(text.encode())
    assert read_published_ids(path, ids) == expected


@pytest.mark.parametrize(
    ("value", "ids", "expected"),
    [
        ([9, 397133], COCO, COCO),
        (["9", "coco:000000397133"], COCO, COCO),
        ({"images": [{"id": 12, "file_name": "000012.jpg"}, {"id": 9963}], "annotations": []}, VOC, VOC),
        ({"images": [{"id": 2008000008, "width": 3}]}, VOC12, VOC12),
    ],
)
def test_json(tmp_path: Path, value: object, ids: list[str], expected: list[str]) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(value))
    assert read_published_ids(path, ids) == expected


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.txt", b"000012 1\n", ManifestError),
        ("a.txt", b"\xff\xfe0\x000\x00", ManifestError),
        ("a.txt", b"x" * 400, ManifestError),
        ("a.txt", b"a\x1b[2Jb\n", ManifestError),
        ("a.json", b"{}", ManifestError),
        ("a.json", b'{"images": [{"id": 1.5}]}', ManifestError),
        ("a.json", b"[1, null]", ManifestError),
        ("a.json", b"[1, 2", ManifestError),
        ("a.json", b"", ManifestError),
        ("a.json", b"[" * 100_000, ManifestError),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, name: str, data: bytes, error: type[CurationError]) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(error) as caught:
        read_published_ids(path, VOC)
    assert name in str(caught.value)


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="published list"):
        read_published_ids(tmp_path / "no.txt", VOC)
