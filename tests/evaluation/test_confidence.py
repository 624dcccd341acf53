import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.evaluation.class_scores import class_scores
from curation.evaluation.oscr import confidence
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table


@pytest.mark.parametrize(
    ("background", "group", "expected"),
    [
        (False, "negative", (0.640625, 0.8411458333, 0.7408854167)),
        (False, "unknown", (0.640625, 0.6770833333, 0.6588541667)),
        (True, "unknown", (0.55859375, 0.453125, 0.505859375)),
    ],
)
def test_the_worked_example(background: bool, group: str, expected: tuple[float, ...]) -> None:
    scores = table(BACKGROUND if background else SOFTMAX)
    data = class_scores(LABELS, scores, kind="probabilities", background="last" if background else "none")
    result = confidence(data, group)
    found = [result[key] for key in ("gamma_plus", "gamma_minus", "gamma")]
    assert found == pytest.approx(expected, abs=1e-10)
    # All classes occur, so that Table 2's offset is the same.
    assert result["gamma_minus_table2"] == result["gamma_minus"]


def test_table2_takes_the_offset_from_the_largest_label() -> None:
    data = class_scores([0, -2], [[0.5, 0.25, 0.125, 0.125], [0.25] * 4], kind="probabilities")
    result = confidence(data, "unknown")
    assert result["gamma_minus"] == 1
    assert result["gamma_minus_table2"] == 1.75


def test_logits_and_their_probabilities_agree() -> None:
    logits = np.log(table(SOFTMAX)[1:12])
    one = confidence(class_scores(LABELS[1:12], logits, kind="logits"), "negative")
    other = confidence(class_scores(LABELS[1:12], table(SOFTMAX)[1:12], kind="probabilities"), "negative")
    assert one == pytest.approx(other)


rows = st.lists(st.lists(st.floats(-8, 8), min_size=3, max_size=3), min_size=2, max_size=20)


@given(rows, st.sampled_from(["none", "last"]))
def test_bounds(logits: list[list[float]], background: str) -> None:
    labels = [0, *[-1] * (len(logits) - 1)]
    data = class_scores(labels, logits, kind="logits", background=background)  # type: ignore[arg-type]
    minus = confidence(data, "negative")["gamma_minus"]
    assert (1 / 3 if background == "none" else 0) - 1e-12 <= minus <= 1 + 1e-12
