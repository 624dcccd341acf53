import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.errors import MissingFileError, PredictionError
from curation.extensions.image_ood.post_hoc import read_inputs


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_logits_follow_from_features_and_the_layer(tmp_path: Path) -> None:
    test = save(tmp_path / "t.npz", features=np.array([[1.0, 2.0]]))
    layer = save(tmp_path / "l.npz", weight=np.array([[1.0, 1.0], [0.0, 1.0]]), bias=np.array([10.0, 0.0]))
    found = read_inputs(test, None, layer).logits
    assert found is not None
    assert found.tolist() == [[13, 2]]


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"other": np.ones(2)}, "lacks an array"),
        ({"logits": np.ones(3)}, "wrong shape or type"),
        ({"logits": np.array([["a"]])}, "wrong shape or type"),
        ({"logits": np.array([[np.nan]])}, "not finite"),
        ({"logits": np.ones((2, 0))}, "wrong shape or type"),
        ({"logits": np.ones((2, 2)), "features": np.ones((3, 2))}, "number of rows"),
        ({"logits": np.ones((2, 2)), "image_ids": np.ones(2)}, "image_ids"),
        ({"logits": np.ones((2, 2)), "image_ids": ["a"]}, "number of rows"),
    ],
)
def test_unusable_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], told: str) -> None:
    with pytest.raises(PredictionError, match=told):
        read_inputs(save(tmp_path / "t.npz", **arrays))


@pytest.mark.parametrize(
    ("train", "layer", "told"),
    [
        ({"labels": [1]}, {}, "lacks an array"),
        ({"features": np.ones((2, 2)), "labels": [0.5, 1]}, {}, "array labels"),
        ({"features": np.ones((2, 2)), "labels": [1]}, {}, "training rows"),
        ({"features": np.ones((2, 9))}, {}, "dimensions"),
        ({}, {"weight": np.ones((3, 2))}, "lacks an array"),
        ({}, {"weight": np.ones((3, 2)), "bias": np.ones(2)}, "classes"),
        ({}, {"weight": np.ones((9, 2)), "bias": np.ones(9)}, "classes"),
    ],
)
def test_files_must_go_together(tmp_path: Path, train: Any, layer: Any, told: str) -> None:
    test = save(tmp_path / "t.npz", features=np.ones((1, 2)), logits=np.ones((1, 3)))
    trained = save(tmp_path / "n.npz", **train) if train else None
    head = save(tmp_path / "l.npz", **layer) if layer else None
    with pytest.raises(PredictionError, match=told):
        read_inputs(test, trained, head)


def archive_of(path: Path, content: bytes, name: str = "logits.npy") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)
    return path


def test_pickles_and_other_files_are_refused(tmp_path: Path) -> None:
    pickled = tmp_path / "p.npz"
    np.savez(pickled, logits=np.array([[{}]], object))
    other = tmp_path / "o.npz"
    other.write_bytes(b"PK no archive")
    for path in (pickled, other, archive_of(tmp_path / "r.npz", b"raw"), archive_of(tmp_path / "k", b"", "logits")):
        with pytest.raises(PredictionError):
            read_inputs(path)
    with pytest.raises(MissingFileError):
        read_inputs(tmp_path / "none.npz")
