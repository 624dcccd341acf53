"""The same methods in the package pytorch-ood: equal up to sign, or up to the change that the documentation names."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curation.errors import EvaluationError, MissingExtraError, UsageError
from curation.evaluation.post_hoc_methods import METHODS, Settings, compute
from curation.evaluation.post_hoc_pytorch_ood import ABSENT, compute_with_pytorch_ood
from tests.evaluation.post_hoc_cases import D, K, drawn

pytest.importorskip("torch")
CASE = drawn()
SETTINGS = Settings(k=5, percentile=75.0)


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    try:
        compute_with_pytorch_ood(CASE, "energy", SETTINGS)
    except MissingExtraError as error:
        pytest.skip(f"{error.what}: {error.found}")


def test_a_percentile_that_keeps_nothing_is_the_cause_with_this_engine_too() -> None:
    with pytest.raises(EvaluationError, match="ASH keeps no activation"):
        compute(CASE, "ash", Settings(percentile=99), engine="pytorch-ood")


def both(name: str, settings: Settings = SETTINGS, case: Any = CASE) -> tuple[Any, Any]:
    return compute(case, name, settings), compute(case, name, settings, engine="pytorch-ood")


@pytest.mark.parametrize("name", ["msp", "energy", "ash", "react"])
def test_equal_up_to_sign_in_double_precision(name: str) -> None:
    ours, theirs = both(name)
    assert theirs == pytest.approx(ours, rel=1e-12)


@pytest.mark.parametrize("name", ["dice", "vim"])
def test_equal_up_to_sign_in_single_precision(name: str) -> None:
    ours, theirs = both(name)
    assert theirs == pytest.approx(ours, rel=2e-4, abs=2e-4)


def test_gen_is_a_mean_there_and_a_sum_here() -> None:
    # Near logits: the package takes probabilities below 1e-7 as 1e-7.
    case = replace(CASE, logits=CASE.logits / 20)  # type: ignore[operator]
    ours, theirs = both("gen", case=case)
    assert ours == pytest.approx(K * theirs, rel=1e-12)
    ours, theirs = both("gen", replace(SETTINGS, top=2), case)
    assert ours == pytest.approx(2 * theirs, rel=1e-12)


def test_neighbours_are_at_distances_there_and_squared_ones_in_the_code() -> None:
    ours, theirs = both("knn")
    assert ours == pytest.approx(-(theirs**2), abs=1e-12)
    plain, _ = both("knn", replace(SETTINGS, squared=False))
    assert plain == pytest.approx(theirs, abs=1e-7)


def test_mahalanobis_there_is_halved_over_the_scatter() -> None:
    ours, theirs = both("mahalanobis")
    n = len(CASE.train)  # type: ignore[arg-type]
    assert theirs == pytest.approx(ours / (2 * n), rel=1e-3)


def test_density_there_has_class_weights_and_divides_by_n() -> None:
    # With equal classes, the factor (n - 1) / n of the covariances shrinks distances and adds a constant.
    case = drawn(n_train=150)
    weighted, theirs = both("ddu", replace(SETTINGS, weighted=True), case)
    n = 50
    fitted = replace(case, train=_widened(case.train, case.labels, math.sqrt((n - 1) / n)))
    assert compute(fitted, "ddu", replace(SETTINGS, weighted=True)) == pytest.approx(theirs, rel=1e-3)
    assert np.corrcoef(weighted, theirs)[0, 1] > 0.999
    unweighted, _ = both("ddu", SETTINGS, case)
    assert unweighted - weighted == pytest.approx(math.log(K))


def _widened(train: Any, labels: Any, factor: float) -> Any:
    """Move each feature towards its class mean by a factor: the n - 1 covariance becomes the one over n."""
    means = np.stack([train[labels == one].mean(axis=0) for one in range(K)])
    return means[labels] + factor * (train - means[labels])


def test_what_the_package_refuses_is_an_error_of_ours() -> None:
    with pytest.raises(EvaluationError, match="cannot compute knn"):
        compute(CASE, "knn", replace(SETTINGS, k=10_000), engine="pytorch-ood")


def test_every_method_is_there_or_said_to_be_absent() -> None:
    for name in METHODS:
        if name in ABSENT:
            with pytest.raises(UsageError, match="has no"):
                compute(CASE, name, SETTINGS, engine="pytorch-ood")
        else:
            assert compute(CASE, name, SETTINGS, engine="pytorch-ood").shape == (40,)
    assert CASE.features.shape[1] == D  # type: ignore[union-attr]
