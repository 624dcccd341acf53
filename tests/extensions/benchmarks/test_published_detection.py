"""Published lists of OpenDet, RWD, nu-OWODB and PROB: what their headers say, and what is known of the real files."""

import csv
import hashlib
import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.benchmarks.owod.splits import TASKS
from curation.benchmarks.registry import find_recipe, recipes
from curation.cli import main
from curation.core.errors import DigestMismatchError
from curation.manifest.header import Header, classes_in
from curation.manifest.importing import LISTS, complete_lists, list_slices, pin_lists
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC
from tests.real_files import provided, real_files

MANIFESTS = Path(__file__).parents[3] / "manifests"
SIZES = {
    "voc-coco/opendet-published": {
        "val": 7462, "test-20-40": 9952, "test-20-60": 14_284, "test-20-80": 19_952, "test-2500": 7452,
        "test-5000": 9952, "test-10000": 14_952, "test-20000": 24_952, "test-15000": 4952,
    },
    "nuowodb/published": {
        "t1-train": 53_850, "t2-train": 34_957, "t3-train": 25_682, "t1-test": 14_884, "t2-test": 14_884,
        "t3-test": 14_884,
    },
    "rwd/aquatic-published": {"t1-train": 318, "t2-train": 318, "t1-test": 319, "t2-test": 319},
    "rwd/aerial-published": {"t1-train": 1999, "t2-train": 1999, "t1-test": 5000, "t2-test": 5000},
    "rwd/medical-published": {"t1-train": 93, "t2-train": 93, "t1-test": 89, "t2-test": 89},
}  # fmt: skip
CLASSES = {
    "nuowodb/published": (10, 7, 6),
    "rwd/aquatic-published": (4, 3),
    "rwd/aerial-published": (10, 10),
    "rwd/medical-published": (6, 6),
}
RWD = ("Aquatic", "Aerial", "Medical")
WILDERNESS = (2500, 5000, 10_000, 20_000)
OTHERS = tuple(name for task in TASKS["m-owodb"][1:] for name in task.introduced)
"""The classes of COCO that VOC lacks, in OpenDet's order."""


def committed(name: str) -> Path:
    return MANIFESTS / name / "1.0.0"


@pytest.mark.parametrize("name", [name for name in recipes() if not name.startswith("openmibood")])
def test_the_committed_header_is_what_the_recipe_states(name: str) -> None:
    """But for digests, counts and figures, which come of the authors' files."""

    def stated(header: Header) -> tuple[object, ...]:
        parts = [(part.name, part.role, part.view, part.selection, part.sources, part.task) for part in header.parts]
        sources = [(source.name, source.exhaustive) for source in header.sources]
        return header.rule, header.classes, header.tasks, header.notes, parts, sources

    manifest, draft = read_manifest(committed(name)), find_recipe(name)()
    assert not manifest.lists
    assert stated(manifest.header) == stated(draft)
    files = {file.name for source in manifest.header.sources if source.name == LISTS for file in source.files}
    assert files == {one.file for one in list_slices(draft).values()}
    assert SIZES.get(name) in (None, {part.name: part.images for part in manifest.header.parts})


@pytest.mark.parametrize("name", CLASSES)
def test_classes_become_known_task_by_task(name: str) -> None:
    header = read_manifest(committed(name)).header
    assert tuple(len(task.introduced) for task in header.tasks) == CLASSES[name]
    for part in header.parts:
        step = int(part.task[1]) - 1
        roles = [entry.role for entry in classes_in(header, part)]
        assert roles.count("known") == CLASSES[name][step]
        assert roles.count("previous") == sum(CLASSES[name][:step])


def test_lists_of_photos_become_ids_without_their_suffix(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"IMG_1_jpg.rf.0a.jpg\nIMG_2_jpg.rf.0b.JPG\n")
    (tmp_path / "test.txt").write_bytes(b"b.c.png")
    manifest = pin_lists(find_recipe("rwd/aquatic-published")(), tmp_path)
    assert manifest.ids("t1-train") == ("rwd_aquatic:IMG_1_jpg.rf.0a", "rwd_aquatic:IMG_2_jpg.rf.0b")
    assert manifest.ids("t2-test") == ("rwd_aquatic:b.c",)
    again = complete_lists(manifest.header, tmp_path)
    assert again.digest == manifest.digest
    (tmp_path / "test.txt").write_bytes(b"b.c.png\n")
    with pytest.raises(DigestMismatchError, match=r"This test.txt is not the test.txt of rwd/aquatic-published"):
        complete_lists(manifest.header, tmp_path)


def test_lists_of_voc_and_coco_are_told_apart_by_their_digits(tmp_path: Path) -> None:
    names = {one.file for one in list_slices(find_recipe("voc-coco/opendet-published")()).values()}
    for name in names:
        (tmp_path / name).write_text("000005\n000000000005\n" if "15000" not in name else "000005\n")
    manifest = pin_lists(find_recipe("voc-coco/opendet-published")(), tmp_path)
    assert manifest.ids("test-20-40") == ("voc2007:000005", "coco:000000000005")
    assert manifest.ids("test-15000") == ("voc2007:000005",)


@provided
def lists(shared: Path, tmp_path: Path) -> dict[str, Manifest]:
    """Return every header completed by the authors' files."""
    opendet = tmp_path / "opendet"
    shutil.copytree(shared / "data/atlas/opendet", opendet)
    same = shared / "data/owod/published/ore/t1_known_test.txt"
    shutil.copyfile(same, opendet / "voc_coco_15000_test.txt")
    folders = {
        "voc-coco/opendet-published": opendet,
        "nuowodb/published": shared / "data/atlas/nuowodb/nuOWODB",
        **{
            f"rwd/{name.lower()}-published": shared / "data/atlas/rwd" / name
            for name in ("Aquatic", "Aerial", "Medical")
        },
    }
    return {name: complete_lists(read_manifest(committed(name)).header, folder) for name, folder in folders.items()}


@provided
def shown(shared: Path) -> dict[str, set[str]]:
    """Return the classes that each image of COCO shows, by the presence table."""
    names = {str(number): name for number, name, _ in COCO_CATEGORIES}
    with (shared / "data/coco/presence_2014_2017.csv").open() as file:
        return {
            f"coco:{int(row['image_id']):012d}": {names[one] for one in re.findall(r"\d+", row["category_ids_91"])}
            for row in csv.DictReader(file)
        }


def of_coco(ids: tuple[str, ...]) -> set[str]:
    return {one for one in ids if one.startswith("coco:")}


@real_files("atlas_lists")
def check_opendet_lists_are_voc2007_and_images_of_coco(lists: dict[str, Manifest], shared: Path) -> None:
    manifest = lists["voc-coco/opendet-published"]
    sets = {name: (shared / f"data/voc2007/ImageSets/{name}.txt").read_text().split() for name in ("val", "test")}
    for part in manifest.header.parts:
        ids = manifest.ids(part.name)
        voc = [one for one in ids if one.startswith("voc2007:")]
        assert len(ids) == len(set(ids))
        assert set(voc) == {f"voc2007:{one}" for one in sets["val" if part.name == "val" else "test"]}, part.name
    assert {part.name: len(of_coco(manifest.ids(part.name))) for part in manifest.header.parts} == {
        "val": 4952, "test-20-40": 5000, "test-20-60": 9332, "test-20-80": 15_000,
        "test-2500": 2500, "test-5000": 5000, "test-10000": 10_000, "test-20000": 20_000, "test-15000": 0,
    }  # fmt: skip


@real_files("atlas_lists")
def check_opendet_15000_is_the_test_list_of_voc2007(lists: dict[str, Manifest], shared: Path) -> None:
    files = {one.name: one for one in lists["voc-coco/opendet-published"].header.sources[0].files}
    same = (shared / "data/owod/published/ore/t1_known_test.txt").read_bytes()
    assert files["voc_coco_15000_test.txt"].sha256 == "sha256:" + hashlib.sha256(same).hexdigest()


@real_files("atlas_lists")
def check_what_the_images_of_opendet_show(lists: dict[str, Manifest], shown: dict[str, set[str]]) -> None:
    manifest, known = lists["voc-coco/opendet-published"], set(COCO_NAMES_OF_VOC.values())
    for upto, with_known, without_range in ((20, 2659, 1), (40, 4461, 90), (60, 9249, 174)):
        images = of_coco(manifest.ids(f"test-20-{upto + 20}"))
        assert images <= shown.keys()
        assert sum(bool(shown[one] & known) for one in images) == with_known
        assert not any("person" in shown[one] or shown[one] & set(OTHERS[upto:]) for one in images)
        # The table misses classes that another paints over: with boxes this has to be 0.
        assert sum(not shown[one] & set(OTHERS[:upto]) for one in images) == without_range
    for size in WILDERNESS:
        assert not any(shown[one] & known for one in of_coco(manifest.ids(f"test-{size}"))), size


@real_files("atlas_lists")
def check_the_wilderness_of_opendet_is_not_nested(lists: dict[str, Manifest]) -> None:
    manifest = lists["voc-coco/opendet-published"]
    images = {size: of_coco(manifest.ids(f"test-{size}")) for size in WILDERNESS}
    shared_by = {(one, two): len(images[one] & images[two]) for one, two in itertools.combinations(WILDERNESS, 2)}
    expected = {
        (2500, 5000): 558, (5000, 10_000): 2305, (5000, 20_000): 4560, (10_000, 20_000): 9069, (2500, 20_000): 2249,
    }  # fmt: skip
    assert {pair: shared_by[pair] for pair in expected} == expected


@real_files("atlas_lists")
def check_how_the_lists_of_nuowodb_overlap(lists: dict[str, Manifest]) -> None:
    manifest = lists["nuowodb/published"]
    train = {step: set(manifest.ids(f"t{step}-train")) for step in (1, 2, 3)}
    test = set(manifest.ids("t1-test"))
    assert [len(train[one] & train[two]) for one, two in ((1, 2), (1, 3), (2, 3))] == [30_007, 22_218, 15_547]
    union = train[1] | train[2] | train[3]
    assert (len(union), len(union & test), len(union | test)) == (60_665, 0, 75_549)
    assert all(re.fullmatch(r"nuimages:\d{16}", one) for one in union | test)


@real_files("atlas_lists")
def check_the_class_files_of_nuowodb_and_rwd(lists: dict[str, Manifest], shared: Path) -> None:
    def names(path: str) -> list[str]:
        lines = (shared / "data/atlas" / path).read_text().splitlines()
        return [line.strip() for line in lines if line.strip()]

    tasks = lists["nuowodb/published"].header.tasks
    for step in (1, 2, 3):
        known = [name for task in tasks[:step] for name in task.introduced]
        assert known == names(f"nuowodb/nuOWODB/t{step}_known.txt")
    for split, folder in (("m-owodb", "MOWODB"), ("s-owodb", "SOWODB")):
        for step in (1, 2, 3, 4):
            known = [name for task in TASKS[split][:step] for name in task.introduced]
            assert set(known) == set(names(f"nuowodb/{folder}/t{step}_known.txt"))
    for name in RWD:
        known, unknown = (set(task.introduced) for task in lists[f"rwd/{name.lower()}-published"].header.tasks)
        assert known == set(names(f"rwd/{name}/known_classnames.txt"))
        assert unknown | {"object"} == set(names(f"rwd/{name}/unknown_classnames_ground_truth.txt"))
        assert known | unknown == set(names(f"rwd/{name}/classnames.txt"))


def photos(texts: Iterator[str]) -> set[str]:
    """Return the photos that files with names of Roboflow were made of."""
    return {text.rpartition(":")[2].partition(".rf.")[0] for text in texts}


@real_files("atlas_lists")
def check_the_lists_of_rwd_against_its_jsons(lists: dict[str, Manifest], shared: Path) -> None:
    folder = shared / "data/atlas/rwd"
    aquatic, medical, aerial = (lists[f"rwd/{name}-published"] for name in ("aquatic", "medical", "aerial"))
    listed = json.loads((folder / "Aquatic/train.json").read_bytes())["images"]
    files = {Path(one["file_name"]).stem for one in listed}
    train, test = aquatic.ids("t1-train"), aquatic.ids("t1-test")
    # Another export of the same photos: no name is shared, every photo is.
    assert not files & {one.partition(":")[2] for one in train}
    assert photos(iter(train)) == photos(iter(files))
    assert (len(photos(iter(train))), len(photos(iter(test)))) == (318, 319)
    assert not photos(iter(train)) & photos(iter(test))
    names: Counter[str] = Counter()
    for part, missing in (("train", 1), ("test", 2)):
        images = json.loads((folder / f"Medical/{part}.json").read_bytes())["images"]
        order = [f"rwd_medical:{Path(one['file_name']).stem}" for one in images]
        ids = medical.ids(f"t1-{part}")
        assert [one for one in order if one in set(ids)] == list(ids)
        assert len(order) - len(ids) == missing
        names.update(one.partition(":")[2].partition(".rf.")[0] for one in order)
    assert names == {"image1_png_jpg": 63, "image2_png_jpg": 68, "image3_png_jpg": 51, "image4_png_jpg": 3}
    listed_of_medical = (*medical.ids("t1-train"), *medical.ids("t1-test"))
    assert photos(iter(listed_of_medical)) == {f"image{n}_png_jpg" for n in (1, 2, 3, 4)}
    numbers = [int(one.partition(":")[2]) for one in aerial.ids("t1-test")]
    assert sum(number <= 11_725 for number in numbers) == 2504
    assert not set(aerial.ids("t1-train")) & set(aerial.ids("t1-test"))
    assert not any((folder / f"Aerial/{name}.txt").read_bytes().endswith(b"\n") for name in ("train", "test"))
    viz = (folder / "Aquatic/viz.txt").read_text().split()
    assert (len(viz), len(set(viz))) == (4, 3)


@real_files("atlas_lists")
def check_a_completed_header_is_audited_and_exported(
    lists: dict[str, Manifest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, manifest in lists.items():
        folder = tmp_path / name
        manifest.save(folder)
        assert main(["verify", str(folder)]) == 0
        assert main(["audit", str(folder)]) == 0, name
        part = manifest.header.parts[-1].name
        assert (
            main(["export", str(folder), "--part", part, "--format", "txt", "--out", str(folder.with_suffix(".txt"))])
            == 0
        )
    capsys.readouterr()


@real_files("atlas_lists")
def check_the_lists_of_prob_are_those_of_ore_and_ow_detr(shared: Path) -> None:
    prob, owod = shared / "data/atlas/prob", shared / "data/owod/published"
    pairs = {
        "owod_all_task_test": "all_task_test", "owod_t1_train": "t1_train", "owod_t2_train": "t2_train",
        "owod_t3_train": "t3_train", "owod_t2_ft": "t2_ft", "owod_t3_ft": "t3_ft", "owod_t4_ft": "t4_ft",
    }  # fmt: skip
    for theirs, ours in pairs.items():
        one, two = ((prob / f"TOWOD/{theirs}.txt").read_bytes(), (owod / f"ore/{ours}.txt").read_bytes())
        assert one.split() == two.split(), theirs
        assert one != two
        assert one.rstrip(b"\n") == two.rstrip(b"\n")
    test = (prob / "TOWOD/owod_all_task_test.txt").read_text().split()
    assert (len(test), len(set(test))) == (10_246, 9119)
    order = (shared / "data/coco/annotated_ids_in_annotation_order_train_then_val.txt").read_text().split()
    train = (prob / "train.txt").read_text().split()
    assert len(train) == 122_218
    assert train == order
    same = [(owod / f"{name}/t3_train.txt").read_bytes() for name in ("ore", "owdetr")]
    assert same[0].split() == same[1].split()
    assert len(same[0].split()) == 39_402
