"""COCO JSON, VOC and YOLO of parts with a task, against the raw file read plainly."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from curation.core.canonical import sha256_of_lines
from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import plan_lists
from curation.publishing.formats.coco import plan_coco
from curation.publishing.formats.plan import FormatOptions, Plan
from curation.publishing.formats.voc import plan_voc
from curation.publishing.formats.yolo import plan_yolo
from curation.sources.coco import read_coco
from curation.sources.source import Source
from tests.task_world import NUMBERS, TASKS, UNKNOWN, TaskWorld, make_task_manifest, write_task_world

ORDER = [name for introduced in TASKS.values() for name in introduced]
PARTS = [
    *("t1-train", "t1-val", "t1-test", "t2-train", "t2-finetune", "t2-val", "t2-test"),
    *("t3-train", "t3-finetune", "t3-val", "t3-test"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


def bytes_of(plan: Plan) -> dict[str, bytes]:
    return {file.name: b"".join(file.chunks()) for file in plan.files}


def content(plan: Plan) -> dict[str, Any]:
    (data,) = bytes_of(plan).values()
    return json.loads(data)


def raw(world: TaskWorld, part: str) -> dict[str, Any]:
    return json.loads((world.val_json if part.endswith("test") else world.train_json).read_bytes())


def known_until(task: str) -> list[str]:
    last = list(TASKS).index(task)
    return [name for introduced in list(TASKS.values())[: last + 1] for name in introduced]


BY_INDEX = FormatOptions(category_ids="manifest")
IDS = {
    "auto": {**NUMBERS, "unknown": -1},
    "manifest": {**{name: index for index, name in enumerate(ORDER)}, "unknown": UNKNOWN},
}
"""What `--category-ids` makes of each class: COCO's own ids, or the place in the order of the tasks."""


def expected_label(part: str, name: str) -> str | None:
    """Return the class that spec 3.1 gives an object, None where it goes."""
    task, split = part.split("-")
    if name in TASKS[task] or (split != "train" and name in known_until(task)):
        return name
    return "unknown" if split == "test" else None


@pytest.mark.parametrize("ids", ["auto", "manifest"])
@pytest.mark.parametrize("part", PARTS)
def test_labels_of_every_view_are_those_of_the_paper(part: str, ids: Any, world: TaskWorld) -> None:
    data = content(plan_coco(world.manifest, [part], world.sources, FormatOptions(category_ids=ids)))
    listed = {int(image.partition(":")[2]) for image in world.manifest.ids(part)}
    names = {number: name for name, number in NUMBERS.items()}
    expected = {
        one["id"]: (one["image_id"], IDS[ids][label], one["bbox"], one["area"], one["iscrowd"])
        for one in raw(world, part)["annotations"]
        if one["image_id"] in listed and (label := expected_label(part, names[one["category_id"]])) is not None
    }
    found = {
        one["id"]: (one["image_id"], one["category_id"], one["bbox"], one["area"], one["iscrowd"])
        for one in data["annotations"]
    }
    assert found == expected
    assert len(data["annotations"]) == len(expected) > 0
    assert [f"coco:{one['id']:012d}" for one in data["images"]] == list(world.manifest.ids(part))


@pytest.mark.parametrize("ids", ["auto", "manifest"])
@pytest.mark.parametrize("part", PARTS)
def test_categories_are_the_classes_so_far_and_unknown_in_a_test_part(part: str, ids: Any, world: TaskWorld) -> None:
    data = content(plan_coco(world.manifest, [part], world.sources, FormatOptions(category_ids=ids)))
    names = [*known_until(part.split("-")[0]), *(["unknown"] if part.endswith("test") else [])]
    assert [(one["id"], one["name"]) for one in data["categories"]] == [(IDS[ids][name], name) for name in names]
    assert data["info"]["category_ids"] == {"auto": "dataset"}.get(ids, ids)


def test_files_that_number_a_class_differently_leave_the_indices(world: TaskWorld) -> None:
    train = world.sources["train"]
    swapped = replace(train.categories, numbers=train.categories.numbers[::-1])
    sources = {**world.sources, "train": replace(train, categories=swapped)}
    # One file of the dataset alone has one numbering; two files that disagree have none.
    both = next(part for part in world.manifest.header.parts if part.name == "t1-val")
    header = msgspec.structs.replace(
        world.manifest.header,
        parts=tuple(
            msgspec.structs.replace(one, sources=("train", "val")) if one is both else one
            for one in world.manifest.header.parts
        ),
    )
    plan = plan_coco(Manifest(header, world.manifest.lists), ["t1-val"], sources)
    assert [one["id"] for one in content(plan)["categories"]] == [0, 1, 2]
    assert "the manifest's indices, because the files number class" in plan.notes[-1]


def test_a_class_without_a_category_has_no_id_of_the_datasets_own(world: TaskWorld) -> None:
    val = world.sources["val"]
    names = tuple(name if name != "elephant" else "tapir" for name in val.categories.names)
    shown = val.require_objects("test").category != val.categories.names.index("elephant")
    objects = val.require_objects("test")
    kept = {
        field: getattr(objects, field)[shown]
        for field in (
            *("image", "category", "boxes", "areas", "numbers", "crowd", "difficult", "truncated"),
            *("occluded", "pose"),
        )
    }
    without = replace(
        val, categories=replace(val.categories, names=names), objects=replace(objects, original=None, **kept)
    )
    sources = {**world.sources, "val": without}
    assert content(plan_coco(world.manifest, ["t1-test"], sources))["categories"][0]["id"] == 5
    plan = plan_coco(world.manifest, ["t2-test"], sources)
    assert content(plan)["categories"][0]["id"] == 0
    assert "the files have no category 'elephant'" in plan.notes[-1]


def test_no_name_of_a_later_class_is_in_a_test_file(world: TaskWorld) -> None:
    for task in TASKS:
        later = set(ORDER) - set(known_until(task))
        plans = [plan_coco(world.manifest, [f"{task}-test"], world.sources)]
        plans.append(plan_voc(world.manifest, [f"{task}-test"], world.sources))
        plans.append(plan_yolo(world.manifest, [f"{task}-test"], world.sources))
        for plan in plans:
            text = b"".join(bytes_of(plan).values()).decode()
            assert not [name for name in later if name in text]
            assert "orig_category" not in text
            assert "<original>" not in text


def test_pycocotools_and_our_reader_read_every_file(world: TaskWorld, tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    for part in PARTS:
        path = tmp_path / f"{part}.json"
        path.write_bytes(*bytes_of(plan_coco(world.manifest, [part], world.sources)).values())
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO(str(path))
        back = read_coco(path, dataset="coco", part=part)
        assert back.objects is not None
        assert list(coco.anns) == back.objects.numbers.tolist()
        assert sorted(coco.imgs) == sorted(back.images.numbers.tolist())
        assert [one["name"] for one in coco.loadCats(coco.getCatIds())] == list(back.categories.names)
        assert back.objects.original is None
        assert not back.objects.difficult.any()


def renumbered(source: Source, numbers: Iterable[int]) -> Source:
    objects = source.require_objects("test")
    return replace(source, objects=replace(objects, numbers=np.array(list(numbers), np.int64)))


def test_annotation_ids_that_cannot_stand_are_renumbered_and_told(world: TaskWorld) -> None:
    n = len(world.sources["val"].require_objects("test"))
    for numbers, why in ((range(n), "positive ids"), ([7] * n, "collide")):
        sources = {**world.sources, "val": renumbered(world.sources["val"], numbers)}
        plan = plan_coco(world.manifest, ["t1-test"], sources)
        data = content(plan)
        assert [one["id"] for one in data["annotations"]] == list(range(1, n + 1))
        assert sorted(one["original_id"] for one in data["annotations"]) == sorted(numbers)
        assert plan.changed == {"annotations_renumbered": n}
        assert why in plan.notes[0]


def test_parts_of_different_tasks_never_share_a_file(world: TaskWorld) -> None:
    for plan in (plan_coco, plan_voc, plan_yolo):
        with pytest.raises(ExportError, match="different tasks"):
            plan(world.manifest, ["t1-val", "t2-val"], world.sources)
    data = content(plan_coco(world.manifest, ["t1-val", "t1-test"], world.sources))
    assert {one["part"] for one in data["images"]} == {"t1-val", "t1-test"}


def test_an_index_beyond_unknown_is_refused(world: TaskWorld) -> None:
    *classes, last = world.manifest.header.classes
    header = msgspec.structs.replace(
        world.manifest.header, classes=(*classes, msgspec.structs.replace(last, index=2**31 - 2))
    )
    for plan in (plan_coco, plan_yolo):
        with pytest.raises(ExportError, match="not below that of unknown"):
            plan(Manifest(header, world.manifest.lists), ["t1-test"], world.sources)


def test_yolo_numbers_are_the_indices_of_all_tasks(world: TaskWorld) -> None:
    for task in TASKS:
        known = known_until(task)
        files = bytes_of(plan_yolo(world.manifest, [f"{task}-test"], world.sources))
        names = [json.loads(line.split(": ")[1]) for line in files["data.yaml"].decode().splitlines()[6:]]
        unused = [f"unused_{number}" for number in range(len(known), UNKNOWN)]
        assert names == [*known, *unused, "unknown"]
        data = content(plan_coco(world.manifest, [f"{task}-test"], world.sources, BY_INDEX))
        drawn = [one["category_id"] for one in data["annotations"] if not one["iscrowd"]]
        written = [
            int(line.split()[0])
            for name, text in files.items()
            if name.startswith("labels/")
            for line in text.decode().splitlines()
        ]
        assert written == drawn
        files = bytes_of(plan_yolo(world.manifest, [f"{task}-test"], world.sources, unknown="drop"))
        assert f"nc: {len(known)}\n" in files["data.yaml"].decode()


def test_a_repeated_line_is_written_once_and_told_but_kept_in_a_list(world: TaskWorld) -> None:
    ids = world.manifest.ids("t1-test")
    lists = {"t1-test": (*ids, ids[0], ids[3], ids[0])}
    published = make_task_manifest(world.sources, lists, origin="as_published")
    assert published.header.parts[0].sha256 == sha256_of_lines(lists["t1-test"])
    for plan in (plan_coco, plan_voc, plan_yolo):
        made = plan(published, ["t1-test"], world.sources)
        assert made.counts["images"] == len(ids)
        assert made.left_out["repeated_lines"] == 3
    once, more = (content(plan_coco(manifest, ["t1-test"], world.sources)) for manifest in (world.manifest, published))
    assert once["annotations"] == more["annotations"]
    assert once["images"] == more["images"]
    for native in (False, True):
        ((_, text),) = bytes_of(plan_lists(published, ["t1-test"], native=native)).items()
        written = text.decode().split()
        assert len(written) == len(ids) + 3
        assert written[-3:] == [written[0], written[3], written[0]]
