import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.findmeifyoucan.measures import quantile_threshold, zscore_threshold
from tests.evaluation import ood_reference as reference

FINITE = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def test_the_worked_example() -> None:
    ids = np.array(reference.EXAMPLE.ids)
    # 4 … 23: mean 13.5, population variance (20² - 1) / 12.
    assert zscore_threshold(ids) == pytest.approx(13.5 - 1.645 * (399 / 12) ** 0.5, abs=1e-12)
    assert quantile_threshold(ids) == 5.0


@given(FINITE)
def test_at_least_95_percent_of_id_scores_reach_the_quantile(ids: list[float]) -> None:
    threshold = quantile_threshold(np.array(ids))
    assert threshold == reference.quantile(ids)
    assert 20 * sum(one >= threshold for one in ids) >= 19 * len(ids)


@given(FINITE)
def test_the_zscore_is_that_of_exact_sums(ids: list[float]) -> None:
    assert zscore_threshold(np.array(ids)) == pytest.approx(reference.zscore(ids), rel=1e-9, abs=1e-6)
