from typing import Any

import numpy as np
import pytest

from curation.core.errors import PredictionError
from curation.evaluation.class_scores import class_scores, numbering_doubt
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table
from tests.rounding import DOUBLE, gamma


def test_answer_highest_and_target_of_the_worked_example() -> None:
    data = class_scores(LABELS, table(SOFTMAX), kind="probabilities")
    assert data.answer[:8].tolist() == [0, 0, 1, 1, 1, 0, 2, 2]
    assert data.highest[:3].tolist() == [1, 0.75, 0.5]
    assert data.target[:3].tolist() == [1, 0.75, 0.25]
    assert np.isnan(data.target[8:]).all()
    assert (data.known.sum(), data.group("negative").sum(), data.group("unknown").sum()) == (8, 4, 4)
    assert data.sums_to_one
    assert data.background is None


def test_the_background_column_is_no_answer() -> None:
    data = class_scores(LABELS, table(BACKGROUND), kind="probabilities", background="last")
    assert data.classes == ("0", "1", "2")
    assert data.background is not None
    assert (data.answer[5], data.highest[5], data.background[5]) == (0, 0.1875, 0.5)
    assert not data.sums_to_one


def test_softmax_runs_over_all_columns_and_does_not_overflow() -> None:
    logits = np.log([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]) + np.array([[5000.0], [-5000.0]])
    # Near 5,000 two logits are rounded to 2**-41 each, and the difference of two is what counts; then exp and a sum.
    lost = 2 * 2.0**-41 + gamma(16, DOUBLE)
    with_column = class_scores([0, -1], logits, kind="logits", background="last")
    assert np.allclose(with_column.highest, [0.5, 0.125], rtol=0, atol=lost)
    assert with_column.target[0] == pytest.approx(0.5, rel=0, abs=lost)
    assert with_column.background is not None
    assert np.allclose(with_column.background, [0.25, 0.75], rtol=0, atol=lost)


def test_chunks_of_softmax_meet() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (4096 * 2 + 5, 4)).astype(np.float32)
    data = class_scores(np.zeros(len(logits)), logits, kind="logits")
    exact = np.exp(logits.astype(np.float64))
    assert np.allclose(data.target, (exact / exact.sum(axis=1, keepdims=True))[:, 0], rtol=1e-12, atol=0)


def test_the_number_of_the_background_is_a_negative_and_reported() -> None:
    data = class_scores([0, 2, -2], np.eye(3), background="last")
    assert data.labels.tolist() == [0, -1, -2]
    assert list(data.reported.values()) == [1]
    with pytest.raises(PredictionError, match="out of range") as caught:
        class_scores([0, 3, -2], np.eye(3))
    assert "background class is -1" in str(caught.value.hint)


@pytest.mark.parametrize("value", [3, -3, 0.5, np.nan, np.inf, 1e300])
def test_labels_of_no_class_name_their_row(value: float) -> None:
    with pytest.raises(PredictionError) as caught:
        class_scores([0.0, value, 1.0], np.eye(3), where="file")
    assert caught.value.where == "file: row 1"


@pytest.mark.parametrize(
    ("row", "background", "message"),
    [
        ([1.25, -0.25], "none", "outside"),
        ([2.0, 0.0], "none", "outside"),
        ([0.5, 0.25], "none", "sum to 1"),
        ([0.75, 0.75], "removed", "sum to 1"),
        ([0.0, 1.5], "last", "outside"),
    ],
)
def test_what_is_no_probability(row: list[float], background: str, message: str) -> None:
    with pytest.raises(PredictionError, match=message):
        class_scores([0], [row], kind="probabilities", background=background)  # type: ignore[arg-type]


def test_a_removed_background_lets_rows_sum_to_less() -> None:
    data = class_scores([0], [[0.5, 0.25]], kind="probabilities", background="removed")
    assert not data.sums_to_one


NUMBERED = np.repeat(np.arange(10), 30)
ANSWERS = np.where(np.arange(300) % 7, NUMBERED, 0)


@pytest.mark.parametrize(
    ("answers", "labels", "said"),
    [
        (ANSWERS, NUMBERED, ""),
        (ANSWERS, NUMBERED + 1, "are the answer +1"),
        (ANSWERS + 1, NUMBERED, "are the answer -1"),
        (np.array([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])[ANSWERS], NUMBERED, "goes with the answer most often"),
        # Poor classifiers are poor, not mistaken.
        (np.full(300, 7), NUMBERED, ""),
        (np.full(300, 7), np.full(300, 5), ""),
        (1 - NUMBERED % 2, NUMBERED % 2, ""),
        (1 + np.arange(300) % 9, np.where(np.arange(300) % 10, 0, NUMBERED), ""),
        (ANSWERS[:0], NUMBERED[:0], ""),
    ],
)
def test_another_numbering_of_the_classes_is_doubted(answers: Any, labels: Any, said: str) -> None:
    doubt = numbering_doubt(answers, labels)
    assert said in doubt
    assert bool(doubt) == bool(said)
