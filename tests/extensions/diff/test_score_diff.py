"""Two files of OOD scores: sign, order, shift and scale, ties, images of one alone. By hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr  # type: ignore[import-untyped]

import curation
from curation.cli import main
from curation.core.errors import PredictionError, UsageError
from curation.extensions.diff.score_files import ScoresDiff

SCORES = np.array([0.5, 2.0, 2.0, -1.0, 7.5])


def compared(folder: Path, one: Any, other: Any) -> Any:
    for name, values in (("a", one), ("b", other)):
        np.save(folder / f"{name}.npy", values)
    found = curation.diff(folder / "a.npy", folder / "b.npy")
    assert isinstance(found, ScoresDiff)
    return found.data()["scores"][0]


@pytest.mark.parametrize(
    ("other", "said", "rho"),
    [
        (SCORES, "equal", 1),
        (-SCORES, "the negative", -1),
        (3 * SCORES + 4, "scaled and shifted", 1),
        (2 - SCORES, "negated, scaled and shifted", -1),
        (np.exp(SCORES), "of the same order", 1),
        (-np.exp(SCORES), "of the reverse order", -1),
        (np.array([0.6, 2.0, 1.9, 1.0, -7.5]), "of the other sign, by rank correlation", None),
        (np.array([0.5, 2.0, 3.0, 1.0, 7.5]), "other", None),
    ],
)
def test_sign_order_shift_and_scale(tmp_path: Path, other: Any, said: str, rho: float | None) -> None:
    row = compared(tmp_path, SCORES, other)
    assert row["second is"] == said
    assert row["rank_correlation"] == pytest.approx(spearmanr(SCORES, other).statistic if rho is None else rho)
    assert (row["n"], row["ties_before"], row["ties_after"]) == (5, 1, len(other) - len(set(other)))
    if said == "scaled and shifted":
        assert (row["scale"], row["shift"]) == (pytest.approx(3), pytest.approx(4))


def test_what_does_not_vary_has_no_correlation(tmp_path: Path) -> None:
    row = compared(tmp_path, np.ones(3), np.array([1.0, 2.0, 3.0]))
    assert row["second is"] == "constant, or other"
    assert row["rank_correlation"] is row["scale"] is None


def test_rows_of_an_image_are_paired_and_those_of_one_file_alone_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("image_id,energy,msp\n1,1,0.1\n2,2,0.2\n2,3,0.3\n3,4,0.4\n4,5,0.5\n")
    (tmp_path / "b.csv").write_text("image_id,energy\n4,-5\n2,-2\n2,-3\n3,-4\n3,-9\n5,0\n")
    assert main(["diff", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--json", "--strict"]) == 1
    data = json.loads(capsys.readouterr().out)
    (row,) = data["scores"]
    # Images 2 and 4; image 3 has another number of rows, 1 and 5 are of one file.
    assert (row["method"], row["second is"], row["n"]) == ("energy", "the negative", 3)
    assert [(one["rows"], one["first"], one["methods"]) for one in data["alone"]] == [(2, "1", ["msp"]), (3, "3", [])]
    assert main(["diff", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 0
    said = capsys.readouterr().out
    assert "rows of a.csv alone: 2, first 1" in said
    assert "columns of a.csv alone: msp" in said


def test_files_that_an_evaluation_reads_are_compared(tmp_path: Path) -> None:
    """Names of any usual column, labels and predictions aside, and OpenOOD's archives."""
    for name, sign in (("a", 1), ("b", -1)):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "one.npz", conf=sign * SCORES, pred=np.arange(5), label=np.arange(5))
        rows = "".join(f"n/{n}.jpg,{sign * score},cat\n" for n, score in enumerate(SCORES))
        (tmp_path / name / "one.csv").write_text(f"image,score,label\n{rows}")
    for file in ("one.npz", "one.csv"):
        found = curation.diff(tmp_path / "a" / file, tmp_path / "b" / file)
        assert isinstance(found, ScoresDiff)
        assert [row["second is"] for row in found.data()["scores"]] == ["the negative"]
        assert found.names[0] != found.names[1]
    (tmp_path / "c.csv").write_text("image,score\nx,1\n")
    other = curation.diff(tmp_path / "a" / "one.csv", tmp_path / "c.csv")
    assert isinstance(other, ScoresDiff)
    assert other.data()["scores"][0]["second is"] == "of other images"


def test_rows_that_cannot_be_paired_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be paired"):
        compared(tmp_path, SCORES, SCORES[1:])
    (tmp_path / "dets.json").write_text('[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]')
    with pytest.raises(PredictionError, match="no OOD scores"):
        curation.diff(tmp_path / "dets.json", tmp_path / "dets.json")
