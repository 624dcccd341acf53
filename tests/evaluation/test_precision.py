"""Scores that are compared, of files that hold them in unlike types."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from curation.benchmarks.findmeifyoucan.evaluation import evaluate as evaluate_detections
from curation.evaluation.score_files import unlike_precision
from tests.worlds import findmeifyoucan


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def npy(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_numbers_that_every_type_holds_are_alike() -> None:
    halves, thirds = np.array([0.5, 1, 2]), np.array([1 / 3, 0.5])
    single = thirds.astype(np.float32).astype(np.float64)
    assert unlike_precision({"a": ("float32", single), "b": ("float64", halves)}) == ""
    # A text of what was single holds no more digits than it.
    assert unlike_precision({"a": ("float32", halves), "b": ("float64", single)}) == ""
    assert unlike_precision({"a": ("int64", halves), "b": ("float64", thirds)}) == ""
    assert unlike_precision({"a": ("float32", single), "b": ("float64", np.array([np.nan, np.inf]))}) == ""
    assert "of b are stored as float16, those of a, c" in unlike_precision(
        {"a": ("float32", single), "b": ("float16", halves), "c": ("float64", thirds)}
    )


def test_id_scores_in_single_beside_ood_scores_in_text_are_named(tmp_path: Path) -> None:
    paths = findmeifyoucan.files(tmp_path)
    ids = json.loads(paths["id_scores"].read_bytes())["scores"]
    found = json.loads(paths["detections"].read_bytes())
    thirds = text(tmp_path / "thirds.json", json.dumps([one | {"ood_score": one["ood_score"] / 3} for one in found]))
    single = npy(tmp_path / "ids.npy", np.array(ids, np.float32) / 3)
    result = evaluate_detections(truth=paths["truth"], detections=thirds, id_scores=single)
    (note,) = (note for note in result.notes if "stored as" in note)
    assert "the ID file ids.npy are stored as float32, those of the OOD file thirds.json with more digits" in note
    both = npy(tmp_path / "double.npy", np.array(ids) / 3)
    result = evaluate_detections(truth=paths["truth"], detections=thirds, id_scores=both)
    assert not any("stored as" in note for note in result.notes)
