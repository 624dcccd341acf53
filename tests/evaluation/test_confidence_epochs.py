from pathlib import Path

import pytest

from curation.errors import MissingFileError, PredictionError
from curation.evaluation.confidence import read_epochs

GOOD = "loss,epoch,gamma_minus,gamma_plus\n1,1,.5,.25\n1,2,.75,.5\n1,5,.5,.75\n"


def test_columns_and_the_model_kept(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(GOOD)
    found = read_epochs(tmp_path / "e.csv")
    assert found.epochs == (1, 2, 5)
    assert found.gamma_plus == (0.25, 0.5, 0.75)
    # 1.25 twice: the earlier wins.
    assert found.chosen == 1


def test_float32_means_may_lie_a_rounding_above_one(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("epoch,gamma_plus,gamma_minus\n0,.25,1.0000001\n")
    assert read_epochs(tmp_path / "e.csv").gamma_minus == (1.0000001,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "epoch,gamma_plus,gamma_minus\n",
        "epoch,gamma_plus\n1,.5\n",
        GOOD + "1,5,.5,.5\n",
        GOOD + "1,6,x,.5\n",
        GOOD + "1,6,.5\n",
        GOOD + "1,6,nan,.5\n",
        GOOD + "1,6,1.5,.5\n",
        GOOD + "1,6.5,.5,.5\n",
        GOOD + "1,1e400,.5,.5\n",
        GOOD + "1,6,.5," + "5" * 50 + "\n",
        "\0",
    ],
    ids=range(12),
)
def test_files_that_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(PredictionError) as caught:
        read_epochs(tmp_path / "e.csv")
    assert "e.csv" in str(caught.value.where)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_epochs(tmp_path / "e.csv")
    (tmp_path / "e.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(PredictionError):
        read_epochs(tmp_path / "e.csv")
