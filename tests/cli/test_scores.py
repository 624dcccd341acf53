import csv
import json
from pathlib import Path

import numpy as np
import pytest

from curation.cli import main
from curation.extensions.image_ood.post_hoc.methods import METHODS, compute
from tests.evaluation.ood_reference import EXAMPLE
from tests.evaluation.ood_worlds import example_files, results_content, write
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
    assert tuple(written["scores"]) == tuple(METHODS)
    assert written["scores"]["vim"] == pytest.approx(compute(drawn(9), "vim").tolist())
    assert written["about"]["inputs"]["train"]["sha256"].startswith("sha256:")
    few = {"test": arrays["test"], "train": arrays["train"]}
    assert main(arguments(few, tmp_path / "few.csv", "--json")) == 0
    with (tmp_path / "few.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"knn", "mahalanobis", "ddu"}
    assert [float(row["knn"]) for row in rows] == compute(drawn(9), "knn").tolist()


def test_scores_go_into_detections_and_from_there_into_the_evaluation(
    arrays: dict[str, Path], tmp_path: Path, shell: Shell
) -> None:
    (tmp_path / "example").mkdir()
    files = example_files(tmp_path / "example")
    given = write(tmp_path / "given.json", results_content(EXAMPLE))
    scored = tmp_path / "scored.json"
    assert (
        main(arguments(arrays, scored, "--detections", str(given), "--method", "mahalanobis", "--method", "knn")) == 0
    )
    ids = tmp_path / "id.json"
    np.savez(tmp_path / "id.npz", features=drawn(30, seed=4).features)
    assert (
        main(arguments({**arrays, "test": tmp_path / "id.npz"}, ids, "--method", "knn", "--method", "mahalanobis")) == 0
    )
    evaluated = ["evaluate", "findmeifyoucan", "--truth", str(files["truth"]), "--detections", str(scored)]
    result = shell.data(*evaluated, "--scores", ids, "--json", "--score", "knn")
    assert {one["score"] for one in result["scored"]} == {"knn"}
    assert {row["value"] for row in result["details"] if row["detail"] == "id_detections"} == {30}


@pytest.mark.parametrize(
    "more", [("--method", "odin"), ("--k", "0"), ("--k", "10000", "--method", "knn"), ("--detections", "none.json")]
)
def test_unusable_requests_are_told_and_nothing_is_written(
    arrays: dict[str, Path], tmp_path: Path, shell: Shell, more: tuple[str, ...]
) -> None:
    assert shell.err(*arguments(arrays, tmp_path / "s.json", *more)).startswith("error: ")
    assert not (tmp_path / "s.json").exists()


def test_an_impossible_method_leaves_the_others_standing(
    arrays: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    # Of 4 features 90 % are, rounded, all: ASH keeps none. kNN with more neighbours than the 150 training features.
    case, out = drawn(9), tmp_path / "s.json"
    assert case.layer is not None
    np.savez(arrays["test"], features=np.asarray(case.features)[:, :4])
    np.savez(arrays["train"], features=np.asarray(case.train)[:, :4], labels=case.labels)
    np.savez(arrays["layer"], weight=case.layer.weight[:, :4], bias=case.layer.bias)
    assert main(arguments(arrays, out, "--k", "151", "--json")) == 0
    printed = capsys.readouterr()
    about = json.loads(printed.out)
    assert set(about["impossible"]) == {"ash", "knn"}
    assert set(about["methods"]) == set(METHODS) - {"ash", "knn"}
    assert "keeps no activation: 90 % of 4 features" in about["impossible"]["ash"]
    assert "warning: knn is left out: kNN needs at least k training features" in printed.err
    written = json.loads(out.read_text(encoding="utf-8"))
    assert tuple(written["scores"]) == tuple(about["methods"])
    assert written["about"]["impossible"] == about["impossible"]
    # Asked for by name, what is missing is a failure, though the rest is written.
    both = ("--k", "151", "--method", "knn", "--method", "energy")
    assert "impossible: kNN needs" in " ".join(
        shell.out(*arguments(arrays, tmp_path / "t.json", *both), status=1).split()
    )
    assert list(json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["scores"]) == ["energy"]


def test_ddu_without_samples_for_its_covariances_says_so(tmp_path: Path, shell: Shell) -> None:
    # 8 dimensions: a covariance of n samples has rank n - 1 at most, so nine are needed; class 1 has five.
    case = drawn(5)
    labels = np.array([0] * 9 + [1] * 5)
    np.savez(tmp_path / "test.npz", features=case.features)
    np.savez(tmp_path / "train.npz", features=np.asarray(case.train)[:14], labels=labels)
    given = {name: tmp_path / f"{name}.npz" for name in ("test", "train")}
    told = " ".join(shell.err(*arguments(given, tmp_path / "s.json", "--method", "ddu"), status=0).split())
    assert "1 of 2 classes have too few training features for a covariance of full rank: 9 are needed" in told
    assert "label: number: 1: 5" in told
    doubts = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["about"]["doubts"]
    assert set(doubts) == {"ddu"}
