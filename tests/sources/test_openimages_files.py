"""The small files of Open Images: descriptions, sizes and lists of images."""

from pathlib import Path

import pytest

from curation.core.errors import AnnotationFormatError, DuplicateIdError
from curation.sources.content import FileContent
from curation.sources.openimages import StreamedCsv, is_box_file, read_descriptions, read_listed_ids, read_sizes


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def described(tmp_path: Path, text: str) -> dict[str, str]:
    return read_descriptions(FileContent(write(tmp_path, text)))


def test_shared_and_blank_names_still_tell_classes_apart(tmp_path: Path) -> None:
    text = '/m/01,Bow,Bow\n/m/02,"Bow"\n/m/012n7d,\n/m/03,"Kitchen, table"\n'
    expected = {"/m/01": "Bow (/m/01)", "/m/02": "Bow (/m/02)", "/m/012n7d": "/m/012n7d", "/m/03": "Kitchen, table"}
    assert described(tmp_path, text) == expected
    assert described(tmp_path, "\ufeffLabelName,DisplayName\n" + text.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize("text", ["/m/01\n", "Dog,/m/01\n", "/m/01,a\x1bb\n", '/m/01,"a\n', f"/m/01,{'a' * 301}\n"])
def test_malformed_descriptions_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(AnnotationFormatError):
        described(tmp_path, text)


def test_a_class_is_described_once(tmp_path: Path) -> None:
    with pytest.raises(DuplicateIdError, match="twice"):
        described(tmp_path, "/m/01,Dog\n/m/01,Cat\n")


def test_sizes_are_whole_and_positive(tmp_path: Path) -> None:
    keys, sizes = read_sizes(
        StreamedCsv(write(tmp_path, "height,image_id,width\n683,00166893b16a03ab,1024\n1,ffffffffffffffff,2\n"))
    )
    assert keys.to_pylist() == ["00166893b16a03ab", "ffffffffffffffff"]
    assert sizes.tolist() == [[1024, 683], [2, 1]]
    for size in ("0,5", "5,-1", ",5", "1000001,5"):
        with pytest.raises(AnnotationFormatError, match="size of an image") as caught:
            read_sizes(StreamedCsv(write(tmp_path, f"image_id,width,height\n00166893b16a03ab,{size}\n")))
        assert caught.value.where == "table.csv: row 2"
    with pytest.raises(AnnotationFormatError):
        read_sizes(StreamedCsv(write(tmp_path, "image_id,width,height\n00166893b16a03ab,wide,5\n")))


def test_an_image_is_listed_once_and_by_its_id(tmp_path: Path) -> None:
    with pytest.raises(DuplicateIdError) as caught:
        read_listed_ids(StreamedCsv(write(tmp_path, "ImageID\n" + "".join(f"{n % 3:016x}\n" for n in range(4)))))
    assert caught.value.where == "table.csv: row 5"
    assert "row 2" in str(caught.value.found)
    for strange in ("00166893B16A03AB", "166893b16a03ab", "../../../../etc/a", "é00166893b16a03"):
        with pytest.raises(AnnotationFormatError, match="image id"):
            read_listed_ids(StreamedCsv(write(tmp_path, f"ImageID\n{strange}\n")))


def test_a_box_file_is_known_by_its_header(tmp_path: Path) -> None:
    header = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"
    assert is_box_file(write(tmp_path, f"{header}\n"))
    assert is_box_file(write(tmp_path, f"{header.replace(',YMax', '')}\n"))
    assert not is_box_file(write(tmp_path, "ImageID,LabelName\n"))
    assert not is_box_file(tmp_path / "absent.csv")
