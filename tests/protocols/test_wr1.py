"""WR1, proved from public lists: the committed list, the set of this interpreter, and what `build` has to reach."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from curation.cli import main
from curation.core.canonical import sha256_of_lines
from curation.manifest.manifest import read_manifest
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC
from tests.real_files import provided, real_files

ROOT = Path(__file__).parents[2]
DECLARED = ROOT / "manifests/elephant/train2017/1.1.0"
SLOTS, CLOSED, CUT = 131_072, 4_952, 24_883
VOC = {number for number, name, _ in COCO_CATEGORIES if name in COCO_NAMES_OF_VOC.values()}
# Validation images of RE-OWOD that the table takes for wilderness and other public lists do not (docs/wr1.md).
HIDDEN = {1590, 12673, 63330, 82775, 154711, 230302, 282899, 398813, 438060, 488156, 509800, 517349, 529256}


def coco_ids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split() if re.fullmatch("[0-9]{12}", line)]


def as_ids(numbers: set[int]) -> list[str]:
    return sorted(f"coco:{number:012d}" for number in numbers)


@provided
def listed_wr1() -> set[int]:
    return {int(text.removeprefix("coco:")) for text in read_manifest(DECLARED).ids("wr1")}


@pytest.fixture(scope="module")
def wr1() -> set[int]:
    return listed_wr1()


@pytest.fixture(scope="module")
def wilderness() -> dict[int, str]:
    return page_table()


@provided
def page_table() -> dict[int, str]:
    """The 23,008 images of the page's table, with what speaks for each."""
    rows = csv.DictReader((ROOT / "docs/wr1-wilderness.csv").read_text().splitlines())
    return {int(row["image_id"]): row["evidence"] for row in rows}


def test_the_list_has_the_size_of_the_closed_set(wr1: set[int]) -> None:
    manifest = read_manifest(DECLARED)
    part = manifest.part("wr1")
    assert len(wr1) == part.images == len(manifest.ids("closed")) == CLOSED
    assert part.annotated_images == 4716
    assert max(number % SLOTS for number in wr1) == CUT


def test_the_full_wilderness_has_the_size_that_the_paper_states(wilderness: dict[int, str]) -> None:
    counts = Counter(wilderness.values())
    assert sum(counts.values()) == 23_008
    assert counts["no_annotations"] == 118_287 - 117_266
    # All but 18 are certain; the paper's figure needs these too.
    assert sum(counts.values()) - counts["open"] == 22_990
    assert list(wilderness) == sorted(wilderness)


def test_the_list_is_what_the_set_of_this_interpreter_begins_with(wr1: set[int], wilderness: dict[int, str]) -> None:
    # The notebook's difference adds the surviving images to a new set one by one: a table of 131,072 slots.
    for filling in (sorted(wilderness), sorted(wilderness, reverse=True), sorted(wilderness, key=str)):
        made: set[int] = set()
        for number in filling:
            made.add(number)
        assert set(list(made)[:CLOSED]) == wr1


def test_the_list_is_the_smallest_remainders(wr1: set[int], wilderness: dict[int, str]) -> None:
    assert {number for number in wilderness if number % SLOTS <= CUT} == wr1
    assert min(number % SLOTS for number in wilderness.keys() - wr1) == 24_894
    # None of the open images lies below the cut: WR1 does not hang on them.
    assert all(number % SLOTS > CUT for number, evidence in wilderness.items() if evidence == "open")


def test_the_figure_counts_the_images_of_the_table(wr1: set[int], wilderness: dict[int, str]) -> None:
    rows = list(csv.DictReader((ROOT / "docs/images/wr1-slots.csv").read_text().splitlines()))
    assert Counter(number % SLOTS // 512 * 512 for number in wilderness.keys() - wr1) == Counter(
        {int(row["first_slot"]): int(row["other_wilderness"]) for row in rows if row["other_wilderness"] != "0"}
    )
    columns = ("in_both_lists", "in_ore_alone", "in_neither_but_wr1", "other_wilderness")
    assert [sum(int(row[name]) for row in rows) for name in columns] == [4716, 235, 1, 18_056]


@provided
def table(shared: Path) -> dict[int, set[int]]:
    """Classes that the public table sees on each annotated image of train2017."""
    rows = csv.DictReader((shared / "data/coco/presence_2014_2017.csv").read_text().splitlines())
    return {
        int(row["image_id"]): set(map(int, row["category_ids_91"].split()))
        for row in rows
        if row["split2017"] == "train2017"
    }


@provided
def all_images(shared: Path) -> list[int]:
    return coco_ids(shared / "data/coco/train2017_ids_in_file_order.txt")


@real_files("owod_lists")
def check_the_list_is_the_published_copies_and_the_images_that_they_lost(
    shared: Path, listed_wr1: set[int], table: dict[int, set[int]], all_images: list[int]
) -> None:
    prob = set(coco_ids(shared / "data/owod/published/prob/VOC2007__test_wr1.txt"))
    bare = {number for number in all_images if number not in table and number % SLOTS <= CUT}
    assert (len(prob), len(bare), prob & bare) == (4716, 236, set())
    assert prob | bare == listed_wr1
    # ORE's copy has 235 of the 236: that they were in is no inference.
    assert listed_wr1 - set(coco_ids(shared / "data/owod/published/ore/wr1.txt")) == {7625}


@real_files("owod_lists")
def check_public_lists_leave_23008_images(
    shared: Path, page_table: dict[int, str], table: dict[int, set[int]], all_images: list[int]
) -> None:
    published = shared / "data/owod/published"
    reowod = set(coco_ids(published / "reowod/t1_train.txt"))
    left = {number for number in all_images if not table.get(number, set()) & VOC} - reowod
    validation = {number for t in (1, 2, 3, 4) for number in coco_ids(published / f"reowod/t{t}_val_segment.txt")}
    assert left & validation >= HIDDEN
    assert left - HIDDEN == set(page_table)
    assert set(json.loads((published / "opendet/wilderness_ids.json").read_text())) <= set(page_table)


@provided
def coco_file(
    tmp_path_factory: pytest.TempPathFactory,
    table: dict[int, set[int]],
    all_images: list[int],
    page_table: dict[int, str],
) -> Path:
    """What instances_train2017.json says as far as lists tell it: all images in order, one box for each class shown.

    Where only lists know of a VOC class, a person stands for it. A first image of WR1 takes the boxes that are missing
    to the 15,235 of the authors' log.
    """
    return write_coco(tmp_path_factory.mktemp("train2017"), table, all_images, set(page_table))


def write_coco(folder: Path, table: dict[int, set[int]], all_images: list[int], wilderness: set[int]) -> Path:
    shown = [(number, category) for number, classes in table.items() for category in sorted(classes)]
    shown += [(number, 1) for number, classes in table.items() if not classes & VOC and number not in wilderness]
    first = sorted((number for number in wilderness if number in table), key=lambda number: (number % SLOTS, number))
    of_wr1 = {number for number in first if number % SLOTS <= CUT}
    missing = 15_235 - sum(number in of_wr1 for number, _ in shown)
    shown += [(first[0], min(table[first[0]]))] * missing
    data = {
        "images": [
            {"id": number, "file_name": f"{number:012d}.jpg", "width": 640, "height": 480} for number in all_images
        ],
        "annotations": [
            {"id": k, "image_id": image, "category_id": category, "bbox": [0, 0, 8, 8], "area": 64, "iscrowd": 0}
            for k, (image, category) in enumerate(shown, start=1)
        ],
        "categories": [{"id": number, "name": name} for number, name, _ in COCO_CATEGORIES],
    }
    path = folder / "instances_train2017.json"
    path.write_text(json.dumps(data))
    return path


def build(shared: Path, coco: Path, out: Path) -> int:
    voc = shared / "data/voc2007/test_with_difficult.json"
    given = [f"--source=voc2007-test={voc}", f"--source=coco={coco}"]
    return main(["build", str(DECLARED), *given, "--out", str(out)])


@real_files("owod_lists")
def check_build_reaches_the_committed_list(
    shared: Path, coco_file: Path, tmp_path: Path, page_table: dict[int, str]
) -> None:
    assert build(shared, coco_file, tmp_path / "m") == 0
    built, declared = read_manifest(tmp_path / "m"), read_manifest(DECLARED)
    assert built.ids("wr1") == declared.ids("wr1")
    assert built.part("wr1").sha256 == declared.part("wr1").sha256
    assert built.part("wr1").annotated_images == declared.part("wr1").annotated_images
    assert list(built.ids("wilderness")) == as_ids(set(page_table))
    assert built.header.completes == declared.digest
    assert not any(figure.explanation for figure in built.header.figures)


@real_files("owod_lists")
def check_build_refuses_another_wr1(
    shared: Path,
    table: dict[int, set[int]],
    all_images: list[int],
    page_table: dict[int, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The table alone lets 1590 and 282899 in; two others leave, so that the sizes stay.
    last = [number for number, evidence in page_table.items() if evidence == "open"][:2]
    wrong = set(page_table) - set(last) | {1590, 282899}
    coco = write_coco(tmp_path, table, all_images, wrong)
    assert build(shared, coco, tmp_path / "m") == 1
    printed = capsys.readouterr().out
    assert "wr1.list" in printed
    assert not (tmp_path / "m").exists()


def test_the_digest_on_the_page_is_that_of_its_table(wilderness: dict[int, str]) -> None:
    page = (ROOT / "docs/wr1.md").read_text()
    assert sha256_of_lines(as_ids(set(wilderness))) in page
