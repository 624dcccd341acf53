"""Importing authors' lists: order and repeats kept, every byte held against the header, hostile folders refused."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import DigestMismatchError, ManifestError, MissingFileError, PathEscapeError, UsageError
from curation.manifest.header import Figure, Header, PartEntry, Rule, SourceEntry
from curation.manifest.importing import LISTS, complete_lists, pin_lists
from curation.manifest.manifest import Manifest, read_manifest, write_manifest

MIXED = "000012\n2008_000008\n000000000012\n000012\n000000000009\n"
TRAIN = "000000000139\n000000000009\n000000000025\n"
IDS = ("voc2007:000012", "voc2012:2008_000008", "coco:000000000012", "voc2007:000012", "coco:000000000009")


@pytest.fixture
def draft(make_manifest: Callable[..., Manifest]) -> Header:
    header = make_manifest().header

    def source(name: str, namespace: str) -> SourceEntry:
        return msgspec.structs.replace(
            header.sources[0], name=name, dataset=namespace, namespace=namespace, files=(), note="a place"
        )

    def part(name: str, *sources: str, subset_of: str = "") -> PartEntry:
        return msgspec.structs.replace(
            header.parts[0],
            name=name,
            sources=sources,
            images=None,
            sha256=None,
            annotated_images=None,
            boxes={},
            subset_of=subset_of,
        )

    return msgspec.structs.replace(
        header,
        origin="as_published",
        parts=(part("test", "voc7", "voc12", "coco"), part("train", "coco"), part("val", "coco", subset_of="train")),
        sources=(source(LISTS, "lists"), source("voc7", "voc2007"), source("voc12", "voc2012"), source("coco", "coco")),
        rule=Rule(
            protocol="as_published",
            algorithm_version=1,
            parameters={"test": "test.txt", "train": "train.txt", "val": "train.txt:2-3"},
        ),
        figures=(
            Figure(name="test.images", paper=5, obtained=None, place="Table 1"),
            Figure(name="test.distinct_images", paper=5, obtained=None, place="Table 1"),
        ),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "lists"
    (place / "ImageSets" / "Main").mkdir(parents=True)
    (place / "test.txt").write_text(MIXED)
    (place / "ImageSets" / "Main" / "train.txt").write_text(TRAIN)
    return place


@pytest.fixture
def header(draft: Header, folder: Path) -> Header:
    return pin_lists(draft, folder).header


def train(folder: Path) -> Path:
    return folder / "ImageSets" / "Main" / "train.txt"


def test_order_repeats_and_line_ranges_are_kept(header: Header, folder: Path) -> None:
    lists = complete_lists(header, folder).lists
    assert lists["test"] == IDS
    assert lists["train"] == ("coco:000000000139", "coco:000000000009", "coco:000000000025")
    assert lists["val"] == lists["train"][1:3]


def test_the_digest_is_that_of_the_header_alone(header: Header, folder: Path, tmp_path: Path) -> None:
    alone, whole = tmp_path / "alone", tmp_path / "whole"
    write_manifest(Manifest(header=header, lists={}), alone)
    write_manifest(complete_lists(read_manifest(alone).header, folder), whole)
    assert read_manifest(alone).digest == read_manifest(whole).digest
    assert (alone / "manifest.json").read_bytes() == (whole / "manifest.json").read_bytes()
    assert not (alone / "ids").exists()
    assert tuple((whole / "ids/test.txt").read_text().split()) == IDS


def test_of_two_files_of_one_name_the_pinned_one_is_read(draft: Header, header: Header, folder: Path) -> None:
    (folder / "old").mkdir()
    (folder / "old" / "test.txt").write_text(TRAIN)
    assert complete_lists(header, folder).lists["test"] == IDS
    with pytest.raises(UsageError, match=r"named test\.txt") as error:
        pin_lists(draft, folder)
    assert "old/test.txt" in str(error.value.found)


def test_missing_files_are_all_named(header: Header, folder: Path, tmp_path: Path) -> None:
    train(folder).unlink()
    with pytest.raises(MissingFileError) as error:
        complete_lists(header, folder)
    assert (error.value.expected, error.value.found) == ("train.txt", "test.txt")
    assert "a place" in str(error.value.hint)
    with pytest.raises(MissingFileError, match="are missing"):
        complete_lists(header, tmp_path / "nowhere")


def test_another_list_of_the_same_name_is_refused(header: Header, folder: Path) -> None:
    train(folder).write_text("000000000025\n")
    with pytest.raises(DigestMismatchError) as error:
        complete_lists(header, folder)
    assert sha256_of_bytes(TRAIN.encode()) in str(error.value.expected)
    assert sha256_of_bytes(b"000000000025\n") in str(error.value.found)
    assert "curation identify" in str(error.value.hint)
    assert error.value.exit_code == 1


def test_changed_line_ends_are_recognised(header: Header, folder: Path) -> None:
    train(folder).write_bytes(TRAIN.replace("\n", "\r\n").encode())
    with pytest.raises(DigestMismatchError) as error:
        complete_lists(header, folder)
    assert "CRLF" in str(error.value.found)


def test_other_lines_of_a_right_file(header: Header, folder: Path) -> None:
    moved = msgspec.structs.replace(
        header, rule=msgspec.structs.replace(header.rule, parameters={**header.rule.parameters, "val": "train.txt:1-2"})
    )
    with pytest.raises(DigestMismatchError, match="part 'val'"):
        complete_lists(moved, folder)


@pytest.mark.parametrize(
    "text", ["", "../../etc/passwd", "/etc/passwd", "train.txt:0-2", "train.txt:2", "a/b.txt", 3, None]
)
def test_a_rule_that_names_no_file(header: Header, folder: Path, text: object) -> None:
    parameters = {**header.rule.parameters, "val": text}
    broken = msgspec.structs.replace(
        header,
        rule=Rule(
            protocol="as_published",
            algorithm_version=1,
            parameters=parameters,  # type: ignore[arg-type]
        ),
    )
    with pytest.raises(ManifestError, match="'val'") as error:
        complete_lists(broken, folder)
    assert "rule.parameters.val" in str(error.value.where)


@pytest.mark.parametrize(
    "data",
    [
        b"JPEGImages/000000000139.jpg\n",
        b"/etc/passwd\n",
        b"../000000000139\n",
        b"139\n",
        b"000139\n",
        b"000000000139 1\n",
        b"000000000139\n\n000000000009\n",
        b"\xff\xfe0\x000\x00",
        b"\x00" * 300,
        b"\x1b[2J\n",
        b"0" * 1_000_000,
        "٠٠٠٠٠٠٠٠٠١٣٩\n".encode(),
    ],
)
def test_a_file_that_is_no_list_of_ids(draft: Header, header: Header, folder: Path, data: bytes) -> None:
    train(folder).write_bytes(data)
    with pytest.raises(ManifestError) as error:
        pin_lists(draft, folder)
    assert len(str(error.value)) < 1500
    with pytest.raises(DigestMismatchError):
        complete_lists(header, folder)


def test_a_gigabyte_is_refused_unread(header: Header, folder: Path) -> None:
    with train(folder).open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(ManifestError, match="too large"):
        complete_lists(header, folder)


def test_a_link_out_of_the_folder(header: Header, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text(TRAIN)
    train(folder).unlink()
    train(folder).symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(PathEscapeError):
        complete_lists(header, folder)
    train(folder).unlink()
    (folder / "kept.txt").write_text(TRAIN)
    train(folder).symlink_to(folder / "kept.txt")
    assert len(complete_lists(header, folder).lists["train"]) == 3
