"""Post-hoc OOD scores by hand: of logits, of features, of a last layer; and which of them are possible."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.findmeifyoucan.measures import separability
from curation.core.errors import EvaluationError, PredictionError
from curation.evaluation.separability import energy, softmax
from curation.extensions.image_ood.post_hoc import (
    METHODS,
    LastLayer,
    PostHocInputs,
    ash_s,
    cholesky_factors,
    clipped,
    compute,
    dice,
    dice_react,
    gaussian_density,
    knn,
    mahalanobis,
    possible,
    react,
    read_inputs,
    sparse_layer,
    vim,
    virtual_logit,
)
from tests.extensions.image_ood.post_hoc_cases import drawn

ROWS = st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=6)


@given(ROWS)
def test_softmax_is_a_distribution_that_ignores_a_shift(rows: list[list[float]]) -> None:
    logits = np.array(rows)
    assert softmax(logits).sum(axis=1) == pytest.approx(1)
    assert softmax(logits + 7) == pytest.approx(softmax(logits), abs=1e-12)
    assert energy(logits + 7) == pytest.approx(energy(logits) + 7)


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


IDENTITY = LastLayer(np.eye(2), np.zeros(2))


def test_ash_by_hand() -> None:
    # Of 3 and 1 the top half stays: S1 = 4, S2 = 3.
    found = ash_s(np.array([[3.0, 1.0]]), IDENTITY, percentile=50)
    assert found[0] == pytest.approx(math.log(math.exp(3 * math.exp(4 / 3)) + 1))


def test_ash_names_the_cause() -> None:
    # 90 % of 4 features is 3.6, rounded 4: nothing is left to divide by, whatever the features are.
    with pytest.raises(EvaluationError, match=r"keeps no activation: 90 % of 4 features") as none_kept:
        ash_s(np.ones((1, 4)), LastLayer(np.ones((1, 4)), np.zeros(1)))
    assert "below 87.5" in str(none_kept.value.expected)
    with pytest.raises(EvaluationError, match="ASH divides") as zeros:
        ash_s(np.array([[1.0, 2.0], [0.0, 0.0]]), IDENTITY, percentile=50)
    assert (zeros.value.where, zeros.value.found) == ("row 1 of 2", "a row of 2 zeros")
    with pytest.raises(EvaluationError, match="exp") as factor:
        ash_s(np.full((1, 1000), 2.0), LastLayer(np.ones((1, 1000)), np.zeros(1)), percentile=99.9)
    assert "S1 = 2000, S2 = 2" in str(factor.value.found)


def test_react_by_hand() -> None:
    # The 50th percentile of all activations 0, 2, 4, 6 is 3.
    train, features = np.array([[0.0, 2.0], [4.0, 6.0]]), np.array([[9.0, 1.0]])
    assert clipped(features, train, 50).tolist() == [[3, 1]]
    assert react(features, train, IDENTITY, percentile=50)[0] == pytest.approx(math.log(math.exp(3) + math.e))


def test_dice_by_hand() -> None:
    # Mean activations 1 and 2, weights 1, 2, 3, 4: contributions 1, 4, 3, 8; their median is 3.5.
    layer = LastLayer(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2))
    train = np.array([[1.0, 2.0]])
    assert sparse_layer(train, layer, 50).weight.tolist() == [[0, 2], [0, 4]]
    assert dice(np.array([[5.0, 0.5]]), train, layer, percentile=50)[0] == pytest.approx(math.log(math.e + math.exp(2)))


def test_dice_and_react_compose() -> None:
    case = drawn()
    assert case.features is not None
    assert case.train is not None
    assert case.layer is not None
    both = dice_react(case.features, case.train, case.layer, percentile=80)
    ceiling = np.percentile(case.train, 80)
    sparse = dice(np.minimum(case.features, ceiling), case.train, case.layer, percentile=80)
    assert both == pytest.approx(sparse)


def test_vim_by_hand() -> None:
    # No bias: the origin is 0. Training features lie mainly on the first axis; the residual is the second.
    train = np.array([[4.0, 1.0], [-4.0, 1.0], [4.0, -1.0], [-4.0, -1.0]])
    virtual, features = virtual_logit(train, IDENTITY, dimension=1), np.array([[3.0, -5.0]])
    assert np.abs(virtual.residual[:, 0]) == pytest.approx([0, 1], abs=1e-12)
    # Highest logits 4, 1, 4, -1: mean 2; residual norms 1.
    assert virtual.alpha == pytest.approx(2)
    assert vim(features, train, IDENTITY, dimension=1)[0] == pytest.approx(energy(features)[0] - 10)


CASE = drawn()


def test_what_is_at_hand_decides_what_is_possible() -> None:
    assert possible(CASE) == tuple(name for name in METHODS if name != "lard_text")
    assert possible(replace(CASE, latents=CASE.features, train_latents=CASE.train)) == tuple(METHODS)
    assert possible(PostHocInputs(logits=CASE.logits)) == ("msp", "energy", "gen")
    assert "mahalanobis" not in possible(replace(CASE, labels=None))
    assert "knn" in possible(replace(CASE, labels=None, layer=None))


@pytest.mark.parametrize("name", ["knn", "mahalanobis", "ddu", "vim"])
def test_what_lies_far_from_training_is_less_in_distribution(name: str) -> None:
    near = replace(CASE, features=CASE.train, logits=None)
    far = replace(CASE, features=CASE.train[:, ::-1] * np.array([1, 3] * 4), logits=None)  # type: ignore[index]
    assert separability(compute(near, name), compute(far, name))["AUROC"] > 0.9


def test_lard_by_its_text_is_mahalanobis_of_pooled_latents(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    maps, train_maps = rng.normal(size=(6, 3, 4, 4)), rng.normal(size=(40, 3, 4, 4))
    latents, train, labels = maps.mean(axis=(2, 3)), train_maps.mean(axis=(2, 3)), np.arange(40) % 2
    np.savez(tmp_path / "test.npz", latents=latents)
    np.savez(tmp_path / "train.npz", latents=train, labels=labels)
    inputs = read_inputs(tmp_path / "test.npz", tmp_path / "train.npz")
    assert (len(inputs), possible(inputs)) == (6, ("lard_text",))
    precision = np.linalg.inv(np.mean([np.cov(train[labels == k].T, bias=True) for k in (0, 1)], axis=0))
    distances = [
        min(
            (row - train[labels == k].mean(axis=0)) @ precision @ (row - train[labels == k].mean(axis=0))
            for k in (0, 1)
        )
        for row in latents
    ]
    assert compute(inputs, "lard_text") == pytest.approx(-np.array(distances))
    np.savez(tmp_path / "other.npz", latents=latents[:, :2])
    with pytest.raises(PredictionError, match="number of channels"):
        read_inputs(tmp_path / "other.npz", tmp_path / "train.npz")
    np.savez(tmp_path / "flat.npz", latents=np.zeros(6))
    with pytest.raises(PredictionError, match="wrong shape"):
        read_inputs(tmp_path / "flat.npz")
