"""A small open-world benchmark of three tasks over two COCO JSON files, for tests of whole commands."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.benchmarks.parts import source_entry
from curation.core.canonical import sha256_of_lines
from curation.manifest.header import SCHEMA_VERSION, ClassEntry, Header, LabelView, Paper, PartEntry, Rule, TaskEntry
from curation.manifest.manifest import Manifest
from curation.sources.coco import read_coco
from curation.sources.source import Source

TASKS = {"t1": ("airplane", "cat", "person"), "t2": ("truck", "elephant"), "t3": ("pizza",)}
NUMBERS = {"person": 1, "airplane": 5, "truck": 8, "cat": 17, "elephant": 22, "pizza": 59}
"""COCO's category ids: neither the order of the tasks nor without gaps."""
UNKNOWN = 6
VIEWS = {
    "train": LabelView(previous="drop", unknown="drop"),
    "finetune": LabelView(unknown="drop"),
    "val": LabelView(unknown="drop"),
    "test": LabelView(),
}


@dataclass(frozen=True)
class TaskWorld:
    """The two files, what they say, and the manifest."""

    train_json: Path
    val_json: Path
    sources: dict[str, Source]
    manifest: Manifest

    def arguments(self) -> list[str]:
        """Return the ``--source`` options of a command."""
        return ["--source", f"train={self.train_json}", "--source", f"val={self.val_json}"]


def write_task_world(folder: Path, *, seed: int = 3) -> TaskWorld:
    """Write both files and make the manifest: 48 training and 20 validation images, every tenth without objects."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"instances_{name}2017.json" for name in ("train", "val")}
    paths["train"].write_text(json.dumps(_coco(range(1000, 1048), 700, rng)), encoding="utf-8")
    paths["val"].write_text(json.dumps(_coco(range(2000, 2020), 90_000, rng)), encoding="utf-8")
    sources = {name: read_coco(path, dataset="coco", part=f"{name}2017") for name, path in paths.items()}
    return TaskWorld(paths["train"], paths["val"], sources, make_task_manifest(sources, _lists(paths)))


def with_boxes(path: Path, boxes: list[tuple[int, int, list[float]]]) -> dict[str, Any]:
    """Return the content of a COCO file with more boxes: image, category, and ``x, y, w, h`` of each."""
    coco: dict[str, Any] = json.loads(path.read_bytes())
    for number, (image, category, box) in enumerate(boxes, start=10**6):
        row = {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": box[2] * box[3]}
        coco["annotations"].append({**row, "iscrowd": 0})
    return coco


def make_task_manifest(sources: dict[str, Source], lists: dict[str, tuple[str, ...]], **fields: Any) -> Manifest:
    """Make the manifest of some lists named ``TASK-SPLIT``; ``fields`` are the header's."""
    names = [name for introduced in TASKS.values() for name in introduced]
    parts = []
    for name, ids in lists.items():
        task, split = name.split("-")
        parts.append(
            PartEntry(
                name=name,
                role=split,
                sources=("val" if split == "test" else "train",),
                selection="by hand",
                view=VIEWS[split],
                order="listed",
                images=len(ids),
                repeats=len(ids) - len(set(ids)),
                sha256=sha256_of_lines(ids),
                task=task,
            )
        )
    header = Header(
        **{
            "schema_version": SCHEMA_VERSION,
            "name": "hand/tasks",
            "version": "1.0.0",
            "title": "Three tasks",
            "paper": Paper(title="t", authors="a", year=2022, venue="v", bibtex="b"),
            "taxonomy": "OWOD",
            "origin": "regenerated",
            "classes": tuple(
                ClassEntry(name=name, role="known", index=index, aliases=("aeroplane",) if name == "airplane" else ())
                for index, name in enumerate(names)
            ),
            "parts": tuple(parts),
            "sources": tuple(source_entry(slot, source) for slot, source in sources.items()),
            "rule": Rule(protocol="hand", algorithm_version=1, parameters={}),
            "tasks": tuple(TaskEntry(name=task, introduced=names) for task, names in TASKS.items()),
            **fields,
        }
    )
    return Manifest(header=header, lists=lists)


def _lists(paths: dict[str, Path]) -> dict[str, tuple[str, ...]]:
    """Return training images with a class of the task, in order of first annotation; two of each validate."""
    train, val = (json.loads(paths[name].read_bytes()) for name in ("train", "val"))
    names = {number: name for name, number in NUMBERS.items()}
    selected = {
        task: list(
            dict.fromkeys(
                f"coco:{one['image_id']:012d}"
                for one in train["annotations"]
                if names[one["category_id"]] in introduced
            )
        )
        for task, introduced in TASKS.items()
    }
    held: dict[str, tuple[str, ...]] = {}
    for task, ids in selected.items():
        held[task] = tuple([one for one in ids if not any(one in chosen for chosen in held.values())][:2])
    validating = {image for ids in held.values() for image in ids}
    test = tuple(dict.fromkeys(f"coco:{one['image_id']:012d}" for one in val["annotations"]))
    lists: dict[str, tuple[str, ...]] = {}
    for task, ids in selected.items():
        lists[f"{task}-train"] = tuple(one for one in ids if one not in validating)
        if task != "t1":
            lists[f"{task}-finetune"] = (*lists["t1-train"][:3], lists[f"{task}-train"][0])
            lists[f"{task}-finetune"] = tuple(dict.fromkeys(lists[f"{task}-finetune"]))
        lists[f"{task}-val"] = held[task]
        lists[f"{task}-test"] = test
    return lists


def _coco(numbers: range, first_annotation: int, rng: random.Random) -> dict[str, Any]:
    shuffled = list(numbers)
    rng.shuffle(shuffled)
    annotations = []
    for image in shuffled:
        for _ in range(0 if image % 10 == 9 else rng.randint(1, 4)):
            x, y = rng.randint(0, 400) / 4, rng.randint(0, 400) / 4
            box = [x, y, rng.randint(4, 400) / 4, rng.randint(4, 400) / 4]
            annotations.append(
                {
                    "id": first_annotation + 3 * len(annotations),
                    "image_id": image,
                    "category_id": rng.choice(list(NUMBERS.values())),
                    "bbox": box,
                    "area": box[2] * box[3] / 2,
                    "iscrowd": int(rng.random() < 0.15),
                    "segmentation": [[x, y, x + 1, y, x + 1, y + 1]],
                }
            )
    rng.shuffle(annotations)
    return {
        "images": [
            {"id": number, "file_name": f"{number:012d}.jpg", "width": 240, "height": 240} for number in numbers
        ],
        "annotations": annotations,
        "categories": [{"id": number, "name": name, "supercategory": ""} for name, number in NUMBERS.items()],
    }
