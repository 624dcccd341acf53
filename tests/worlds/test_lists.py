"""The lists of every protocol, through the command line, on synthetic files in the native layouts."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from curation.benchmarks.owod.splits import SPLITS
from curation.cli import main
from curation.manifest.manifest import read_manifest
from curation.signals.cooccurrence.cut import CutOptions, normalized_cut
from curation.sources.datasets import COCO_CATEGORIES
from tests.signals.cooccurrence.graphs import graph_of
from tests.worlds import graphs, imagenet_lists, photos, species
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
    assert main(["build", protocol, *words, "--out", str(tmp_path / "m")]) == 0
    ours = {path.stem: path.read_text().split() for path in (tmp_path / "m" / "ids").iterdir()}
    assert ours == photos.LISTS[name]()
    assert photos.told(ours) == committed("photos")[name]


@pytest.mark.parametrize("split", SPLITS)
def test_a_file_that_extends_a_split_has_its_lists(split: str, paths: dict[str, Path], tmp_path: Path) -> None:
    """A user's own file on the same sources: the lists that loops select."""
    size = photos.VAL_SIZE if SPLITS[split].validation == "hash" else 0
    (tmp_path / "mine.toml").write_text(
        f'extends = "owod/{split}"\nname = "mylab/{split}"\n'
        f"[parameters]\nvalidation = {size}\nexemplars = {photos.EXEMPLARS}\n"
    )
    words = [f"--source={slot}={paths[file]}" for slot, file in COMMANDS[split][1].items()]
    assert main(["build", str(tmp_path / "mine.toml"), *words, "--out", str(tmp_path / "m")]) == 0
    ours = {path.stem: path.read_text().split() for path in (tmp_path / "m" / "ids").iterdir()}
    assert ours == photos.LISTS[split]()


def test_every_split_and_order_is_in_the_world() -> None:
    assert set(SPLITS) <= set(photos.LISTS)
    expected = committed("photos")
    assert set(expected) == set(COMMANDS)
    orders = [expected["elephant"][f"wr1{suffix}"]["sha256"] for suffix in ("", "-as-listed", "-hash", "-id")]
    assert len(set(orders)) == 4


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


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return species.files(tmp_path_factory.mktemp("species"))


def osod3_words(name: str, roots: dict[str, Path]) -> list[str]:
    problem, _, case = name.rpartition("-")
    settings, root, slots = {
        "openimages-vehicle": (
            {"problem": "openimages", "superclass": "vehicle", "rotation": case},
            roots["openimages"],
            ("openimages-train", "openimages-validation", "openimages-test"),
        ),
        "cub": ({"problem": "cub", "rotation": case}, roots["cub"], ("cub-train", "cub-test")),
        "mtsd": ({"problem": "mtsd", "case": case}, roots["mtsd"], ("mtsd-train", "mtsd-val")),
    }[problem]
    return [*(f"--set={key}={value}" for key, value in settings.items()), *(f"--source={one}={root}" for one in slots)]


@pytest.mark.parametrize("name", species.LISTS)
def test_osod3_lists_are_what_loops_select(name: str, roots: dict[str, Path], tmp_path: Path) -> None:
    words = osod3_words(name, roots)
    assert main(["build", "osod3", *words, "--out", str(tmp_path / "m")]) == 0
    ours = {path.stem: path.read_text().split() for path in (tmp_path / "m" / "ids").iterdir()}
    assert ours == species.lists(name)
    expected = committed("species")
    assert species.lists_told(ours) == expected[name]
    if name.startswith("mtsd"):
        classes = read_manifest(tmp_path / "m").header.classes
        unknown = {one.name for one in classes if one.role == "unknown"}
        known, *others = expected["clusters"]
        chosen = {"unknown1": others[:1], "unknown2": others[1:], "unknown12": others}[name.rpartition("-")[2]]
        assert {one.name for one in classes if one.role == "known"} == set(known)
        assert unknown == {one for cluster in chosen for one in cluster}


@pytest.mark.parametrize("protocol", imagenet_lists.PROTOCOLS)
def test_imagenet_lists_are_those_of_the_published_splitter(protocol: str, tmp_path: Path) -> None:
    words = [f"--source={slot}={path}" for slot, path in imagenet_lists.files(tmp_path).items()]
    words += ["--set", f"protocol={protocol}"]
    assert main(["build", "imagenet", *words, "--out", str(tmp_path / "m")]) == 0
    ours = {path.stem: path.read_text().split() for path in (tmp_path / "m" / "ids").iterdir()}
    # In the paper's order: training and validation images as the splitter shuffles them.
    assert ours == imagenet_lists.lists(protocol)
    assert species.lists_told(ours) == committed("imagenet_lists")[f"{protocol}/sklearn-1.0"]


@pytest.mark.parametrize("graph", graphs.GRAPHS)
@pytest.mark.parametrize("exact", [True, False])
def test_cuts_are_the_best_of_all_partitions(graph: str, exact: bool) -> None:
    expected = committed("graphs")[graph]
    drawn = graph_of(graphs.names(graph), np.array(expected["weights"], np.int64))
    for k in (2, 3):
        cut = normalized_cut(drawn, k, CutOptions(exact=exact))
        assert cut.value == Fraction(expected[f"k{k}"]["value"])
        partitions = [sorted(map(sorted, one)) for one in expected[f"k{k}"]["partitions"]]
        assert sorted(map(sorted, cut.clusters)) in partitions
