import math

import numpy as np
import pytest

from curation.errors import EvaluationError
from curation.evaluation.post_hoc.scores import (
    LastLayer,
    ash_s,
    clipped,
    dice,
    dice_react,
    energy,
    react,
    sparse_layer,
    vim,
    virtual_logit,
)
from tests.evaluation.post_hoc_cases import drawn

IDENTITY = LastLayer(np.eye(2), np.zeros(2))


def test_ash_by_hand() -> None:
    # Of 3 and 1 the top half stays: S1 = 4, S2 = 3.
    found = ash_s(np.array([[3.0, 1.0]]), IDENTITY, percentile=50)
    assert found[0] == pytest.approx(math.log(math.exp(3 * math.exp(4 / 3)) + 1))


def test_ash_refuses_what_it_cannot_divide_by() -> None:
    with pytest.raises(EvaluationError, match="ASH divides"):
        ash_s(np.zeros((1, 2)), IDENTITY, percentile=50)
    # One of a thousand equal activations stays: S1 / S2 = 1000.
    with pytest.raises(EvaluationError, match="overflows"):
        ash_s(np.ones((1, 1000)), LastLayer(np.ones((1, 1000)), np.zeros(1)), percentile=99.9)


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


def test_vim_needs_a_residual() -> None:
    with pytest.raises(EvaluationError, match="leaves no residual"):
        virtual_logit(np.eye(2), IDENTITY, dimension=2)
    with pytest.raises(EvaluationError, match="have no residual"):
        virtual_logit(np.zeros((3, 2)), IDENTITY, dimension=1)


@pytest.mark.parametrize(("d", "size"), [(4, 2), (767, 383), (768, 512), (2048, 1000)])
def test_the_code_chooses_the_dimension(d: int, size: int) -> None:
    train, layer = np.random.default_rng(0).random((3, d)), LastLayer(np.ones((1, d)), np.zeros(1))
    assert virtual_logit(train, layer).residual.shape == (d, d - size)
