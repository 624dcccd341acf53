"""What is embedded: photos found for sources and folders."""

import json
from pathlib import Path

import pytest

from curation.errors import DuplicateIdError, EmbeddingError
from curation.similarity.embed import photos_of_folder, photos_of_sources
from curation.sources.opening import open_source
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source


def source(folder: Path) -> Source:
    path = folder / "instances_val2017.json"
    images = [{"id": n, "file_name": f"{n:012d}.jpg", "width": 40, "height": 30} for n in (7, 3, 5)]
    content = {"images": images, "annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    path.write_text(json.dumps(content))
    return open_source(path, dataset="coco", part="val2017", cache=False)


def folder_with(folder: Path, *names: str) -> PhotoFolder:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return PhotoFolder(folder)


def test_photos_come_in_file_order_and_missing_ones_have_no_path(tmp_path: Path) -> None:
    photos = photos_of_sources(
        {"coco": source(tmp_path)}, {"": folder_with(tmp_path / "p", "000000000003.jpg", "v/000000000005.PNG")}
    )  # fmt: skip
    assert [photo.id for photo in photos] == ["coco:000000000007", "coco:000000000003", "coco:000000000005"]
    assert [photo.path and photo.path.name for photo in photos] == [None, "000000000003.jpg", "000000000005.PNG"]


def test_a_source_given_twice_or_without_photos_is_refused(tmp_path: Path) -> None:
    one, folder = source(tmp_path), folder_with(tmp_path / "p")
    with pytest.raises(DuplicateIdError, match="same id"):
        photos_of_sources({"a": one, "b": one}, {"": folder})
    with pytest.raises(EmbeddingError, match="no folder of photos"):
        photos_of_sources({"a": one}, {"b": folder})


def test_a_list_of_ids_has_photos(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("3\n")
    one = open_source(tmp_path / "ids.txt", dataset="coco", part="", cache=False)
    folder = folder_with(tmp_path / "p", "000000000003.jpg")
    assert photos_of_sources({"coco": one}, {"": folder})[0].path is not None


def test_ids_of_a_folder_are_paths_without_suffix(tmp_path: Path) -> None:
    photos = photos_of_folder(folder_with(tmp_path, "b/1.JPG", "a.v2.png", "139.webp", "notes.txt"), "coco")
    assert [photo.id for photo in photos] == ["coco:000000000139", "coco:a.v2", "coco:b/1"]


def test_photos_that_differ_in_suffix_only_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="no photos"):
        photos_of_folder(folder_with(tmp_path), "x")
    with pytest.raises(DuplicateIdError):
        photos_of_folder(folder_with(tmp_path, "1.jpg", "1.png"), "x")
