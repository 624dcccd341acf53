"""``--source`` in all its forms: a slot, a dataset's root, a part, a file, a table; and what is refused."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.benchmarks.registry import find_benchmark
from curation.core.arguments import pairs
from curation.core.errors import MissingFileError, UsageError
from curation.sources.opening import open_slots
from curation.sources.source import Source
from curation.sources.source_specs import Reading, SourceSlot
from tests.small_world import SmallWorld, write_small_world

BENCHMARK = find_benchmark("elephant")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    small = write_small_world(tmp_path_factory.mktemp("world"))
    (small.voc_root / "ImageSets/Main/train.txt").write_text(f"{small.closed[0]}\n")
    annotations = small.coco_json.parent
    (annotations / "instances_val2017.json").write_bytes(small.coco_json.read_bytes())
    return small


def opened(*given: str, slots: Sequence[SourceSlot] = BENCHMARK.slots) -> dict[str, Source]:
    return open_slots(pairs(given, "--source"), slots, Reading())


def test_a_dataset_s_root_gives_every_part_it_offers(world: SmallWorld) -> None:
    assert {name: len(source.images) for name, source in opened(f"voc2007={world.voc_root}").items()} == {
        "voc2007-test": len(world.closed),
        "voc2007-train": 1,
    }
    assert set(opened(f"voc2007@train={world.voc_root}")) == {"voc2007-train"}
    assert set(opened(f"voc2007={world.voc_root.parent.parent}")) == {"voc2007-test", "voc2007-train"}


def test_the_part_of_coco(world: SmallWorld) -> None:
    root = world.coco_json.parent.parent
    assert opened(f"coco={world.coco_json}")["coco"].part == "train2017"
    assert opened(f"coco={root}")["coco"].part == "train2017"
    assert opened(f"coco@val2017={root}")["coco"].part == "val2017"
    assert opened(f"coco@val2014={world.coco_json}")["coco"].part == "val2014"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("instances_val2017_rebuilt.json", "val2017"),
        ("val2017.json", "val2017"),
        ("mine.json", ""),
        ("interval2017.json", ""),
        ("x_train2014.json", "train2014"),
    ],
)
def test_the_part_in_a_file_name(world: SmallWorld, tmp_path: Path, name: str, part: str) -> None:
    (tmp_path / name).write_bytes(world.coco_json.read_bytes())
    assert opened(f"coco={tmp_path / name}")["coco"].part == part


def test_a_root_with_several_unusual_parts_asks(world: SmallWorld, tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    for part in ("val2014", "val2017"):
        (tmp_path / f"annotations/instances_{part}.json").write_bytes(world.coco_json.read_bytes())
    with pytest.raises(UsageError, match="several parts") as caught:
        opened(f"coco={tmp_path}")
    assert f"--source coco@val2014={tmp_path}" in str(caught.value)
    (tmp_path / "annotations/instances_val2014.json").unlink()
    assert opened(f"coco={tmp_path}")["coco"].part == "val2017"


def test_a_file_under_the_name_of_a_dataset_is_its_required_part(world: SmallWorld) -> None:
    assert set(opened(f"voc2007={world.coco_json}")) == {"voc2007-test"}


@pytest.mark.parametrize("required", [False, True])
def test_a_file_whose_name_says_the_part_is_that_part(world: SmallWorld, required: bool) -> None:
    slots = (
        SourceSlot("coco-train2017", "coco", "train2017", False, ""),
        SourceSlot("coco-val2017", "coco", "val2017", required, ""),
    )
    annotations = world.coco_json.parent
    for part in ("train2017", "val2017"):
        found = opened(f"coco={annotations / f'instances_{part}.json'}", slots=slots)
        assert {name: source.part for name, source in found.items()} == {f"coco-{part}": part}


def test_a_table_of_several_parts_is_read_for_the_part_that_is_named(tmp_path: Path) -> None:
    table = tmp_path / "presence_2014_2017.csv"
    table.write_text("image,split2014,split2017,class\n9,train2014,train2017,cat\n25,val2014,val2017,dog\n")
    with pytest.raises(UsageError, match="several parts") as caught:
        opened(f"coco={table}")
    assert "--source NAME@PART=PATH" in str(caught.value)
    assert "split2017: train2017, val2017" in str(caught.value)
    for part, native in (("train2017", "000000000009"), ("val2017", "000000000025"), ("val2014", "000000000025")):
        source = opened(f"coco@{part}={table}")["coco"]
        assert (source.part, source.images.native.tolist()) == (part, [native])
    with pytest.raises(UsageError, match="no rows of part 'test2017'"):
        opened(f"coco@test2017={table}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["voc=x"], "Unknown source"),
        (["voc2007-test@train=x"], "another part"),
        (["voc2007@trainval=x"], "no such part"),
        (["coco@val2017=x", "coco=y"], "twice"),
    ],
)
def test_wrong_use(given: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(*given)


def test_nothing_there(tmp_path: Path) -> None:
    for text in (f"coco={tmp_path / 'no'}", f"coco={tmp_path}", f"voc2007={tmp_path}", f"voc2012-val={tmp_path}"):
        with pytest.raises(MissingFileError):
            opened(text)
