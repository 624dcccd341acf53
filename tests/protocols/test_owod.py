"""The open-world protocol on a small world: every principle of the paper, from files to lists."""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.building import complete, read_parameters
from curation.benchmarks.owod.splits import SPLITS, VOC_CLASSES
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists
from curation.manifest.views import view_objects
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.opening import open_path
from curation.sources.source import Source

BENCHMARK = find_benchmark("owod")

NUMBERS = {name: number for number, name, _ in COCO_CATEGORIES}
TASK_OF = {name: task.name for task in SPLITS["reowod"].tasks for name in task.introduced}


def coco_file(path: Path, first: int, n: int, seed: int, *, shuffled: int | None = None) -> dict[str, Any]:
    """Write COCO instances over all 80 classes: every ninth image is empty, some regions are crowds."""
    rng = random.Random(seed)
    images = [
        {"id": first + 7 * image, "file_name": f"{first + 7 * image:012d}.jpg", "width": 64, "height": 48}
        for image in range(n)
    ]
    annotations: list[dict[str, Any]] = []
    names = sorted(NUMBERS)
    for image in images:
        if (image["id"] - first) // 7 % 9 == 0:
            continue
        for _ in range(rng.randint(1, 4)):
            name = rng.choice(names) if rng.random() < 0.6 else "person"
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": NUMBERS[name],
                    "bbox": [1, 2, 1 + rng.randrange(30), 1 + rng.randrange(30)],
                    "area": 4,
                    "iscrowd": int(rng.random() < 0.1),
                }
            )
    rng.shuffle(annotations)
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name, _ in COCO_CATEGORIES],
    }
    if shuffled is not None:
        for part in content.values():
            random.Random(shuffled).shuffle(part)
    path.write_text(json.dumps(content))
    return content


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("coco")
    coco_file(folder / "train.json", 1_000, 400, 1)
    coco_file(folder / "val.json", 500_000, 60, 2)
    return folder / "train.json", folder / "val.json"


@pytest.fixture(scope="module")
def sources(files: tuple[Path, Path]) -> dict[str, Source]:
    return {
        "coco-train2017": read_coco(files[0], dataset="coco", part="train2017"),
        "coco-val2017": read_coco(files[1], dataset="coco", part="val2017"),
    }


def built(sources: dict[str, Source], **settings: str) -> Manifest:
    settings = {"val_size": "5", "exemplars": "3", **settings}
    manifest = BENCHMARK.build(sources, read_parameters(BENCHMARK, settings))
    check_header(manifest.header, where="here")
    check_lists(manifest.header, manifest.lists, where="here")
    return manifest


def classes_by_image(path: Path) -> dict[str, set[str]]:
    content = json.loads(path.read_text())
    names = {number: name for name, number in NUMBERS.items()}
    shown = defaultdict(set)
    for row in content["annotations"]:
        shown[f"coco:{row['image_id']:012d}"].add(names[row["category_id"]])
    return shown


def test_lists_follow_from_the_files(sources: dict[str, Source], files: tuple[Path, Path]) -> None:
    manifest = built(sources)
    shown = classes_by_image(files[0])
    held_out = {image for task in "1234" for image in manifest.lists[f"t{task}-val"]}
    assert len(held_out) == 20
    for task in ("t1", "t2", "t3", "t4"):
        selection = {image for image, names in shown.items() if any(TASK_OF[name] == task for name in names)}
        assert set(manifest.lists[f"{task}-train"]) == selection - held_out
        assert set(manifest.lists[f"{task}-val"]) <= selection
        assert manifest.lists[f"{task}-test"] == tuple(sorted(classes_by_image(files[1])))
    everything = {image for task in "1234" for image in manifest.lists[f"t{task}-train"]} | held_out
    assert everything == set(shown)


def test_labels_by_purpose(sources: dict[str, Source]) -> None:
    """Section 3: new classes in training, known ones in finetuning and validation, everything in the test."""
    manifest = built(sources)
    for part in manifest.header.parts:
        task = int(part.task[1])
        objects = view_objects(manifest, part.name, sources)
        names = [manifest.header.classes[label].name for label in objects.label.tolist()]
        steps = {int(TASK_OF[name][1]) for name in names}
        if part.role == "train":
            assert steps == {task}
        elif part.role == "test":
            assert objects.dropped == 0
            renamed = [name for name, index in zip(names, objects.category_id.tolist(), strict=True) if index < 0]
            assert renamed == [name for name in names if int(TASK_OF[name][1]) > task]
        else:
            assert max(steps) <= task
        assert (objects.ignore == (objects.crowd | objects.difficult)).all()


def test_no_shuffled_file_changes_a_sorted_list(tmp_path: Path, sources: dict[str, Source]) -> None:
    coco_file(tmp_path / "train.json", 1_000, 400, 1, shuffled=4)
    coco_file(tmp_path / "val.json", 500_000, 60, 2, shuffled=5)
    shuffled = {
        "coco-train2017": read_coco(tmp_path / "train.json", dataset="coco", part="train2017"),
        "coco-val2017": read_coco(tmp_path / "val.json", dataset="coco", part="val2017"),
    }
    assert built(shuffled).lists == built(sources).lists


def test_the_published_list_as_an_input(sources: dict[str, Source], tmp_path: Path) -> None:
    ours = built(sources)
    lines = [image for task in "1234" for image in ours.lists[f"t{task}-val"]]
    (tmp_path / "all_task_val.txt").write_text("".join(f"{line[5:]}\n" for line in lines))
    listed = open_path(tmp_path / "all_task_val.txt", dataset="coco", part="val")
    manifest = built({**sources, "val-list": listed}, val="published")
    assert manifest.lists == ours.lists
    entry = next(one for one in manifest.header.sources if one.name == "val-list")
    assert entry.files[0].rows == 20
    with pytest.raises(UsageError, match="not given"):
        built(sources, val="published")


def test_m_owodb_mixes_voc_and_coco(sources: dict[str, Source], tmp_path: Path) -> None:
    voc_names = [entry.aliases[0] if entry.aliases else entry.name for entry in _voc_entries()]
    content = {
        "images": [{"id": n, "file_name": f"{n:06d}.jpg", "width": 9, "height": 9} for n in range(1, 6)],
        "annotations": [
            {"id": n, "image_id": n, "category_id": n, "bbox": [1, 1, 3, 3], "area": 9, "iscrowd": 0}
            for n in range(1, 6)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(voc_names, start=1)],
    }
    (tmp_path / "voc.json").write_text(json.dumps(content))
    voc = {
        slot: read_coco(tmp_path / "voc.json", dataset=slot.split("-")[0], part=slot.split("-")[1])
        for slot in ("voc2007-test", "voc2007-trainval", "voc2012-trainval")
    }
    # The same file stands for three parts; VOC2007's two share ids, which is refused.
    with pytest.raises(ProtocolError, match="two purposes"):
        built({**sources, **voc}, split="m-owodb")
    sources = {"coco-val2017": sources["coco-val2017"]}
    voc = {"voc2007-test": voc["voc2007-test"]}
    manifest = built({**sources, **voc}, split="m-owodb")
    assert "t1-train" not in manifest.lists
    assert not any(part.role == "val" for part in manifest.header.parts)
    test = manifest.lists["t1-test"]
    assert [image for image in test if image.startswith("voc2007:")] == [f"voc2007:{n:06d}" for n in range(1, 6)]
    kept = built({**sources, **voc}, split="m-owodb", repeats="keep").part("t1-test")
    later = {image for image in test if image.startswith("coco:")}
    assert kept.repeats == kept.images - len(later) - 5 > 0


def _voc_entries() -> list[Any]:
    return [entry for entry in SPLITS["m-owodb"].classes if entry.name in VOC_CLASSES]


def test_a_declared_manifest_refuses_other_data(sources: dict[str, Source]) -> None:
    declared = BENCHMARK.declare(  # type: ignore[misc]
        {"coco-val2017": sources["coco-val2017"]}, read_parameters(BENCHMARK, {"split": "s-owodb"})
    )
    check_header(declared.header, where="here")
    assert declared.header.origin == "declared"
    assert declared.part("t1-train").images == 89_490
    _, missed = complete(declared, sources)
    names = {figure.name for figure in missed}
    assert {"t1-train.images", "t1-train.list", "t1-test.images"} <= names
    with pytest.raises(UsageError, match="published split"):
        BENCHMARK.declare(sources, read_parameters(BENCHMARK, {"split": "table2"}))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"split": "re-owod"}, "reowod"),
        ({"order": "random"}, "annotation"),
        ({"val": "yes"}, "published"),
        ({"val_size": "-1"}, "whole number"),
        ({"val_size": "1e3"}, "whole number"),
        ({"val_size": "0"}, "1 to 1000000"),
        ({"exemplars": "many"}, "whole number"),
        ({"crowd": "no"}, "ignore"),
        ({"salt": ""}, "salt"),
        ({"tasks": "[]"}, "one value"),
        ({"split": "custom"}, "m-owodb"),
        ({"val_size": "100000"}, "at most"),
    ],
)
def test_wrong_parameters(sources: dict[str, Source], settings: dict[str, str], told: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        built(sources, **settings)
    assert told in str(caught.value)


def test_a_class_that_nobody_named(sources: dict[str, Source], tmp_path: Path) -> None:
    content = coco_file(tmp_path / "train.json", 1_000, 30, 1)
    content["categories"][0]["name"] = "persons"
    (tmp_path / "train.json").write_text(json.dumps(content))
    other = read_coco(tmp_path / "train.json", dataset="coco", part="train2017")
    with pytest.raises(ProtocolError, match="does not name") as caught:
        built({**sources, "coco-train2017": other})
    assert "curation init tasks" in str(caught.value)
