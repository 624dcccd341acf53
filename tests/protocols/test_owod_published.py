"""The recipes of the published open-world lists: classes and roles without any file, digests and counts with them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.benchmarks.owod.splits import RECIPES
from curation.benchmarks.registry import find_recipe
from curation.core.errors import DigestMismatchError
from curation.manifest.header import classes_in, unknown_index
from curation.manifest.importing import complete_lists, list_slices, pin_lists
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.datasets import VOC_NAMES
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


@pytest.mark.parametrize("name", RECIPES)
def test_a_draft_is_whole_but_for_the_lists(name: str) -> None:
    draft = find_recipe(name)()
    assert (draft.name, draft.origin, draft.taxonomy) == (name, "as_published", "OWOD")
    assert set(list_slices(draft)) == {part.name for part in draft.parts}
    assert [entry.index for entry in draft.classes] == list(range(80))
    assert unknown_index(draft) == 80
    named = {alias for entry in draft.classes for alias in (entry.name, *entry.aliases)}
    assert set(VOC_NAMES) <= named
    by_name = {source.name: source for source in draft.sources}
    for part in draft.parts:
        for source in part.sources:
            assert len(by_name[source].exhaustive) == (80 if source.startswith("coco") else 20)
        roles = Counter(entry.role for entry in classes_in(draft, part))
        step = int(part.task[1]) - 1
        assert roles["known"] == len(draft.tasks[step].introduced)
        assert roles["previous"] == sum(len(task.introduced) for task in draft.tasks[:step])
        assert part.view.known == "keep"
        assert part.view.previous == ("drop" if part.role == "train" and "unk" not in part.name else "keep")
        if part.role in ("test", "wilderness"):
            assert part.view.unknown == "rename:unknown"
        if part.role == "finetune":
            assert part.view.unknown == "drop"


def test_validation_of_the_paper_and_of_the_code() -> None:
    views = {name: {part.view.unknown for part in RECIPES[name]().parts if part.role == "val"} for name in RECIPES}
    assert views == {RE_OWOD: {"drop"}, ORE: {"rename:unknown"}, OW_DETR: set()}


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
