from dataclasses import replace

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.measures import separability
from curation.errors import EvaluationError, UsageError
from curation.evaluation.post_hoc.methods import METHODS, PostHocInputs, compute, possible
from tests.evaluation.post_hoc_cases import drawn

CASE = drawn()


def test_what_is_at_hand_decides_what_is_possible() -> None:
    assert possible(CASE) == tuple(METHODS)
    assert possible(PostHocInputs(logits=CASE.logits)) == ("msp", "energy", "gen")
    assert "mahalanobis" not in possible(replace(CASE, labels=None))
    assert "knn" in possible(replace(CASE, labels=None, layer=None))


@pytest.mark.parametrize("name", METHODS)
def test_every_score_is_one_finite_number_a_row(name: str) -> None:
    scores = compute(CASE, name)
    assert scores.shape == (len(CASE),)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", ["knn", "mahalanobis", "ddu", "vim"])
def test_what_lies_far_from_training_is_less_in_distribution(name: str) -> None:
    near = replace(CASE, features=CASE.train, logits=None)
    far = replace(CASE, features=CASE.train[:, ::-1] * np.array([1, 3] * 4), logits=None)  # type: ignore[index]
    assert separability(compute(near, name), compute(far, name))["AUROC"] > 0.9


def test_what_overflows_is_told() -> None:
    with pytest.raises(EvaluationError, match="not finite"):
        compute(replace(CASE, features=CASE.features * 1e200), "mahalanobis")  # type: ignore[operator]


def test_missing_inputs_are_named() -> None:
    with pytest.raises(EvaluationError, match="ddu needs") as caught:
        compute(replace(CASE, labels=None), "ddu")
    assert "labels" in str(caught.value)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="Unknown method"):
        compute(CASE, "odin")
