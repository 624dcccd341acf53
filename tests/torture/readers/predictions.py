"""Detections and scores of methods, and what is made of them: results and leaderboards."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.readers.annotations import source
from tests.torture.readers.target import Target, call, command, json_bytes, json_lines, npy, npz, parquet, reader

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


def _npz_scores(folder: Path) -> Any:
    call("evaluation.score_files:keys_of_npz")(folder / "s.npz")
    return call("evaluation.score_files:read_scores")(folder / "s.npz")


def _of_records(what: str, *arguments: Any) -> Any:
    """Return a reading of OOD detections by a function of their module."""
    ood = "benchmarks.findmeifyoucan.detections"
    return lambda folder: call(f"{ood}:{what}")(call(f"{ood}:read_records")(folder / "r.json"), *arguments)


_SCORE_CSV = (
    b"image,label,score_0,score_1,background\na.jpg,0,0.25,0.5,0.25\nb.jpg,1,0.1,0.8,0.1\nc.jpg,-1,0.2,0.2,0.6\n"
)
_VECTOR = {"image_id": 9, "bbox": [1, 2, 3, 4], "scores": [0.1, 0.9], "background_score": 0.2, "objectness": 0.5}
_LEAKS = {
    "protocol": "leaks",
    "manifest": {"name": "toy/one", "version": "1.0.0", "digest": "sha256:" + "0" * 64},
    "corpus": {"name": "c", "images": 3, "unreadable": 0},
    "parts": {"benchmark": {"images": 2, "compared": 2, "leaked": 1, "leaked_by": {"pixels": 1}, "examples": ["a"]}},
}


def targets() -> list[Target]:
    """Return the targets of this module."""
    rng = np.random.default_rng(0)
    line = b"000000000009 0.9 1 2 3 4\n"
    comp4 = {"comp4_det_test_person.txt": line + b"000000000025 0.5 1.5 2 30 40\n", "comp4_det_test_unknown.txt": line}
    scores = npz(gt=np.array([0, 1, -1]), logits=rng.random((3, 2)), images=np.array(["a", "b", "c"]))
    of_images = npz(conf=np.array([0.5, 1.0]), pred=np.array([0, 1]), label=np.array([0, -1]))
    rows, vector = {"s.npy": npy(rng.random((3, 2)))}, [_VECTOR | {"region": 1}]
    features = npz(logits=rng.random((3, 2)), features=rng.random((3, 4)), image_ids=np.array(["a", "b", "c"]))
    layer = npz(weight=rng.random((2, 4)), bias=rng.random(2))
    by_method = {"s.json": json_bytes({"scores": {"msp": [0.5, 0.25]}, "image_ids": [9, "25"]})}
    table = {"s.csv": b"image_id,msp,energy\n9,0.5,1\n25,0.25,-2.5\n"}
    images = {"s.csv": b"image,score,prediction,label\na/1.jpg,0.5,1,1\na/2.jpg,-1.5,0,-1\n"}
    columns = {"s.parquet": parquet(label=[0, 1], logit_0=[0.5, 2.0], logit_1=[1.5, 1.0])}
    coco, id_scores = "evaluation.readers:read_coco_results", "benchmarks.findmeifyoucan.id_scores:read_id_scores"
    read_scores, read_images = "evaluation.score_files:read_scores", "extensions.image_ood.images:read_image_scores"
    inputs, vectors = (
        call("extensions.image_ood.post_hoc.methods:read_inputs"),
        "benchmarks.osod3.methods:read_score_vectors",
    )
    board = {"b.jsonl": _rows()}
    return [
        reader("comp4", comp4, "evaluation.readers:read_voc_results", truth, weight=3),
        reader("detections", {"r.json": json_bytes(RESULTS)}, coco, truth, weight=4),
        reader("detections, lines", {"r.json": json_lines(*RESULTS)}, coco, truth),
        Target("ood detections", {"r.json": json_bytes(_RECORDS)}, _of_records("method_scores", None), weight=3),
        Target("ood detections, logits", {"r.json": json_bytes(_LOGITS)}, _of_records("logits_of")),
        reader("id scores, json", by_method, id_scores),
        reader("id scores, csv", table, id_scores),
        reader("id scores, npy", {"s.npy": npy(np.arange(5.0))}, id_scores),
        Target("class scores, npz", {"s.npz": scores}, _npz_scores, weight=4),
        reader("class scores, npy", rows, "evaluation.score_files:read_npy", weight=3),
        reader("class scores, csv", {"s.csv": _SCORE_CSV}, read_scores, weight=3),
        reader("class scores, parquet", columns, read_scores),
        reader("image scores, csv", images, read_images),
        reader("image scores, npz", {"s.npz": of_images}, read_images),
        Target(
            "post-hoc inputs",
            {"t.npz": features, "l.npz": layer},
            lambda f: inputs(f / "t.npz", None, f / "l.npz"),
            weight=3,
        ),
        reader("score vectors", {"v.json": json_bytes(vector)}, vectors),
        reader("leaderboard", board, "evaluation.leaderboard_rows:read_rows", weight=4),
        command("leaderboard, ranked", board, "leaderboard @b.jsonl", weight=2),
        reader("leak check", {"leaks.json": json_bytes(_LEAKS)}, "extensions.leaks.report:read_leaks", folder=True),
    ]
