"""Decisions of reviewers, and the forms in which authors publish theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.torture.readers.content import json_bytes, json_lines
from tests.torture.readers.target import Target, call, command, reads

_DECISIONS = [
    {"image_id": "coco:000000000009", "dataset": "coco", "stage": "manual", "action": "remove", "reason": "a dog",
     "reviewer": "Ann",
     "date": "2025-03-01T01:02:03Z", "manifest": "sha256:" + "f" * 64, "batch": "b1"},
    {"image_id": "coco:000000000025", "dataset": "coco", "stage": "candidate", "action": "add_far"},
]  # fmt: skip


_SELECTION = {
    "FROM_CANDIDATES": {"coco": [13159], "coco_near": [4760], "openimages_near": ["000a9c6e22a06877"]},
    "KEEP_TO_NEAR_IDS": {"coco": [358427]}, "REMOVE_IDS": {"coco": [352900]},
    "UNFILTERED_IMAGES_TO_FAR": {"coco": {"Banana": [9]}},
    "UNFILTERED_IMAGES_TO_NEAR": {"openimages": {"Food/Kitchen": ["0010e23500000000"]}},
}  # fmt: skip


_YAML = b"""FROM_CANDIDATES:
  coco: [13159]
  coco_near: [4760, 4760]
  openimages_near: ['000a9c6e22a06877']
KEEP_TO_NEAR_IDS: {coco: [358427], openimages: ["057d2471d6724d66"]}
UNFILTERED_IMAGES_TO_FAR:
  coco: {Banana: [9]}
UNFILTERED_IMAGES_TO_NEAR:
  openimages: {Food/Kitchen: ['0010e23500000000']}
"""


def _namespace(dataset: str) -> str:
    found: str = call("sources.datasets:namespace_of")(dataset)
    return found


def _read_verdicts(path: Path) -> Any:
    options = call("decisions.verdict_tables:TableOptions")(
        columns=("image_id=image_location,action=decision",), codes=("o=keep,i=remove", "u=unsure"), blank="skip",
        dataset="textures", reviewer="N",
    )  # fmt: skip
    return call("decisions.verdict_tables:read_verdicts")([path], options, _namespace)


def targets() -> list[Target]:
    """Return the targets of this module."""
    return [
        Target(
            "decisions, jsonl",
            {"d.jsonl": json_lines(*_DECISIONS)},
            reads("decisions.files:read_decisions", "d.jsonl"),
            weight=4,
        ),
        Target(
            "decisions, csv",
            {
                "d.csv": (
                    b"image_id,dataset,stage,action,reason,reviewer,date,manifest,batch\n"
                    b"coco:000000000009,coco,manual,remove,why,Ann,2025-03-01,,\n"
                )
            },
            reads("decisions.files:read_decisions", "d.csv"),
            weight=3,
        ),
        Target("decisions, counted", {"d.jsonl": json_lines(*_DECISIONS)}, command("decisions", "@d.jsonl"), weight=1),
        Target("selection, yaml", {"m.yaml": _YAML}, reads("decisions.files:read_decisions", "m.yaml"), weight=3),
        Target(
            "selection, json",
            {"m.json": json_bytes(_SELECTION)},
            reads("decisions.files:read_decisions", "m.json"),
            weight=3,
        ),
        Target(
            "verdict table",
            {
                "textures.csv": (
                    b"index,image_location,decision\n"
                    b"0,t/images/banded/banded_0001.jpg,o\n"
                    b"1,t/images/banded/banded_0002.jpg,i\n"
                )
            },
            lambda f: _read_verdicts(f / "textures.csv"),
            weight=3,
        ),
    ]
