"""Detections and scores of methods, and what is made of them: results and leaderboards."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.readers.annotations import source
from tests.torture.readers.content import json_bytes, json_lines, npy, npz, parquet
from tests.torture.readers.target import Target, call, command, reads

RESULTS = [
    {"image_id": 9, "category_id": 1, "bbox": [1.5, 2, 10, 12], "score": 0.9, "background_score": 0.1},
    {"image_id": 25, "category_id": 18, "bbox": [1, 2, 10, 12.5], "score": 0.25},
]


_RECORDS = [
    {"image_id": 9, "bbox": [1, 2, 3, 4], "score": 0.5, "category_id": 1, "scores": {"energy": -1.5, "msp": 0.25}},
    {"image_id": "25", "bbox_xyxy": [1, 2, 3, 4], "score": 0.75, "category_id": 2, "scores": {"energy": 2, "msp": 0.5}},
]


_LOGITS = [
    {"image_id": 9, "bbox": [1, 2, 3, 4], "logits": [0.5, 1.5, -2]},
    {"image_id": 9, "bbox": [0, 0, 1, 1], "logits": [1, 2, 3]},
]


@cache
def truth() -> Any:
    """Return the ground truth that predictions are held against."""
    return call("evaluation.truth:ground_truth")(source(), call("evaluation.problem:classes_of_source")(source())).truth


def _rows() -> bytes:
    from tests.evaluation.leaderboard_cases import row_data

    return json_lines(row_data("one"), row_data("two", 0.25, score="v"))


def _voc_results(folder: Path) -> Any:
    return call("evaluation.readers:read_voc_results")(folder, truth())


def _npz_scores(path: Path) -> Any:
    call("evaluation.score_files:keys_of_npz")(path)
    return call("evaluation.score_files:read_scores")(path)


_SCORE_CSV = (
    b"image,label,score_0,score_1,background\na.jpg,0,0.25,0.5,0.25\nb.jpg,1,0.1,0.8,0.1\nc.jpg,-1,0.2,0.2,0.6\n"
)


_IMAGE_CSV = b"image,score,prediction,label\na/1.jpg,0.5,1,1\na/2.jpg,-1.5,0,-1\n"


def targets() -> list[Target]:
    """Return the targets of this module."""
    rng = np.random.default_rng(0)
    return [
        Target(
            "comp4",
            {
                "comp4_det_test_person.txt": b"000000000009 0.9 1 2 3 4\n000000000025 0.5 1.5 2 30 40\n",
                "comp4_det_test_unknown.txt": b"000000000009 0.9 1 2 3 4\n",
            },
            _voc_results,
            weight=3,
        ),
        Target(
            "detections",
            {"r.json": json_bytes(RESULTS)},
            lambda f: call("evaluation.readers:read_coco_results")(f / "r.json", truth()),
            weight=4,
        ),
        Target(
            "detections, lines",
            {"r.json": json_lines(*RESULTS)},
            lambda f: call("evaluation.readers:read_coco_results")(f / "r.json", truth()),
        ),
        Target(
            "ood detections",
            {"r.json": json_bytes(_RECORDS)},
            lambda f: call("evaluation.ood.detections:method_scores")(
                call("evaluation.ood.detections:read_records")(f / "r.json"), None
            ),
            weight=3,
        ),
        Target(
            "ood detections, logits",
            {"r.json": json_bytes(_LOGITS)},
            lambda f: call("evaluation.ood.detections:logits_of")(
                call("evaluation.ood.detections:read_records")(f / "r.json")
            ),
        ),
        Target(
            "id scores, json",
            {"s.json": json_bytes({"scores": {"msp": [0.5, 0.25]}, "image_ids": [9, "25"]})},
            reads("evaluation.ood.id_scores:read_id_scores", "s.json"),
        ),
        Target(
            "id scores, csv",
            {"s.csv": b"image_id,msp,energy\n9,0.5,1\n25,0.25,-2.5\n"},
            reads("evaluation.ood.id_scores:read_id_scores", "s.csv"),
        ),
        Target(
            "id scores, npy", {"s.npy": npy(np.arange(5.0))}, reads("evaluation.ood.id_scores:read_id_scores", "s.npy")
        ),
        Target(
            "class scores, npz",
            {"s.npz": npz(gt=np.array([0, 1, -1]), logits=rng.random((3, 2)), images=np.array(["a", "b", "c"]))},
            lambda f: _npz_scores(f / "s.npz"),
            weight=4,
        ),
        Target(
            "class scores, npy",
            {"s.npy": npy(rng.random((3, 2)))},
            reads("evaluation.score_files:read_npy", "s.npy"),
            weight=3,
        ),
        Target(
            "class scores, csv", {"s.csv": _SCORE_CSV}, reads("evaluation.score_files:read_scores", "s.csv"), weight=3
        ),
        Target(
            "class scores, parquet",
            {"s.parquet": parquet(label=[0, 1], logits=[[0.5, 1.5], [2.0, 1.0]])},
            reads("evaluation.score_files:read_scores", "s.parquet"),
        ),
        Target(
            "image scores, csv", {"s.csv": _IMAGE_CSV}, reads("evaluation.image_ood.images:read_image_scores", "s.csv")
        ),
        Target(
            "image scores, npz",
            {"s.npz": npz(conf=np.array([0.5, 1.0]), pred=np.array([0, 1]), label=np.array([0, -1]))},
            reads("evaluation.image_ood.images:read_image_scores", "s.npz"),
        ),
        Target(
            "post-hoc inputs",
            {
                "t.npz": npz(
                    logits=rng.random((3, 2)), features=rng.random((3, 4)), image_ids=np.array(["a", "b", "c"])
                ),
                "l.npz": npz(weight=rng.random((2, 4)), bias=rng.random(2)),
            },
            lambda f: call("evaluation.post_hoc.methods:read_inputs")(f / "t.npz", None, f / "l.npz"),
            weight=3,
        ),
        Target(
            "score vectors",
            {
                "v.json": json_bytes(
                    [
                        {
                            "image_id": 9,
                            "bbox": [1, 2, 3, 4],
                            "scores": [0.1, 0.9],
                            "background_score": 0.2,
                            "objectness": 0.5,
                            "region": 1,
                        }
                    ]
                )
            },
            reads("baselines.score_vectors:read_score_vectors", "v.json"),
        ),
        Target(
            "leaderboard", {"b.jsonl": _rows()}, reads("evaluation.leaderboard_rows:read_rows", "b.jsonl"), weight=4
        ),
        Target("leaderboard, ranked", {"b.jsonl": _rows()}, command("leaderboard", "@b.jsonl"), weight=2),
        Target(
            "leak check",
            {
                "leaks.json": json_bytes(
                    {
                        "protocol": "leaks",
                        "manifest": {"name": "toy/one", "version": "1.0.0", "digest": "sha256:" + "0" * 64},
                        "corpus": {"name": "c", "images": 3, "unreadable": 0},
                        "parts": {
                            "benchmark": {
                                "images": 2,
                                "compared": 2,
                                "leaked": 1,
                                "leaked_by": {"pixels": 1},
                                "examples": ["a"],
                            }
                        },
                    }
                )
            },
            reads("leaks.report:read_leaks", ""),
        ),
    ]
