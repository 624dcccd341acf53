"""The lists of every protocol that selects from COCO and VOC, through the command line, on synthetic files."""

from pathlib import Path

import pytest

from curation.cli import main
from curation.protocols.owod_facts import SPLITS
from curation.sources.coco_categories import COCO_CATEGORIES
from tests.worlds import photos
from tests.worlds.expected import committed
from tests.worlds.photo_classes import COCO, TASKS, VOC

ALL_ORDERS = "cpython_set,cpython_set_as_listed,hash,id"
OPEN_WORLD = ("coco-train2017", "coco-val2017")
COMMANDS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    # The protocol, its sources, its parameters.
    "elephant": (
        "elephant",
        {"voc2007-test": "voc2007-test", "coco": "coco-train2017"},
        {"ratios": ",".join(photos.RATIOS), "orders": ALL_ORDERS},
    ),
    "reowod": ("owod", dict(zip(OPEN_WORLD, OPEN_WORLD, strict=True)), {"val_size": str(photos.VAL_SIZE)}),
    "table2": ("owod", dict(zip(OPEN_WORLD, OPEN_WORLD, strict=True)), {"val_size": str(photos.VAL_SIZE)}),
    "s-owodb": ("owod", dict(zip(OPEN_WORLD, OPEN_WORLD, strict=True)), {}),
    "m-owodb": ("owod", dict(zip(photos.SIZES, photos.SIZES, strict=True)), {"val": "none"}),
    "voc-coco": ("voc-coco", {"voc2007-test": "voc2007-test", "coco": "coco-train2017"}, {}),
    "voc": ("findmeifyoucan", {"coco-val2017": "coco-val2017"}, {"pair": "voc"}),
    "bdd": ("findmeifyoucan", {"coco-val2017": "coco-val2017"}, {"pair": "bdd"}),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return photos.files(tmp_path_factory.mktemp("photos"))


@pytest.mark.parametrize("name", COMMANDS)
def test_lists_are_what_loops_select(name: str, paths: dict[str, Path], tmp_path: Path) -> None:
    protocol, sources, settings = COMMANDS[name]
    if protocol == "owod":
        settings = {**settings, "split": name, "exemplars": str(photos.EXEMPLARS)}
    if protocol == "findmeifyoucan":
        settings = {**settings, "start": "rule", "pools": "coco"}
    words = [f"--source={slot}={paths[file]}" for slot, file in sources.items()]
    words += [f"--set={key}={value}" for key, value in settings.items()]
    assert main(["build", protocol, "--no-cache", *words, "--out", str(tmp_path / "m")]) == 0
    ours = {path.stem: path.read_text().split() for path in (tmp_path / "m" / "ids").iterdir()}
    assert ours == photos.LISTS[name]()
    assert photos.told(ours) == committed("photos")[name]


def test_every_split_and_order_is_in_the_world() -> None:
    assert set(SPLITS) <= set(photos.LISTS)
    expected = committed("photos")
    assert set(expected) == set(COMMANDS)
    orders = [expected["elephant"][f"wr1{suffix}"]["sha256"] for suffix in ("", "-as-listed", "-hash", "-id")]
    assert len(set(orders)) == 4
    assert expected["elephant"]["wilderness"]["images"] > expected["voc-coco"]["wilderness"]["images"]


def test_classes_are_those_that_the_specifications_print() -> None:
    assert {number: name for number, name, _ in COCO_CATEGORIES} == COCO
    assert len(VOC) == 20
    for name, tasks in TASKS.items():
        assert sorted(one for task in tasks for one in task) == sorted(COCO.values())
        assert [set(task.introduced) for task in SPLITS[name].tasks] == [set(task) for task in tasks]
    # Sizes of the tasks, as printed.
    assert [len(task) for task in TASKS["reowod"]] == [20] * 4
    assert [len(task) for task in TASKS["s-owodb"]] == [19, 21, 20, 20]
    assert [len(task) for task in TASKS["table2"]] == [18, 16, 20, 26]
