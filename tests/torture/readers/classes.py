"""Classes: their roles, tasks, proposals and hierarchies."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.torture.readers.annotations import COCO, source
from tests.torture.readers.content import json_bytes
from tests.torture.readers.predictions import RESULTS
from tests.torture.readers.target import Files, Target, call, reads


def _seal_nouns(files: Files) -> Files:
    """State the offset of each line where it stands."""
    lines, place = [], 0
    for line in files["data.noun"].split(b"\n"):
        lines.append(b"%08d%s" % (place, line[8:]) if line[:8].isdigit() else line)
        place += len(line) + 1
    return {**files, "data.noun": b"\n".join(lines)}


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


_NOUNS = (
    b"  1 This software\n00000018 03 n 01 entity 0 001 ~ 00000082 n 0000 | that which is\n"
    b"00000082 03 n 02 thing 0 object 1 001 @ 00000018 n 0000 | a thing\n"
)


_INDEX = b"entity n 1 1 ~ 1 0 00000018  \nobject n 1 1 @ 1 0 00000082  \nthing n 1 1 @ 1 0 00000082  \n"


_TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [{"LabelName": "/m/0bt9lr", "Part": [{"LabelName": "/m/01yrx"}]}, {"LabelName": "/m/01g317"}],
}


def _proposals() -> bytes:
    from curation.proposals.proposal import write_proposals
    from tests.proposals.test_proposal import MADE

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.jsonl")
        write_proposals(path, MADE)
        return path.read_bytes()


def _read_nouns(folder: Path) -> Any:
    """Read WordNet's files as NLTK's data hold them."""
    from curation.hierarchy import noun_table

    data, index = ((folder / f"{name}.noun").read_bytes() for name in ("data", "index"))
    lines, senses = list(noun_table.noun_lines(data, "data.noun")), noun_table.senses_in(index, "index.noun")
    return noun_table.table_from(lines, [line.offset for line in lines], senses, str(folder))


def targets() -> list[Target]:
    """Return the targets of this module."""
    coco = json_bytes(COCO)
    return [
        Target(
            "class file",
            {"c.json": json_bytes({"known": ["person", "dog"], "unknown": ["elephant"]})},
            lambda f: call("evaluation.problem:classes_of_file")(f / "c.json", source()),
        ),
        Target(
            "task roles",
            {
                "t.json": json_bytes(
                    {
                        "tasks": [
                            {"name": "t1", "prev": [], "cur": ["person"], "rest": ["dog"]},
                            {"name": "t2", "prev": ["person"], "cur": ["dog"]},
                        ]
                    }
                )
            },
            reads("evaluation.problem:tasks_of_file", "t.json"),
        ),
        Target(
            "task file, toml", {"t.toml": TASKS}, reads("benchmarks.owod.tasks:read_task_settings", "t.toml"), weight=4
        ),
        Target(
            "task file, json",
            {
                "t.json": json_bytes(
                    {
                        "name": "my/benchmark",
                        "dataset": "coco",
                        "tasks": [{"name": "t1", "classes": ["person"]}],
                        "unknown": ["dog"],
                    }
                )
            },
            reads("benchmarks.owod.tasks:read_task_settings", "t.json"),
        ),
        Target(
            "id classes, toml",
            {"c.toml": b'known = ["dog", "cat"]\n[aliases]\ndog = ["hound"]\n'},
            reads("proposals.id_classes:read_id_classes", "c.toml"),
        ),
        Target(
            "id classes, text",
            {"c.txt": b"dog = hound\ncat\n# no\nnaive\n"},
            reads("proposals.id_classes:read_id_classes", "c.txt"),
        ),
        Target(
            "synset map",
            {"s.csv": b"name,synset\ndog,n02084071\ncat,n02121620\nnone,\n"},
            reads("proposals.id_classes:read_synset_map", "s.csv"),
        ),
        Target("proposals", {"p.jsonl": _proposals()}, reads("proposals.proposal:read_proposals", "p.jsonl"), weight=3),
        Target(
            "detector categories",
            {"c.json": coco},
            lambda f: call("proposals.evidence:read_categories")(
                f / "c.json", (call("proposals.id_classes:IdClass")("dog", ()),)
            ),
        ),
        Target(
            "detector overlap",
            {"r.json": json_bytes(RESULTS)},
            lambda f: call("proposals.evidence:detector_evidence")(
                f / "r.json", source(), {18: "dog", 1: "person"}, threshold=Decimal("0.1"), pool="p"
            ),
        ),
        Target(
            "class lists", {"c.txt": b"n02119022\nn02114367\n"}, reads("hierarchy.class_lists:read_classes", "c.txt")
        ),
        Target(
            "class lists, roles",
            {"c.json": json_bytes({"known_classes": ["dog", "cat"], "unknown_classes": {"Easy": ["zebra"]}})},
            reads("hierarchy.class_lists:read_classes", "c.json"),
        ),
        Target(
            "edge list",
            {"e.txt": b"entity thing\nthing dog\nthing cat\n", "n.txt": b"dog\thound, Canis\ncat\tfeline\n"},
            lambda f: call("hierarchy.class_trees:read_edge_list")(f / "e.txt", f / "n.txt"),
        ),
        Target(
            "open images tree",
            {"t.json": json_bytes(_TREE)},
            lambda f: call("hierarchy.class_trees:read_open_images")(f / "t.json", parts=True),
        ),
        Target(
            "hierarchy edits",
            {
                "e.toml": b'name = "mine"\nversion = "1"\nreason = "r"\nnew = ["cat"]\n'
                b'[parents]\ndog = ["thing"]\ncat = ["entity"]\n'
            },
            reads("hierarchy.hierarchy:read_edits", "e.toml"),
        ),
        Target("wordnet", {"data.noun": _NOUNS, "index.noun": _INDEX}, _read_nouns, seal=_seal_nouns),
    ]
