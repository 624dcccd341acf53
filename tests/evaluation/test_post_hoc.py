import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import EvaluationError
from curation.evaluation.post_hoc.scores import (
    cholesky_factors,
    energy,
    gaussian_density,
    generalized_entropy,
    knn,
    log_sum_exp,
    mahalanobis,
    max_softmax,
    softmax,
    unit_rows,
)
from tests.evaluation.post_hoc_cases import drawn

ROWS = st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=6)


def test_two_equal_logits() -> None:
    logits = np.zeros((1, 2))
    assert max_softmax(logits)[0] == 0.5
    assert energy(logits)[0] == pytest.approx(math.log(2))
    assert generalized_entropy(logits)[0] == pytest.approx(-2 * (0.5**0.1 * 0.5**0.1))
    assert generalized_entropy(logits, top=1, gamma=1)[0] == pytest.approx(-0.25)


@given(ROWS)
def test_softmax_is_a_distribution_that_ignores_a_shift(rows: list[list[float]]) -> None:
    logits = np.array(rows)
    assert softmax(logits).sum(axis=1) == pytest.approx(1)
    assert softmax(logits + 7) == pytest.approx(softmax(logits), abs=1e-12)
    assert energy(logits + 7) == pytest.approx(energy(logits) + 7)


def test_huge_logits_do_not_overflow() -> None:
    assert energy(np.array([[1e300, 0.0]]))[0] == 1e300
    assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf


def test_the_kth_neighbour_by_hand() -> None:
    # Unit vectors at 0, 90 and 180 degrees; the query at 0 has squared distances 0, 2 and 4.
    train = np.array([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])
    query = np.array([[9.0, 0.0]])
    for k, squared in ((1, 0), (2, 2), (3, 4)):
        assert knn(query, train, k=k)[0] == pytest.approx(-squared)
        plain = knn(query, train, k=k, squared=False)[0]
        assert plain == pytest.approx(-math.sqrt(squared))
    with pytest.raises(EvaluationError, match="at least k"):
        knn(query, train, k=4)


def test_neighbours_are_those_of_all_pairs() -> None:
    case = drawn()
    train, features = unit_rows(case.train), unit_rows(case.features)  # type: ignore[arg-type]
    distances = ((features[:, None] - train[None]) ** 2).sum(axis=2)
    expected = -np.sort(distances, axis=1)[:, 9]
    assert knn(case.features, case.train, k=10) == pytest.approx(expected, abs=1e-12)  # type: ignore[arg-type]


def test_mahalanobis_by_hand() -> None:
    # Two classes of two points each; pooled covariance diag(1, 4) / 2 of class-centred features.
    train = np.array([[-1.0, 0.0], [1.0, 0.0], [10.0, -2.0], [10.0, 2.0]])
    variances = Fraction(1 + 1, 4), Fraction(4 + 4, 4)
    expected = -(Fraction(1) ** 2 / variances[0] + Fraction(1) ** 2 / variances[1])
    assert mahalanobis(np.array([[1.0, 1.0]]), train, np.array([0, 0, 7, 7]))[0] == pytest.approx(float(expected))


def test_density_by_hand_with_and_without_class_weights() -> None:
    # One dimension: classes of variance 2 (n - 1) at 0 and of variance 8 at 10.
    train, labels = np.array([[-1.0], [1.0], [8.0], [12.0]]), np.array([0, 0, 1, 1])
    expected = sum(
        math.exp(-((3 - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        for mean, variance in ((0, 2), (10, 8))
    )
    query = np.array([[3.0]])
    assert gaussian_density(query, train, labels)[0] == pytest.approx(math.log(expected))
    assert gaussian_density(query, train, labels, weighted=True)[0] == pytest.approx(math.log(expected / 2))
    assert cholesky_factors(np.array([[[2.0]], [[8.0]]]))[1] == 0


def test_a_flat_class_gets_the_smallest_jitter() -> None:
    train = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])
    assert 0 < cholesky_factors(np.cov(train.T)[None])[1] <= 0.1
    assert np.isfinite(gaussian_density(np.array([[0.0, 2.0]]), train, np.zeros(3, np.int64))).all()


def test_a_class_of_one_sample_has_no_covariance() -> None:
    with pytest.raises(EvaluationError, match="too few"):
        gaussian_density(np.eye(3), np.eye(3), np.array([0, 0, 1]))
