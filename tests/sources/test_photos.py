"""Photos: found below a folder alone, decoded under one policy, refused with a reason."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import curation
from curation.core.errors import CurationError, CurationWarning, MissingFileError
from curation.manifest.header import ClassEntry
from curation.sources.photos import (
    BrokenPhotoError,
    PhotoFolder,
    decode_photo,
    photos_of_ids,
    read_photo,
    size_of_photo,
)
from tests.toy_manifests import write_toy

image_module = pytest.importorskip("PIL.Image")
image_ops = pytest.importorskip("PIL.ImageOps")
PIXELS = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def encoded(tmp_path: Path, image: object, name: str = "a.png", **options: object) -> bytes:
    image.save(tmp_path / name, **options)  # type: ignore[attr-defined]
    return (tmp_path / name).read_bytes()


def test_photos_are_found_by_path_name_and_stem_and_nothing_outside(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    (folder / "v").mkdir(parents=True)
    for path in (folder / "v" / "1.JPG", folder / "2.png", tmp_path / "secret.png"):
        path.write_bytes(b"x")
    photos = PhotoFolder(folder)
    assert photos.find(["v/1.JPG"]) == photos.find(["1"]) == photos.find(["else/1.JPG"]) == folder / "v" / "1.JPG"
    assert photos.find(["none", "2"]) == folder / "2.png"
    for name in ("../secret.png", str(tmp_path / "secret.png"), "secret", ""):
        assert photos.find([name]) is None
    assert [path.name for path in photos.paths] == ["2.png", "1.JPG"]
    with pytest.raises(MissingFileError):
        PhotoFolder(tmp_path / "none")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_followed_to_photos_of_the_folder_alone(tmp_path: Path) -> None:
    """One link in a circle ended every command that looks at photos; one that led out was followed."""
    folder = tmp_path / "photos"
    (folder / "v").mkdir(parents=True)
    (tmp_path / "else").mkdir()
    for path in (folder / "v" / "1.png", tmp_path / "secret.png", tmp_path / "else" / "2.png"):
        path.write_bytes(b"x")
    (folder / "same.png").symlink_to(folder / "v" / "1.png")
    (folder / "twice.png").symlink_to(folder / "same.png")
    (folder / "again").symlink_to(folder, target_is_directory=True)
    PhotoFolder(folder).paths  # noqa: B018 (no warning of these)
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "else").symlink_to(tmp_path / "else", target_is_directory=True)
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "to.png").symlink_to("fro.png")
    (folder / "fro.png").symlink_to("to.png")
    (folder / "gone.png").symlink_to("nothing.png")
    (folder / "v" / "notes.txt").symlink_to(tmp_path / "secret.png")
    photos = PhotoFolder(folder)
    with pytest.warns(
        CurationWarning, match="^6 links below .* were not followed: .* in a circle: else, fro.png, gone.png, …$"
    ) as told:
        assert [path.name for path in photos.paths] == ["same.png", "twice.png", "1.png"]
    assert photos.find(["1"]) == folder / "v" / "1.png"
    assert photos.find(["out.png", "2", "loop", "gone"]) is None
    assert len(told) == 1
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    with pytest.warns(CurationWarning, match="^6 links"):
        assert len(PhotoFolder(tmp_path / "link").paths) == 3


LISTED = """
import sys
from pathlib import Path
from tests.torture.forks import be_humble
from curation.core.errors import CurationError
from curation.sources.photos import PhotoFolder
be_humble()
try:
    print(PhotoFolder(Path(sys.argv[1])).paths)
except CurationError as error:
    print(error)
"""


def test_stored_pixels_count_whatever_the_orientation_tag_says(tmp_path: Path) -> None:
    exif = image_module.Exif()
    exif[0x0112] = 6
    data = encoded(tmp_path, image_module.fromarray(PIXELS), exif=exif)
    np.testing.assert_array_equal(np.asarray(decode_photo(data)), PIXELS)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif", "mpo", "bmp"])
@pytest.mark.parametrize("orientation", range(10))
def test_a_size_is_that_of_the_photo_as_opencv_and_pillow_show_it(
    orientation: int, suffix: str, tmp_path: Path
) -> None:
    """Trainers read photos by OpenCV, which turns them by the tag; values other than 1 to 8 mean nothing."""
    cv2 = pytest.importorskip("cv2")
    exif = image_module.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{suffix}"
    image_module.fromarray(np.zeros((20, 30, 3), np.uint8)).save(path, exif=exif)
    with image_module.open(path) as photo:
        expected = image_ops.exif_transpose(photo).size
    assert size_of_photo(path) == expected
    if suffix != "tif":  # OpenCV 4.14 cannot read a TIFF that is turned.
        height, width, _ = cv2.imread(str(path)).shape
        assert expected == (width, height)


def test_a_damaged_orientation_tag_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    image_module.fromarray(PIXELS).save(path, exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert size_of_photo(path) == PIXELS.shape[1::-1]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "CMYK"])
def test_every_mode_of_eight_bits_becomes_rgb(tmp_path: Path, mode: str) -> None:
    image = image_module.fromarray(PIXELS).convert(mode)
    name = "a.jpg" if mode == "CMYK" else "a.png"
    assert decode_photo(encoded(tmp_path, image, name)).mode == "RGB"


def test_of_an_animation_the_first_frame_counts(tmp_path: Path) -> None:
    frames = [image_module.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    data = encoded(tmp_path, frames[0], "a.webp", save_all=True, append_images=frames[1:], lossless=True)
    assert decode_photo(data).getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("length", [0, 1, 20, 60])
def test_broken_bytes_have_a_reason_that_is_the_same_each_time(tmp_path: Path, length: int) -> None:
    data = encoded(tmp_path, image_module.fromarray(PIXELS))[:length]
    reasons = set()
    for _ in range(3):
        with pytest.raises(BrokenPhotoError) as raised:
            decode_photo(bytes(data))
        reasons.add(str(raised.value))
    assert len(reasons) == 1
    assert reasons.pop().startswith("it cannot be decoded: ")


def test_sixteen_bits_and_large_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenPhotoError, match="more than 8 bits"):
        decode_photo(encoded(tmp_path, image_module.new("I;16", (3, 3))))
    for side in (13_100, 20_000):
        with pytest.raises(BrokenPhotoError, match="million pixels"):
            decode_quietly(encoded(tmp_path, image_module.new("1", (side, side))))


def decode_quietly(data: bytes) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decode_photo(data)


def test_files_that_cannot_be_read_have_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokenPhotoError, match="does not exist"):
        read_photo(tmp_path / "none.jpg")
    with pytest.raises(BrokenPhotoError, match="cannot be read"):
        read_photo(tmp_path)
    monkeypatch.setattr("curation.sources.photos.LARGEST_FILE", 3)
    (tmp_path / "a.jpg").write_bytes(b"1234")
    with pytest.raises(BrokenPhotoError, match="larger than"):
        read_photo(tmp_path / "a.jpg")


IDS = ["coco:000000000009", "voc2007:000012"]


@pytest.fixture
def found(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "val").mkdir(parents=True)
    (tmp_path / "deep" / "val" / "000000000009.png").touch()
    (tmp_path / "000012.png").touch()
    return tmp_path


def test_photos_are_found_by_file_name_or_id_anywhere_below(found: Path) -> None:
    expected = [found / "deep/val/000000000009.png", found / "000012.png"]
    assert list(photos_of_ids(IDS, found).values()) == expected
    folders = {"coco": found / "deep", "voc2007": found}
    assert list(photos_of_ids(IDS, folders).values()) == expected
    with pytest.raises(MissingFileError, match="1 of 2 photos"):
        photos_of_ids(IDS, {"coco": found / "deep"})


def test_photos_of_one_name_in_two_folders_are_told_apart_or_refused(tmp_path: Path) -> None:
    for path in ("train/0001.jpg", "test/0001.jpg", "0002.jpg", "thumbnails/0002.jpg", "0003.png", "0003.jpg"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    folder = PhotoFolder(tmp_path)
    assert folder.find(["test/0001.jpg"]) == tmp_path / "test/0001.jpg"
    assert folder.find(["0002.jpg"]) == tmp_path / "0002.jpg"
    assert folder.find(["0003"]) == tmp_path / "0003.jpg"
    for path in ("JPEGImages/0004.jpg", "SegmentationClass/0004.png", "a/0005.jpg", "c/0005.jpg.png"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    folder = PhotoFolder(tmp_path)
    assert folder.find(["0004"]) == tmp_path / "JPEGImages/0004.jpg"
    assert folder.find(["SegmentationClass/0004"]) == tmp_path / "SegmentationClass/0004.png"
    assert folder.find(["zz/0005.jpg"]) == tmp_path / "a/0005.jpg"
    for name in ("0001.jpg", "0001", "val/0001.jpg"):
        with pytest.raises(MissingFileError, match="Two photos have the same name") as caught:
            folder.find([name])
        assert "test/0001.jpg and train/0001.jpg" in str(caught.value.found)
        assert PhotoFolder(tmp_path / "train").find([name]) == tmp_path / "train/0001.jpg"


def test_photos_of_other_names_are_found_by_the_file_names_of_sources(tmp_path: Path) -> None:
    """``shapes:201`` lies as ``test_0201.png``; where the sources say so, ``201.png`` is another photo."""
    ids, classes = ("coco:000000000201", "coco:000000000202"), [ClassEntry(name="a", role="known", index=0)]
    manifest = write_toy(tmp_path / "m", {"t2-test": ids}, classes, name="toy/m", taxonomy="OWOD")
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    for name in ("deep/test_0201.png", "000000000202.png", "000000000201.png"):
        (tmp_path / "photos" / name).touch()
    images = [{"id": 201, "file_name": "test_0201.png"}, {"id": 202}]
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    loaded, photos = curation.load(manifest), tmp_path / "photos"
    found = loaded.photos("t2-test", photos, sources={"coco": truth})
    assert [one.name for one in found.values()] == ["test_0201.png", "000000000202.png"]
    (photos / "000000000201.png").unlink()
    with pytest.raises(MissingFileError, match="1 of 2 photos") as refused:
        loaded.photos("t2-test", photos)
    assert "sources={'NAME': PATH} finds them" in (refused.value.hint or "")
    with pytest.raises(CurationError, match="Unknown source"):
        loaded.photos("t2-test", photos, sources={"voc": truth})
    (photos / "deep" / "test_0201.png").unlink()
    with pytest.raises(MissingFileError, match="1 of 2 photos") as refused:
        loaded.photos("t2-test", photos, sources={"coco": truth})
    assert refused.value.hint is None


def test_missing_photos_are_counted_and_named(found: Path) -> None:
    with pytest.raises(MissingFileError, match="10 of 11 photos") as refused:
        photos_of_ids([f"coco:{number:012d}" for number in range(9, 20)], found)
    assert "coco:000000000010" in (refused.value.found or "")
    with pytest.raises(MissingFileError, match="folder"):
        photos_of_ids(IDS, found / "absent")
