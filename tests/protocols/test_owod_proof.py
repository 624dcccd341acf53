"""The open-world protocol: what it refuses, where exemplars come from, and the published training lists proven."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from curation.benchmarks.building import complete, read_parameters
from curation.benchmarks.owod.splits import COCO_CLASSES, SPLITS, TASKS, VOC_CLASSES
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import ProtocolError
from curation.manifest.header import TaskEntry
from curation.manifest.manifest import Manifest
from curation.sources.opening import open_path
from curation.sources.source import Categories, Source
from tests.protocols.drawn_source import Draw, drawn_source
from tests.real_files import real_files

BENCHMARK = find_benchmark("owod")

RULE = find_benchmark("tasks")

FIRST = [task.introduced[0] for task in TASKS["m-owodb"]]
"""One class of each task: airplane, truck, frisbee, bed."""


def built(sources: dict[str, Source], **settings: str) -> Manifest:
    return BENCHMARK.build(sources, read_parameters(BENCHMARK, {"val_size": "2", "exemplars": "3", **settings}))


def extended(folder: Path, split: str, sources: dict[str, Source], parameters: str = "") -> Manifest:
    """Return what a user's file builds that extends a published split."""
    (folder / "mine.toml").write_text(f'extends = "owod/{split}"\nname = "mylab/open"\n[parameters]\n{parameters}')
    return RULE.make(sources, read_parameters(RULE, {"file": str(folder / "mine.toml")}))


@pytest.fixture
def coco(draw: Draw) -> dict[str, Source]:
    """Six training images a task, and four test images; the first image of each task is that of two tasks."""
    shown = {100 * task + image: [name] for task, name in enumerate(FIRST, start=1) for image in range(6)}
    shown[100] = [FIRST[0], FIRST[1]]
    return {
        "coco-train2017": draw("coco", "train2017", shown, names=COCO_CLASSES),
        "coco-val2017": draw("coco", "val2017", {900 + n: [name] for n, name in enumerate(FIRST)}, names=COCO_CLASSES),
    }


def val_list(source: Source, numbers: list[int]) -> Source:
    natives = np.array([f"{number:012d}" for number in numbers])
    rows = np.array([source.images.native.tolist().index(native) for native in natives])
    images = replace(
        source.images,
        native=natives,
        numbers=source.images.numbers[rows],
        file_names=source.images.file_names[rows],
        widths=source.images.widths[rows],
        heights=source.images.heights[rows],
    )
    return replace(source, images=images, objects=None, presence=None, categories=Categories((), (), ()), part="val")


def test_an_image_of_two_tasks_that_validates_one_trains_neither(coco: dict[str, Source]) -> None:
    listed = val_list(coco["coco-train2017"], [100, 200, 300, 400])
    manifest = built({**coco, "val-list": listed}, val="published")
    assert manifest.ids("t1-val") == ("coco:000000000100",)
    for task in ("t1", "t2"):
        assert "coco:000000000100" not in manifest.ids(f"{task}-train")
        assert len(manifest.ids(f"{task}-train")) == 5


def test_lines_of_another_task_are_refused(coco: dict[str, Source]) -> None:
    listed = val_list(coco["coco-train2017"], [200, 101, 300, 400])
    with pytest.raises(ProtocolError, match="show no class of their task") as caught:
        built({**coco, "val-list": listed}, val="published")
    assert "task t1" in str(caught.value)
    assert "000000000200" in str(caught.value)


@pytest.fixture
def mixed(coco: dict[str, Source], draw: Draw) -> dict[str, Source]:
    """As in M-OWODB: VOC shows its 20 classes, COCO's training images of tasks 2 to 4 show none of them."""
    voc = {
        f"voc{year}-trainval": draw(
            f"voc{year}", "trainval", {n: [VOC_CLASSES[n % 20]] for n in range(1, 61)}, names=VOC_CLASSES
        )
        for year in (2007, 2012)
    }
    shown = {100 * task + image: [FIRST[task]] for task in (1, 2, 3) for image in range(6)}
    return {
        **coco,
        **voc,
        "coco-train2017": draw("coco", "train2017", shown, names=COCO_CLASSES),
        "voc2007-test": draw("voc2007", "test", {1001: ["cat"], 1002: ["dog"]}, names=VOC_CLASSES),
    }


def test_exemplars_of_m_owodb_s_first_classes_are_images_of_voc(mixed: dict[str, Source]) -> None:
    manifest = built(mixed, split="m-owodb")
    for number, task in enumerate(TASKS["m-owodb"][1:], start=2):
        part = manifest.part(f"{task.name}-finetune")
        trained = {image for k in range(1, number + 1) for image in manifest.ids(f"t{k}-train")}
        ids = manifest.ids(part.name)
        assert set(ids) <= trained
        assert sum(image.startswith("voc") for image in ids) == 3 * 20
        assert part.boxes["previous"] == 3 * 20 + 3 * (number - 2)
        assert part.boxes["known"] == 3
        # Every class that any image shows is there three times; the others are named.
        assert "airplane" not in part.selection.partition("Fewer:")[2]


@pytest.mark.parametrize("split", ["reowod", "m-owodb", "published list"])
@pytest.mark.parametrize("order", ["sorted", "annotation"])
def test_a_file_that_extends_a_split_has_its_parts(
    mixed: dict[str, Source], coco: dict[str, Source], tmp_path: Path, split: str, order: str
) -> None:
    settings = {"order": order, "test_order": order, "crowd": "ignore", "repeats": "keep"}
    parameters = "".join(f'{key} = "{value}"\n' for key, value in settings.items()) + "exemplars = 3\n"
    sources = mixed
    if split != "m-owodb":
        sources = coco
        parameters += "validation = 2\n"
    if split == "published list":
        sources = {**coco, "val-list": val_list(coco["coco-train2017"], [100, 200, 300, 400])}
        settings["val"], split = "published", "reowod"
    ours, theirs = built(sources, split=split, **settings), extended(tmp_path, split, sources, parameters)
    assert theirs.lists == ours.lists
    assert (theirs.header.classes, theirs.header.tasks) == (ours.header.classes, ours.header.tasks)
    # The sentences differ: the package's name the script of the authors.
    words = [[msgspec.structs.replace(part, selection="") for part in each.header.parts] for each in (ours, theirs)]
    assert words[0] == words[1]
    assert (theirs.header.paper, theirs.header.name, theirs.header.rule.protocol) == (None, "mylab/open", "tasks")


def test_one_training_source_of_several_is_refused_for_a_user_s_file_too(
    mixed: dict[str, Source], tmp_path: Path
) -> None:
    del mixed["voc2012-trainval"]
    for build in (lambda: built(mixed, split="m-owodb"), lambda: extended(tmp_path, "m-owodb", mixed)):
        with pytest.raises(ProtocolError, match="Some training sources") as caught:
            build()
        assert "--source voc2012-trainval=PATH" in str(caught.value)


def _exact(shared: Path, draw: Draw, members: list[set[str]], tasks: tuple[TaskEntry, ...]) -> Source:
    """Return train2017 as far as it decides the lists: its images in annotation order, one class of each task shown."""
    order = shared / "data/coco/annotated_ids_in_annotation_order_train_then_val.txt"
    annotated = order.read_text().split()[:117_266]
    classes = [(task.introduced[0], inside) for task, inside in zip(tasks, members, strict=True)]
    shown = {int(native): [name for name, inside in classes if native in inside] for native in annotated}
    assert all(shown.values())
    # The 1,021 images without annotation: which they are has no say.
    shown |= {900_000_000_000 + number: [] for number in range(1_021)}
    return draw("coco", "train2017", shown, names=COCO_CLASSES)


@real_files("owod_lists")
@pytest.mark.parametrize("split", ["reowod", "s-owodb"])
def check_a_declared_manifest_is_completed_and_proven(shared: Path, split: str, tmp_path: Path) -> None:
    """From ORE's selections of tasks 2 to 4, the order of annotations and the published validation list come RE-OWOD's
    training lists, byte for byte; of task 1 no selection is published, its own list stands in."""
    published = shared / "data/owod/published"

    def lines(name: str) -> list[str]:
        return (published / name).read_text().split()

    val = lines("reowod/all_task_val.txt")
    if split == "reowod":
        members = [set(), *(set(lines(f"ore/t{task}_train.txt")) for task in (2, 3, 4))]
        members[0] = {*lines("reowod/t1_train.txt"), *val[:1000]}
        members[0] |= {image for image in val if not any(image in inside for inside in members)}
    else:
        members = [set(lines(f"owdetr/t{task}_train.txt")) for task in (1, 2, 3, 4)]
    test = open_path(shared / "data/coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017")
    sources = {"coco-val2017": test}
    declared = BENCHMARK.declare(sources, read_parameters(BENCHMARK, {"split": split}))  # type: ignore[misc]
    sources["coco-train2017"] = _exact(shared, drawn_source, members, SPLITS[split].tasks)
    if split == "reowod":
        sources["val-list"] = open_path(published / "reowod/all_task_val.txt", dataset="coco", part="val")
    manifest, missed = complete(declared, sources)
    assert missed == ()
    folder = {"reowod": "reowod", "s-owodb": "owdetr"}[split]
    for task in (1, 2, 3, 4):
        ours = [image.removeprefix("coco:") for image in manifest.ids(f"t{task}-train")]
        assert ours == lines(f"{folder}/t{task}_train.txt")
    if split == "reowod":
        assert [image[5:] for task in (1, 2, 3, 4) for image in manifest.ids(f"t{task}-val")] == val
    theirs = extended(tmp_path, split, sources, 'order = "annotation"')
    assert theirs.lists == manifest.lists
