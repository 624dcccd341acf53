import csv
import json
from pathlib import Path

import numpy as np
import pytest

from curation.cli import main
from curation.extensions.image_ood.post_hoc import METHODS, compute
from tests.extensions.image_ood.post_hoc_cases import drawn
from tests.shell import Shell


@pytest.fixture
def arrays(tmp_path: Path) -> dict[str, Path]:
    case = drawn(9)
    assert case.layer is not None
    np.savez(tmp_path / "test.npz", features=case.features)
    np.savez(tmp_path / "train.npz", features=case.train, labels=case.labels)
    np.savez(tmp_path / "layer.npz", weight=case.layer.weight, bias=case.layer.bias)
    return {name: tmp_path / f"{name}.npz" for name in ("test", "train", "layer")}


def arguments(arrays: dict[str, Path], out: Path, *more: str) -> list[str]:
    given = ["scores", "--out", str(out), *more]
    for name, path in arrays.items():
        given += [f"--{name}", str(path)]
    return given


def test_every_method_that_the_files_allow(arrays: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    assert "higher is more ID" in shell.out(*arguments(arrays, tmp_path / "s.json"))
    written = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert tuple(written["scores"]) == tuple(name for name in METHODS if name != "lard_text")
    assert written["scores"]["vim"] == pytest.approx(compute(drawn(9), "vim").tolist())
    assert written["about"]["inputs"]["train"]["sha256"].startswith("sha256:")
    few = {"test": arrays["test"], "train": arrays["train"]}
    assert main(arguments(few, tmp_path / "few.csv", "--json")) == 0
    with (tmp_path / "few.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"knn", "mahalanobis", "ddu"}
    assert [float(row["knn"]) for row in rows] == compute(drawn(9), "knn").tolist()


@pytest.mark.parametrize(
    "more", [("--method", "odin"), ("--k", "0"), ("--k", "10000", "--method", "knn"), ("--detections", "none.json")]
)
def test_unusable_requests_are_told_and_nothing_is_written(
    arrays: dict[str, Path], tmp_path: Path, shell: Shell, more: tuple[str, ...]
) -> None:
    assert shell.err(*arguments(arrays, tmp_path / "s.json", *more)).startswith("error: ")
    assert not (tmp_path / "s.json").exists()
