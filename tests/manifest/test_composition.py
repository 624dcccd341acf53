"""What parts are made of, counted again from the raw files with plain loops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curation.manifest.manifest import Manifest
from curation.manifest.tables import PartComposition, compose
from curation.sources.source import Source
from tests.task_world import NUMBERS, TASKS, TaskWorld, make_task_manifest, write_task_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


def by_name(compositions: tuple[PartComposition, ...]) -> dict[str, PartComposition]:
    return {one.part.name: one for one in compositions}


def role_of(name: str, task: str) -> str:
    tasks = list(TASKS)
    step = next(number for number, introduced in enumerate(TASKS.values()) if name in introduced)
    now = tasks.index(task)
    return "known" if step == now else "previous" if step < now else "unknown"


def drops(split: str, role: str) -> bool:
    return (role == "unknown" and split != "test") or (role == "previous" and split == "train")


def raw_objects(path: Path, ids: tuple[str, ...]) -> list[tuple[int, str, int]]:
    names = {number: name for name, number in NUMBERS.items()}
    listed = {int(image.partition(":")[2]) for image in ids}
    return [
        (one["image_id"], names[one["category_id"]], one["iscrowd"])
        for one in json.loads(path.read_bytes())["annotations"]
        if one["image_id"] in listed
    ]


def test_every_count_comes_out_of_the_raw_files(world: TaskWorld) -> None:
    for one in compose(world.manifest, world.sources):
        task, split = one.part.name.split("-")
        path = world.val_json if split == "test" else world.train_json
        objects = raw_objects(path, world.manifest.ids(one.part.name))
        labelled, hidden = Counter[str](), Counter[str]()
        hidden_in: dict[str, set[int]] = {}
        shown = set()
        for image, name, crowd in objects:
            role = role_of(name, task)
            into = hidden if drops(split, role) else labelled
            into[role] += 1
            into["crowd"] += crowd
            if into is hidden:
                hidden_in.setdefault(role, set()).add(image)
            else:
                shown.add(image)
        zero = {"difficult": 0, "crowd": 0}
        assert one.labelled == {**zero, **labelled}
        assert one.hidden == {**zero, **hidden}
        assert one.hidden_images == {role: len(images) for role, images in hidden_in.items()}
        assert one.images == len(world.manifest.ids(one.part.name))
        assert one.annotated_images == len(shown)
        for entry in one.by_class:
            own = [row for row in objects if row[1] == entry["name"]]
            assert entry["objects"] == len(own)
            assert entry["images"] == len({image for image, *_ in own})
            assert entry["crowd"] == sum(crowd for *_, crowd in own)
            assert entry["labelled"] == (0 if drops(split, entry["role"]) else len(own))
        assert one.missing == ""


def test_without_sources_the_header_speaks(world: TaskWorld) -> None:
    parts = by_name(compose(world.manifest, {"val": world.sources["val"]}))
    assert parts["t1-train"].hidden is None
    assert parts["t1-train"].by_class == ()
    assert parts["t1-train"].images == len(world.manifest.ids("t1-train"))
    assert parts["t1-train"].missing == "--source train=PATH is not given"
    assert parts["t1-test"].labelled is not None
    bare = Manifest(world.manifest.header, {})
    assert {one.missing for one in compose(bare, world.sources)} == {"its list is not available"}


def test_a_presence_table_tells_images_and_no_objects(world: TaskWorld) -> None:
    source = world.sources["train"]
    objects = source.require_objects("test")
    pairs = np.unique(np.stack([objects.image, objects.category], axis=1), axis=0).astype(np.int32)
    table = replace(source, objects=None, presence=pairs)
    whole, told = (
        by_name(compose(world.manifest, {"train": one, "val": world.sources["val"]})) for one in (source, table)
    )
    for name in ("t1-train", "t2-train", "t3-finetune", "t2-val"):
        assert told[name].hidden_images == whole[name].hidden_images
        assert told[name].annotated_images == whole[name].annotated_images
        assert [one["images"] for one in told[name].by_class] == [one["images"] for one in whole[name].by_class]
        assert told[name].labelled is None
        assert told[name].hidden is None
        assert {one["objects"] for one in told[name].by_class} == {None}
        assert "no boxes" in told[name].missing


def test_a_repeated_image_counts_once(world: TaskWorld) -> None:
    ids = world.manifest.ids("t1-test")
    repeated = make_task_manifest(world.sources, {"t1-test": (ids[1], *ids, ids[0])}, origin="as_published")
    (one,) = compose(repeated, world.sources)
    whole = by_name(compose(world.manifest, world.sources))["t1-test"]
    assert (one.images, one.annotated_images) == (whole.images, whole.annotated_images)
    assert (one.labelled, one.by_class) == (whole.labelled, whole.by_class)
    (stated,) = compose(repeated, {})
    assert stated.images == whole.images


def test_a_manifest_without_tasks_has_a_composition_too(
    manifest: Manifest, source: Source, make_manifest: Callable[..., Manifest]
) -> None:
    # By hand (tests/manifest/conftest.py): image 1 cat, difficult airplane, cow; image 2 an elephant and a crowd.
    closed, rest = compose(manifest, {"toy": source})
    assert closed.labelled == {"known": 2, "negative": 1, "unknown": 2, "difficult": 1, "crowd": 1}
    assert closed.hidden == {"difficult": 0, "crowd": 0}
    assert rest.labelled == {"ignored": 1, "difficult": 0, "crowd": 0}
    assert (rest.images, rest.annotated_images) == (2, 1)
    (empty,) = compose(make_manifest({"none": ()}), {"toy": source})
    assert (empty.images, empty.annotated_images) == (0, 0)
