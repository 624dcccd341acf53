"""Classes: their roles, tasks, proposals and hierarchies."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.torture.readers.annotations import COCO, source
from tests.torture.readers.predictions import RESULTS
from tests.torture.readers.target import Target, call, json_bytes, reader

TASKS = b"""name = "my/benchmark"
title = "Mine"
dataset = "coco"
unknown = ["elephant"]
validation = 1
exemplars = 2
exhaustive = true
[aliases]
dog = ["hound"]
[[tasks]]
name = "t1"
classes = ["person"]
[[tasks]]
name = "t2"
classes = ["dog"]
"""

_TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [{"LabelName": "/m/0bt9lr", "Part": [{"LabelName": "/m/01yrx"}]}, {"LabelName": "/m/01g317"}],
}


def _proposals() -> bytes:
    from curation.review.proposals.proposal import write_proposals
    from tests.review.proposals.test_proposal import MADE

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.jsonl")
        write_proposals(path, MADE)
        return path.read_bytes()


def _id_class() -> Any:
    return (call("review.proposals.id_classes:IdClass")("dog", ()),)


_ROLES = [
    {"name": "t1", "prev": [], "cur": ["person"], "rest": ["dog"]},
    {"name": "t2", "prev": ["person"], "cur": ["dog"]},
]
_SETTINGS = {"name": "my/benchmark", "dataset": "coco", "tasks": [{"name": "t1", "classes": ["person"]}]}
_EDITS = b"""name = "mine"
version = "1"
reason = "r"
new = ["cat"]
[parents]
dog = ["thing"]
cat = ["entity"]
"""


def targets() -> list[Target]:
    """Return the targets of this module."""
    edges = {"e.txt": b"entity thing\nthing dog\nthing cat\n", "n.txt": b"dog\thound, Canis\ncat\tfeline\n"}
    roles = {"known_classes": ["dog", "cat"], "unknown_classes": {"Easy": ["zebra"]}}
    known, tasks = {"known": ["person", "dog"], "unknown": ["elephant"]}, {"tasks": _ROLES}
    settings, results = _SETTINGS | {"unknown": ["dog"]}, {"r.json": json_bytes(RESULTS)}
    named = {"c.toml": b'known = ["dog", "cat"]\n[aliases]\ndog = ["hound"]\n'}
    synsets = {"s.csv": b"name,synset\ndog,n02084071\ncat,n02121620\nnone,\n"}
    read_tasks, read_id = "benchmarks.owod.tasks:read_task_settings", "review.proposals.id_classes:read_id_classes"
    read_classes = "signals.hierarchy.class_lists:read_class_sets"
    overlap = "review.proposals.evidence:detector_evidence"
    return [
        reader("class file", {"c.json": json_bytes(known)}, "evaluation.problem:classes_of_file", source),
        reader("task roles", {"t.json": json_bytes(tasks)}, "evaluation.problem:tasks_of_file"),
        reader("task file, toml", {"t.toml": TASKS}, read_tasks, weight=4),
        reader("task file, json", {"t.json": json_bytes(settings)}, read_tasks),
        reader("id classes, toml", named, read_id),
        reader("id classes, text", {"c.txt": b"dog = hound\ncat\n# no\nnaive\n"}, read_id),
        reader("synset map", synsets, "review.proposals.id_classes:read_synset_map"),
        reader("proposals", {"p.jsonl": _proposals()}, "review.proposals.proposal:read_proposals", weight=3),
        reader(
            "detector categories", {"c.json": json_bytes(COCO)}, "review.proposals.evidence:read_categories", _id_class
        ),
        reader(
            "detector overlap", results, overlap, source, {18: "dog", 1: "person"}, threshold=Decimal("0.1"), pool="p"
        ),
        reader("class lists", {"c.txt": b"n02119022\nn02114367\n"}, read_classes),
        reader("class lists, roles", {"c.json": json_bytes(roles)}, read_classes),
        Target(
            "edge list", edges, lambda f: call("signals.hierarchy.hierarchy:read_edge_list")(f / "e.txt", f / "n.txt")
        ),
        reader(
            "open images tree",
            {"t.json": json_bytes(_TREE)},
            "signals.hierarchy.hierarchy:read_open_images",
            parts=True,
        ),
        reader("hierarchy edits", {"e.toml": _EDITS}, "signals.hierarchy.hierarchy:read_edits"),
    ]
