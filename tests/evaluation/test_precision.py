"""How exactly scores are held: whole numbers that a double cannot hold, and files of unlike types, in every reader."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.evaluation import evaluate as evaluate_detections
from curation.benchmarks.registry import evaluation
from curation.errors import PredictionError
from curation.evaluation.class_scores import class_scores
from curation.evaluation.image_ood.images import read_image_scores
from curation.evaluation.ood.detections import method_scores, read_records
from curation.evaluation.ood.id_scores import read_id_scores
from curation.evaluation.post_hoc.methods import read_inputs
from curation.evaluation.precision import unlike_precision
from curation.evaluation.score_files import read_scores
from tests.worlds import findmeifyoucan

TWO = 2**53


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def npy(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def of_images(path: Path) -> Any:
    return read_image_scores(path).scores


def of_classes(path: Path) -> Any:
    return read_scores(path, kind="real").scores.highest


def of_ids(path: Path) -> Any:
    return next(iter(read_id_scores(path).scores.values()))


def of_records(path: Path) -> Any:
    return next(iter(method_scores(read_records(path), None).values()))


def of_features(path: Path) -> Any:
    features = read_inputs(path).features
    assert features is not None
    return features[:, 0]


def parquet(path: Path, n: int) -> Path:
    import pyarrow
    from pyarrow import parquet as files

    files.write_table(pyarrow.table({"score_0": [1, n], "score_1": [0, 0], "label": ["0", "0"]}), path)
    return path


def records(n: int) -> str:
    box = {"bbox": [0, 0, 1, 1], "score": 0.5}
    return json.dumps([{"image_id": 1, **box, "ood_score": one} for one in (1, n)])


Made = Callable[[Path, int], Path]
READERS: dict[str, tuple[Callable[[Path], Any], Made]] = {
    "images npz": (of_images, lambda p, n: npz(p / "s.npz", conf=np.array([1, n]))),
    "images npz uint64": (of_images, lambda p, n: npz(p / "s.npz", conf=np.array([1, abs(n)], np.uint64))),
    "images npy": (of_images, lambda p, n: npy(p / "s.npy", np.array([1, n]))),
    "images csv": (of_images, lambda p, n: text(p / "s.csv", f"image,score\na,1\nb, {n} \n")),
    "classes npz": (of_classes, lambda p, n: npz(p / "s.npz", gt=[0, 0], scores=np.array([[1, 0], [n, -TWO]]))),
    "classes csv": (of_classes, lambda p, n: text(p / "s.csv", f"label,score_0,score_1\n0,1,0\n0,{n},{-TWO}\n")),
    "classes parquet": (of_classes, lambda p, n: parquet(p / "s.parquet", n)),
    "ID npy": (of_ids, lambda p, n: npy(p / "s.npy", np.array([1, n]))),
    "ID csv": (of_ids, lambda p, n: text(p / "s.csv", f"energy\n1\n{n}\n")),
    "ID json list": (of_ids, lambda p, n: text(p / "s.json", f"[1, {n}]")),
    "ID json": (of_ids, lambda p, n: text(p / "s.json", f'{{"scores": {{"energy": [1, {n}]}}}}')),
    "OOD records": (of_records, lambda p, n: text(p / "s.json", records(n))),
    "features": (of_features, lambda p, n: npz(p / "s.npz", features=np.array([[1], [n]]))),
}


@pytest.mark.parametrize("named", READERS)
def test_a_whole_number_that_no_double_holds_is_refused(tmp_path: Path, named: str) -> None:
    """2^53 and 2^53 + 1 are one double: scores that differ would be equal, and AUROC 0.5 where it is 1."""
    read, made = READERS[named]
    assert read(made(tmp_path, TWO)).tolist() == [1.0, float(TWO)]
    with pytest.raises(PredictionError) as caught:
        read(made(tmp_path, TWO + 1))
    assert "9007199254740992" in str(caught.value).replace(",", "")
    if "parquet" not in named and "uint64" not in named and "classes" not in named:
        with pytest.raises(PredictionError):
            read(made(tmp_path, -TWO - 1))


@pytest.mark.parametrize("written", ["1e20", "-2.5e30", "9007199254740993.5", "1e16"])
def test_large_numbers_in_floating_point_stay(tmp_path: Path, written: str) -> None:
    assert of_images(text(tmp_path / "s.csv", f"score\n0.5\n{written}\n")).tolist() == [0.5, float(written)]
    assert of_ids(text(tmp_path / "e.csv", f"energy\n0.5\n{written}\n")).tolist() == [0.5, float(written)]


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="a long double is a double here")
def test_floats_of_more_than_64_bits_are_refused(tmp_path: Path) -> None:
    long = np.array([1, 1 + np.finfo(np.longdouble).eps], np.longdouble)
    assert long[0] != long[1]
    for read in (of_images, of_ids):
        with pytest.raises(PredictionError, match="more digits than a double"):
            read(npy(tmp_path / "s.npy", long))
    with pytest.raises(PredictionError, match="more digits than a double"):
        class_scores([0, 0], long[:, None])


def test_sets_of_unlike_types_are_named(tmp_path: Path) -> None:
    """Of two files with the same numbers one is rounded: 0.1 equals 0.1 no more, and AUPR changes."""
    rng = np.random.default_rng(1)
    ids, oods = rng.integers(0, 8, 40) / 10, rng.integers(0, 6, 40) / 10
    found = {}
    for name, kind in (("alike", np.float32), ("unlike", np.float64)):
        (folder := tmp_path / name).mkdir()
        npz(folder / "imagenet.npz", conf=ids.astype(np.float32))
        npz(folder / "textures.npz", conf=oods.astype(kind))
        found[name] = evaluation("openood").evaluate(scores=folder)
    assert found["alike"]["ood/textures/exact/AUPR_IN"] != found["unlike"]["ood/textures/exact/AUPR_IN"]
    said = {name: [note for note in one.notes if "stored as float32" in note] for name, one in found.items()}
    assert said["alike"] == []
    (note,) = said["unlike"]
    assert "scores of imagenet are stored as float32, those of textures with more digits" in note
    stored = {name: one["stored"] for name, one in found["unlike"].data["inputs"]["unlike"].items()}
    assert stored == {"imagenet": "float32", "textures": "float64"}


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
