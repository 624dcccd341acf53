"""Decisions of reviewers, and the forms in which authors publish theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.torture.readers.target import Target, call, command, json_bytes, json_lines, reader

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
    options = call("review.decisions.verdict_tables:TableOptions")(
        columns=("image_id=image_location,action=decision",), codes=("o=keep,i=remove", "u=unsure"), blank="skip",
        dataset="textures", reviewer="N",
    )  # fmt: skip
    return call("review.decisions.verdict_tables:read_verdicts")([path], options, _namespace)


_CSV = b"""image_id,dataset,stage,action,reason,reviewer,date,manifest,batch
coco:000000000009,coco,manual,remove,why,Ann,2025-03-01,,
"""
_VERDICTS = b"""index,image_location,decision
0,t/images/banded/banded_0001.jpg,o
1,t/images/banded/banded_0002.jpg,i
"""


def targets() -> list[Target]:
    """Return the targets of this module."""
    read, lines = "review.decisions.files:read_decisions", {"d.jsonl": json_lines(*_DECISIONS)}
    return [
        reader("decisions, jsonl", lines, read, weight=4),
        reader("decisions, csv", {"d.csv": _CSV}, read, weight=3),
        command("decisions, counted", lines, "review summary @d.jsonl"),
        reader("selection, yaml", {"m.yaml": _YAML}, read, weight=3),
        reader("selection, json", {"m.json": json_bytes(_SELECTION)}, read, weight=3),
        Target("verdict table", {"textures.csv": _VERDICTS}, lambda f: _read_verdicts(f / "textures.csv"), weight=3),
    ]
