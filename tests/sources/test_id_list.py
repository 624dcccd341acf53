"""Plain lists of ids as sources: which images, in which order, and nothing of them."""

from pathlib import Path

import pytest

from curation.errors import AnnotationFormatError, DuplicateIdError
from curation.sources.opening import open_source
from curation.sources.source import Source


def read(path: Path, dataset: str = "coco") -> Source:
    return open_source(path, dataset=dataset, part="val", cache=False)


def test_order_and_forms(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbf000000000139\r\ncoco:000000000009\n\nimages/25.jpg\n7")
    source = read(path)
    assert source.image_ids.tolist() == [
        "coco:000000000139",
        "coco:000000000009",
        "coco:000000000025",
        "coco:000000000007",
    ]
    assert source.images.numbers.tolist() == [139, 9, 25, 7]
    assert source.objects is None
    assert len(source.class_pairs()[0]) == 0
    assert (source.files[0].name, source.files[0].rows) == ("list.txt", 4)


def test_voc_ids_keep_their_form(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("2008_000008\n2008_000015\n")
    assert read(path, "voc2012").image_ids.tolist() == ["voc2012:2008_000008", "voc2012:2008_000015"]


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        (b"139\n000000000139\n", DuplicateIdError, "line 2"),
        (b"139\nvoc2007:000012\n", AnnotationFormatError, "line 2"),
        (b"hello\n", AnnotationFormatError, "line 1"),
        (b"139 1\n", AnnotationFormatError, "line 1"),
        (b"\xff\xfe\n", AnnotationFormatError, "UTF-8"),
        (b"1\x002\n", AnnotationFormatError, "line 1"),
        (b"x" * 5000, AnnotationFormatError, "line 1"),
    ],
)
def test_what_is_no_list(tmp_path: Path, content: bytes, error: type[Exception], told: str) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read(path)
    assert told in str(caught.value)


def test_through_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("139\n9\n")
    for _ in range(2):
        source = open_source(path, dataset="coco", part="val", cache=tmp_path / "cache")
        assert source.images.native.tolist() == ["000000000139", "000000000009"]
        assert source.presence is not None
