"""The recipes of the published open-world lists: classes and roles without any file, digests and counts with them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.benchmarks.owod.splits import RECIPES
from curation.core.errors import DigestMismatchError
from curation.manifest.importing import complete_lists, list_slices, pin_lists
from curation.manifest.manifest import Manifest, read_manifest
from tests.real_files import provided, real_files

ROOT = Path(__file__).parents[2] / "manifests"
FOLDERS = {"owod/reowod-published": "reowod", "owod/m-owodb-published": "ore", "owod/s-owodb-published": "owdetr"}
RE_OWOD, ORE, OW_DETR = FOLDERS


@provided
def imported(shared: Path) -> Callable[[str], Manifest]:
    """Return a function that completes a committed header, once."""
    made: dict[str, Manifest] = {}

    def complete(name: str) -> Manifest:
        if name not in made:
            committed = read_manifest(ROOT / name / "1.0.0")
            made[name] = complete_lists(committed.header, shared / "data/owod/published" / FOLDERS[name])
        return made[name]

    return complete


@real_files("owod_lists")
@pytest.mark.parametrize("name", FOLDERS)
def check_the_recipe_makes_the_committed_header(name: str, shared: Path, imported: Callable[[str], Manifest]) -> None:
    folder = shared / "data/owod/published" / FOLDERS[name]
    pinned = pin_lists(RECIPES[name](), folder)
    assert pinned.digest == read_manifest(ROOT / name / "1.0.0").digest == imported(name).digest
    assert pinned.lists == imported(name).lists


@real_files("owod_lists")
@pytest.mark.parametrize("name", FOLDERS)
def check_file_order_and_repeats_are_those_of_the_file(
    name: str, shared: Path, imported: Callable[[str], Manifest]
) -> None:
    manifest = imported(name)
    for part, one in list_slices(manifest.header).items():
        lines = (shared / "data/owod/published" / FOLDERS[name] / one.file).read_text().split()
        natives = [text.partition(":")[2] for text in manifest.lists[part]]
        assert natives == lines[one.first - 1 : one.last]
        spaces = {len(text.partition(":")[2]): text.partition(":")[0] for text in manifest.lists[part]}
        assert spaces.items() <= {12: "coco", 6: "voc2007", 11: "voc2012"}.items()


@real_files("owod_lists")
def check_re_owod_in_numbers(imported: Callable[[str], Manifest]) -> None:
    lists = imported(RE_OWOD).lists
    assert [len(lists[f"t{task}-train"]) for task in (1, 2, 3, 4)] == [91_903, 43_684, 37_677, 38_446]
    assert len({one for task in (1, 2, 3, 4) for one in lists[f"t{task}-val"]}) == 4000
    assert lists["t1-test"] == lists["t4-test"]
    assert len(lists["t1-test"]) == 4952
    assert not any(part.repeats for part in imported(RE_OWOD).header.parts)


@real_files("owod_lists")
def check_ore_in_numbers(imported: Callable[[str], Manifest]) -> None:
    manifest = imported(ORE)
    test = manifest.lists["t1-test"]
    times = Counter(Counter(test).values())
    assert (len(test), len(set(test)), manifest.part("t1-test").repeats) == (10_246, 9_119, 1_127)
    assert (times[2], times[3]) == (943, 92)
    assert Counter(text.partition(":")[0] for text in set(test)) == {"voc2007": 4952, "coco": 4167}
    repeats = [manifest.part(f"t{task}-train-with-unk").repeats for task in (1, 2, 3)]
    assert repeats == [2, 457, 501]
    val = {one for task in (1, 2, 3, 4) for one in manifest.lists[f"t{task}-val"]}
    train = {one for task in (1, 2, 3, 4) for one in manifest.lists[f"t{task}-train"]}
    assert len(val) == len(val & train) == 3978


@real_files("owod_lists")
def check_between_the_benchmarks(imported: Callable[[str], Manifest]) -> None:
    ours, ore, detr = (imported(name).lists for name in FOLDERS)
    assert len(set(ours["t2-finetune"]) & set(ore["t2-finetune"])) == 1276
    assert set(ours["t1-test"]) == set(detr["t1-test"])
    assert ours["t1-test"] != detr["t1-test"]
    assert ore["t3-train"] == detr["t3-train"]


@real_files("owod_lists")
def check_the_lists_of_ore_do_not_pass_for_those_of_re_owod(shared: Path) -> None:
    with pytest.raises(DigestMismatchError):
        complete_lists(read_manifest(ROOT / RE_OWOD / "1.0.0").header, shared / "data/owod/published/ore")


@real_files("owod_lists")
def check_a_folder_with_all_three_benchmarks(shared: Path, imported: Callable[[str], Manifest]) -> None:
    header = read_manifest(ROOT / ORE / "1.0.0").header
    assert complete_lists(header, shared / "data/owod/published").lists == imported(ORE).lists
