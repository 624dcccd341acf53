from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.findmeifyoucan.measures import SEPARABILITY as METRICS
from curation.benchmarks.findmeifyoucan.measures import separability
from tests.evaluation import ood_reference as reference
from tests.evaluation.ood_worlds import SCORES

LISTS = st.lists(SCORES, min_size=1, max_size=60)
TWINS: dict[str, Callable[[list[float], list[float]], float]] = {
    "AUROC": lambda ids, oods: float(reference.area_under_roc(ids, oods)),
    "AUPR_trapezoid": reference.aupr_trapezoid,
    "AUPR_step": reference.aupr_step,
    "FPR95_first": reference.fpr_first,
    "FPR95_nearest_vos": reference.fpr_nearest_vos,
    "FPR95_ood_positive": reference.fpr_ood_positive,
}


def of(ids: list[float], oods: list[float]) -> dict[str, float]:
    found = separability(np.array(ids, np.float64), np.array(oods, np.float64))
    assert None not in found.values()
    return found  # type: ignore[return-value]


def test_the_worked_example() -> None:
    oods = [one.score for found in reference.EXAMPLE.found.values() for one in found]
    found = of(reference.EXAMPLE.ids, oods)
    # 180 pairs; 5.0, 8.0 and 9.0 beat 1, 4 and 5 ID scores and tie with one each.
    assert found["AUROC"] == (180 - 1 - 4 - 5 - 1.5) / 180
    assert found["FPR95_first"] == found["FPR95_nearest_vos"] == 3 / 9
    assert found["AUPR_trapezoid"] == pytest.approx(0.9709772351663084, abs=1e-12)
    # All 9 OOD scores are <= 9, and 8 are too few: ID 4 to 9.
    assert found["FPR95_ood_positive"] == 6 / 20


@given(LISTS, LISTS)
def test_every_number_is_that_of_plain_loops(ids: list[float], oods: list[float]) -> None:
    found = of(ids, oods)
    assert set(found) == set(TWINS) == set(METRICS)
    for name, twin in TWINS.items():
        assert found[name] == pytest.approx(twin(ids, oods), abs=1e-12), name


def test_the_three_rules_of_fpr_differ_where_they_should() -> None:
    # TPR 0.9 and 1: the first rule must take 1, the nearest one takes 0.9 (in float64 nearer), below 0.95.
    ids = [float(k) for k in range(1, 11)]
    assert of(ids, [0.5, 1.0])["FPR95_first"] == 0.5
    assert of(ids, [0.5, 1.0])["FPR95_nearest_vos"] == 0
    # TPR 0.95 holds from 2.0 down to just above 1.0: "first" stops at 2.0, VOS goes to the end of the equal-TPR run.
    many = [float(k) for k in range(1, 21)]
    assert of(many, [1.5, 1.2, 0.0])["FPR95_first"] == 0
    assert of(many, [1.5, 1.2, 0.0])["FPR95_nearest_vos"] == 2 / 3
    # 3 ID scores: only TPR 1 reaches 0.95; OOD positive covers all OOD scores at the ID score 2.
    assert of([1, 2, 3], [2, 0])["FPR95_first"] == 0.5
    assert of([1, 2, 3], [2, 0])["FPR95_ood_positive"] == 2 / 3


def test_the_library_of_the_field_agrees() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    ids, oods = rng.normal(1, 1, 3000).round(2), rng.normal(0, 1, 2000).round(2)
    found = of(ids.tolist(), oods.tolist())
    truth, scores = np.repeat([1, 0], [3000, 2000]), np.concatenate([ids, oods])
    precision, recall, _ = metrics.precision_recall_curve(truth, scores)
    assert found["AUROC"] == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-12)
    assert found["AUPR_step"] == pytest.approx(metrics.average_precision_score(truth, scores), abs=1e-12)
    assert found["AUPR_trapezoid"] == pytest.approx(metrics.auc(recall, precision), abs=1e-12)
