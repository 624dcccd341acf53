"""``curation export`` of manifests with tasks: patterns, one file a part, sidecars, the upstream layout, scoring."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import msgspec
import pytest

from curation.cli import main
from curation.manifest.header import ClassEntry, TaskEntry
from curation.manifest.manifest import Manifest, write_manifest
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC
from curation.sources.voc import read_voc
from tests.real_files import real_files
from tests.task_world import TaskWorld, make_task_manifest, write_task_world

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def folder(world: TaskWorld) -> Path:
    out = world.train_json.parent / "manifest"
    write_manifest(world.manifest, out)
    return out


def command(world: TaskWorld, folder: Path, form: str, *more: str) -> list[str]:
    return ["export", str(folder), "--format", form, *world.arguments(), *more]


def test_each_part_of_a_pattern_is_a_file_of_its_own(
    world: TaskWorld, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--part", "t*-test", "--part", "t1-*", "--each", "--json", "--out", str(tmp_path / "o")]
    assert main([*command(world, folder, "coco"), *more]) == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert summary["parts"] == ["t1-test", "t2-test", "t3-test", "t1-train", "t1-val"]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == sorted(
        ["_export.json", *(f"{part}.json" for part in summary["parts"])]
    )
    single = tmp_path / "one.json"
    assert main([*command(world, folder, "coco"), "--part", "t2-test", "--out", str(single)]) == 0
    assert single.read_bytes() == (tmp_path / "o" / "t2-test.json").read_bytes()
    for part, counts in summary["by_part"].items():
        data = json.loads((tmp_path / "o" / f"{part}.json").read_bytes())
        assert counts["counts"]["annotations"] == len(data["annotations"])


def val2017(path: Path) -> Manifest:
    """Make a manifest of val2017 with two tasks: COCO's names of the VOC classes, then the other 60."""
    source = read_coco(path, dataset="coco", part="val2017")
    first = tuple(COCO_NAMES_OF_VOC.values())
    names = (*first, *(name for _, name, _ in COCO_CATEGORIES if name not in first))
    ids = tuple(sorted({f"coco:{source.images.native[place]}" for place in source.class_pairs()[0].tolist()}))
    made = make_task_manifest({"val": source}, {"t1-test": ids, "t2-test": ids})
    classes = tuple(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(names))
    tasks = (TaskEntry(name="t1", introduced=names[:20]), TaskEntry(name="t2", introduced=names[20:]))
    return Manifest(msgspec.structs.replace(made.header, classes=classes, tasks=tasks), made.lists)


@real_files("coco_exports")
def check_val2017_under_the_first_task(shared: Path, tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    path = shared / "data" / "coco" / "instances_val2017_rebuilt.json"
    manifest = val2017(path)
    write_manifest(manifest, tmp_path / "m")
    words = ["export", str(tmp_path / "m"), "--format", "coco", "--part", "all", "--each"]
    words += ["--category-ids", "manifest"]
    assert main([*words, "--source", f"val={path}", "--out", str(tmp_path / "out")]) == 0
    raw = {one["id"]: one for one in json.loads(path.read_bytes())["annotations"]}
    index = {entry.name: entry.index for entry in manifest.header.classes}
    names = {number: name for number, name, _ in COCO_CATEGORIES}
    for task, n_known in (("t1", 20), ("t2", 80)):
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO(str(tmp_path / "out" / f"{task}-test.json"))
        # Spec 2.2 and 3.3: 4,952 images, every box of val2017, K_t by index and unknown at 80 at every task.
        assert len(coco.imgs) == 4952
        assert coco.getCatIds() == [*range(n_known), 80]
        assert coco.anns.keys() == raw.keys()
        assert len(raw) == 36781
        for number, one in coco.anns.items():
            own = raw[number]
            known = index[names[own["category_id"]]]
            assert one["category_id"] == (known if known < n_known else 80)
            assert one["bbox"] == own["bbox"]
            assert one["image_id"] == own["image_id"]


@real_files("coco_exports")
def check_val2017_in_the_upstream_layout(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "coco" / "instances_val2017_rebuilt.json"
    write_manifest(val2017(path), tmp_path / "m")
    words = ["export", str(tmp_path / "m"), "--format", "owod", "--source", f"val={path}"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    published = shared / "data" / "owod" / "published" / "reowod" / "all_task_test.txt"
    lines = (tmp_path / "out" / "ImageSets" / "Main" / "all_task_test.txt").read_text().split()
    assert sorted(lines) == sorted(published.read_text().split())
    back = read_voc(tmp_path / "out", "owod", "all_task_test")
    assert back.objects is not None
    assert len(back.objects) == 36781
    assert len(back.categories) == 80
