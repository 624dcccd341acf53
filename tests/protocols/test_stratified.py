"""scikit-learn's stratified split without scikit-learn: published cases, properties, the original where installed."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.core.errors import ProtocolError
from tests.protocols.stratified_items import stratified_split
from tests.real_files import real_files

SIZES = st.lists(st.integers(2, 60), min_size=1, max_size=12)


def labels(sizes: list[int]) -> list[str]:
    return [f"c{place:02d}" for place, size in enumerate(sizes) for _ in range(size)]


def admissible(sizes: list[int]) -> bool:
    n = sum(sizes)
    return min(int(0.8 * n), n - int(0.8 * n)) >= len(sizes)


@real_files("held")
def check_golden_cases(shared: Path) -> None:
    golden = json.loads((shared / "golden/imagenet/stratified_split_fixture.json").read_text())
    for seed, expected in golden["cases"].items():
        train, val = stratified_split(golden["classes"], train_size=golden["frac"], seed=int(seed))
        names = golden["order_in"]
        found = [[names[place] for place in part.tolist()] for part in (train, val)]
        assert found == list(expected.values())[:2], seed


def test_a_case_worked_by_hand() -> None:
    # Two classes of 5: 4 + 4 and 1 + 1, exactly; then four permutations of the generator, in this order.
    train, val = stratified_split(["b"] * 5 + ["a"] * 5, seed=0)
    random = np.random.RandomState(0)
    first, second = 5 + random.permutation(5), random.permutation(5)
    assert train.tolist() == random.permutation(np.concatenate([first[:4], second[:4]])).tolist()
    assert val.tolist() == random.permutation(np.concatenate([first[4:], second[4:]])).tolist()


@settings(deadline=None)
@given(SIZES.filter(admissible), st.integers(0, 2**32 - 1))
def test_it_is_a_split_with_fair_shares(sizes: list[int], seed: int) -> None:
    classes = labels(sizes)
    train, val = stratified_split(classes, seed=seed)
    assert sorted([*train.tolist(), *val.tolist()]) == list(range(len(classes)))
    assert len(train) == int(0.8 * len(classes))
    for place, size in enumerate(sizes):
        in_train = sum(classes[one] == f"c{place:02d}" for one in train.tolist())
        assert abs(in_train - size * len(train) / len(classes)) < 1 + 1e-9


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
@settings(deadline=None, max_examples=40)
@given(SIZES.filter(admissible), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.75, 0.8, 0.9]))
def test_scikit_learn_returns_the_same(sizes: list[int], seed: int, share: float) -> None:
    from sklearn.model_selection import train_test_split

    classes = labels(sizes)
    places = list(range(len(classes)))
    try:
        expected = train_test_split(places, train_size=share, stratify=classes, random_state=seed)
    except ValueError:
        with pytest.raises(ProtocolError):
            stratified_split(classes, train_size=share, seed=seed)
        return
    found = stratified_split(classes, train_size=share, seed=seed)
    assert [part.tolist() for part in found] == expected
