import math

from hypothesis import strategies as st

from curation.evaluation.class_scores import class_scores
from curation.evaluation.oscr import accuracy_at, best_threshold, margins_of, openset_accuracy
from tests.evaluation.oscr_cases import LABELS, SOFTMAX, table


def test_a_hand_worked_case() -> None:
    # Right at .9, .8, .4, wrong at .7; unknown at .6, .5, .8. Above .6 two pass right, two of three are held back.
    scores = [[0.9, 0], [0.8, 0], [0.4, 0], [0.7, 0], [0.6, 0], [0.5, 0], [0.8, 0]]
    data = class_scores([0, 0, 0, 1, -2, -2, -2], scores)
    margins = margins_of(data, "unknown")
    assert accuracy_at(margins, 0.6) == 4 / 7
    assert accuracy_at(margins, 0.8) == 4 / 7
    assert accuracy_at(margins, 0.8, "inclusive") == 4 / 7
    assert accuracy_at(margins, -math.inf) == 3 / 7
    result = openset_accuracy(data, "unknown")
    assert (result["iosa"], result["iosa_threshold"]) == (4 / 7, 0.6)
    assert result["oosa"] is None
    assert "validation" in result["reason"]


def test_the_threshold_of_oosa_comes_from_validation() -> None:
    validation = class_scores([0, 0, -1, -1], [[0.5], [0.25], [0.125], [0.25]])
    test = class_scores([0, 0, -2, -2], [[0.5], [0.125], [0.375], [0.0]])
    # Validation: above .125 (2 + 1) of 4, above .25 (1 + 2) of 4: of equal ones the lower.
    assert best_threshold(margins_of(validation, "negative")) == 0.125
    result = openset_accuracy(test, "unknown", validation)
    assert result["oosa_threshold"] == 0.125
    assert result["oosa"] == 2 / 4
    assert (result["iosa"], result["iosa_threshold"]) == (0.75, 0.0)


def test_thresholds_from_validation_take_no_test_score() -> None:
    validation = class_scores([0, -1], [[0.5], [0.25]])
    for shift in (0.0, 10.0):
        test = class_scores([0, -2], [[0.5 + shift], [0.375 + shift]])
        assert openset_accuracy(test, "unknown", validation)["oosa_threshold"] == 0.25


scores = st.integers(0, 5).map(float)


def test_worked_example_by_hand() -> None:
    data = class_scores(LABELS, table(SOFTMAX), kind="probabilities")
    # Negatives .5, .375, .75, .34375. Above .5: 5 right pass, 3 negatives do not: 8 of 12. Above .34375: 6 + 1;
    # above .375: 6 + 2 = 8: the lower threshold of the two.
    result = openset_accuracy(data, "negative")
    assert (result["iosa"], result["iosa_threshold"]) == (8 / 12, 0.375)
