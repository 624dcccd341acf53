"""The published lists of RE-OWOD, ORE and S-OWODB, regenerated as far as the data at hand reaches."""

from pathlib import Path

import numpy as np
import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.owod.splits import PUBLISHED
from curation.benchmarks.registry import find_benchmark
from curation.core.canonical import sha256_of_lines
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.real_files import provided, real_files

BENCHMARK = find_benchmark("owod")

MANIFESTS = Path(__file__).parents[2] / "manifests"
REMOVED = """
25593 41488 42888 49091 58636 64574 98497 101022 121153 127135 173183 176701 198915 200152 226111 228771
240767 260657 261796 267946 268996 270386 278006 308391 310622 312549 320706 330554 344611 370999 374727 382734
402096 404601 447789 458790 461275 476491 477118 481404 502910 514540 528977 536343 542073 550939 556498 560371
"""


@provided
def sources(shared: Path) -> dict[str, Source]:
    data = shared / "data"
    return {
        "coco-train2017": open_path(data / "coco/presence_2014_2017.csv", dataset="coco", part="train2017"),
        "coco-val2017": open_path(data / "coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017"),
        "val-list": open_path(data / "owod/published/reowod/all_task_val.txt", dataset="coco", part="val"),
        "voc2007-test": open_path(data / "voc2007/test_with_difficult.json", dataset="voc2007", part="test"),
    }


@provided
def reowod(sources: dict[str, Source]) -> Manifest:
    given = {name: source for name, source in sources.items() if not name.startswith("voc")}
    return BENCHMARK.build(given, read_parameters(BENCHMARK, {"val": "published", "order": "annotation"}))


def published(shared: Path, name: str) -> list[str]:
    return [f"coco:{line}" for line in (shared / "data/owod/published" / name).read_text().split()]


@real_files("owod_lists")
def check_the_test_list_and_the_48_removed_images(shared: Path, reowod: Manifest) -> None:
    ours = reowod.lists["t1-test"]
    assert len(ours) == 4952
    assert list(ours) == sorted(published(shared, "reowod/all_task_test.txt"))
    assert list(ours) == sorted(published(shared, "owdetr/test.txt"))
    everything = {f"coco:{line}" for line in (shared / "data/coco/val2017_ids.txt").read_text().split()}
    everything = {f"coco:{int(one[5:]):012d}" for one in everything}
    removed = {f"coco:{int(number):012d}" for number in REMOVED.split()}
    assert everything - set(ours) == removed
    note = next(note for note in reowod.header.notes if note.startswith("48 images"))
    assert all(one[5:] in note for one in removed)


@real_files("owod_lists")
def check_the_published_validation_list(shared: Path, reowod: Manifest) -> None:
    lines = published(shared, "reowod/all_task_val.txt")
    parts = [reowod.lists[f"t{task}-val"] for task in (1, 2, 3, 4)]
    assert [one for part in parts for one in part] == lines
    assert len(set(lines)) == 4000
    assert not set(lines) & set(reowod.lists["t1-test"])


@real_files("owod_lists")
@pytest.mark.parametrize(("task", "size"), [(2, 45_520), (3, 39_402), (4, 40_260)])
def check_selections_miss_what_the_table_misses_and_nothing_is_extra(
    shared: Path, sources: dict[str, Source], reowod: Manifest, task: int, size: int
) -> None:
    """The presence table does not see a class that is wholly painted over by another: 2.6 to 3.5 % of images."""
    figure = next(one for one in reowod.header.figures if one.name == f"t{task}-selection.images")
    assert figure.paper == size
    exact = set(published(shared, f"ore/t{task}_train.txt"))
    assert len(exact) == size
    held_out = {one for number in (1, 2, 3, 4) for one in reowod.lists[f"t{number}-val"]}
    assert set(reowod.lists[f"t{task}-train"]) <= exact - held_out
    assert 0 < size - figure.obtained < 0.04 * size
    assert "painted over" in figure.explanation


@real_files("owod_lists")
def check_training_lists_are_selection_less_validation(shared: Path, reowod: Manifest) -> None:
    """Where the selection is known (ORE's lists of tasks 2 to 4), less all validation images it is RE-OWOD's."""
    held_out = {one for number in (1, 2, 3, 4) for one in reowod.lists[f"t{number}-val"]}
    for task in (2, 3, 4):
        selection = published(shared, f"ore/t{task}_train.txt")
        left = [one for one in selection if one not in held_out]
        assert left == published(shared, f"reowod/t{task}_train.txt")
        assert sha256_of_lines(left) == PUBLISHED["reowod"].digests[f"t{task}-train"]
    first = set(published(shared, "reowod/t1_train.txt"))
    assert set(reowod.lists["t1-train"]) <= first


@real_files("owod_lists")
def check_train_and_validation_are_all_annotated_images(shared: Path, reowod: Manifest) -> None:
    union = {one for task in (1, 2, 3, 4) for one in published(shared, f"reowod/t{task}_train.txt")}
    union |= {one for task in (1, 2, 3, 4) for one in reowod.lists[f"t{task}-val"]}
    order = shared / "data/coco/annotated_ids_in_annotation_order_train_then_val.txt"
    lines = [f"coco:{int(line):012d}" for line in order.read_text().split()]
    assert union == set(lines[:117_266])
    assert set(lines[117_266:]) == set(reowod.lists["t1-test"])


@real_files("owod_lists")
def check_published_lists_follow_the_order_of_first_annotation(shared: Path) -> None:
    order = shared / "data/coco/annotated_ids_in_annotation_order_train_then_val.txt"
    rank = {f"coco:{int(line):012d}": place for place, line in enumerate(order.read_text().split())}
    for name in ("reowod/t1_train", "reowod/t3_train", "ore/t2_train", "owdetr/t4_train", "owdetr/test"):
        places = np.array([rank[one] for one in published(shared, f"{name}.txt")])
        assert (np.diff(places) > 0).all(), name


@real_files("owod_lists")
def check_orders_mixed_test_list(shared: Path, sources: dict[str, Source]) -> None:
    """VOC2007 test and 1,914, 1,642 and 1,738 images of val2017: 10,246 lines, 9,119 images."""
    given = {name: sources[name] for name in ("coco-val2017", "voc2007-test")}
    kept = BENCHMARK.build(given, read_parameters(BENCHMARK, {"split": "m-owodb", "repeats": "keep"}))
    figures = {figure.name: figure.obtained for figure in kept.header.figures}
    assert [figures[f"t{task}-test-selection.images"] for task in (1, 2, 3, 4)] == [4952, 1914, 1642, 1738]
    lines = (shared / "data/owod/published/ore/all_task_test.txt").read_text().split()
    ours = [one.partition(":")[2] for one in kept.lists["t1-test"]]
    assert sorted(ours) == sorted(lines)
    assert kept.part("t1-test").repeats == 1127
    dropped = BENCHMARK.build(given, read_parameters(BENCHMARK, {"split": "m-owodb"}))
    assert len(dropped.lists["t1-test"]) == 9119


@real_files("owod_lists")
def check_objects_of_the_test_tasks(reowod: Manifest, sources: dict[str, Source]) -> None:
    """OW-DETR prints 17786, 7159, 4826 and 6010 test objects, 1,000 short of val2017's 36,781: the last is 7,010."""
    given = {"coco-val2017": sources["coco-val2017"]}
    by_super = BENCHMARK.build(given, read_parameters(BENCHMARK, {"split": "s-owodb"}))
    known = [by_super.part(f"t{task}-test").boxes["known"] for task in (1, 2, 3, 4)]
    assert known == [17_786, 7_159, 4_826, 7_010]
    assert sum(known) == 36_781
    assert [reowod.part(f"t{task}-test").boxes["known"] for task in (2, 3, 4)] == [4966, 4826, 6039]


@pytest.mark.parametrize("name", ["reowod", "s-owodb", "m-owodb"])
def test_declared_manifests_pin_the_published_lists(name: str) -> None:
    declared = read_manifest(MANIFESTS / f"owod/{name}/1.0.0")
    theirs = read_manifest(MANIFESTS / f"owod/{name}-published/1.0.0")
    pinned = [part for part in declared.header.parts if part.role in ("train", "val")]
    assert len(pinned) == (8 if name == "reowod" else 4)
    for part in pinned:
        other = theirs.part(part.name)
        assert (part.sha256, part.images) == (other.sha256, other.images)
