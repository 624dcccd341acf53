from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from curation.core.errors import UsageError
from curation.evaluation.class_scores import ClassScores, class_scores
from curation.evaluation.confidence import confidence
from curation.evaluation.oscr import QUERIES, auroc_of, oscr
from curation.evaluation.resample import _Measured, class_bootstrap, draws
from tests.evaluation import classification_rows


def bootstrapped(classifiers: dict[str, ClassScores], **options: Any) -> dict[str, Any]:
    settings, rows = class_bootstrap(classifiers, **options)
    return settings | classification_rows.intervals(rows)


def drawn(seed: int = 0, *, n: int = 200, origin: bool = True, background: str = "none") -> ClassScores:
    rng = np.random.default_rng(seed)
    classes = np.random.default_rng(99).integers(0, 12, n)
    labels = np.where(classes < 6, classes, np.where(classes < 9, -1, -2))
    # Rounded, so that there are ties.
    scores = rng.normal(0, 1, (n, 6 + (background == "last"))).round(1)
    scores[np.arange(n), np.maximum(labels, 0)] += 1.5 * (labels >= 0)
    return class_scores(labels, scores, kind="logits", background=background, origin=classes if origin else None)  # type: ignore[arg-type]


def _draws(data: ClassScores, replicates: int, seed: int) -> Iterator[Any]:
    measured = _Measured(data, QUERIES)
    return (measured.weights(one) for one in draws(measured.sizes, replicates, seed))


def repeated(data: ClassScores, weights: Any) -> ClassScores:
    """Each sample as often as its weight says: what a weighted measure has to equal."""
    rows = np.repeat(np.arange(len(data)), weights.astype(int))
    columns = {name: getattr(data, name)[rows] for name in ("labels", "answer", "highest", "target")}
    background = None if data.background is None else data.background[rows]
    return ClassScores(
        **columns, background=background, classes=data.classes, kind=data.kind, sums_to_one=data.sums_to_one
    )


@pytest.mark.parametrize("background", ["none", "last"])
@pytest.mark.parametrize("origin", [True, False])
def test_a_replicate_equals_measuring_the_samples_drawn(background: str, origin: bool) -> None:
    data = drawn(background=background, origin=origin)
    resampled = _Measured(data, QUERIES)
    for weights in _draws(data, 5, 7):
        found = resampled.measures(weights)
        again = repeated(data, weights)
        assert found["accuracy"] == pytest.approx((again.known & again.right).sum() / again.known.sum())
        for group in ("negative", "unknown"):
            for row in oscr(again, group):
                assert found[f"{group}.ccr_at_fpr.{row['fpr']}"] == pytest.approx(row["CCR"]), (group, row["fpr"])
            assert found[f"{group}.auroc"] == pytest.approx(auroc_of(again, group)["AUROC"])
            gamma = confidence(again, group)
            assert found["gamma_plus"] == pytest.approx(gamma["gamma_plus"])
            assert found[f"{group}.gamma_minus"] == pytest.approx(gamma["gamma_minus"])
            assert found[f"{group}.gamma"] == pytest.approx(gamma["gamma"])


def test_classes_are_drawn_whole_and_as_many_as_there_are() -> None:
    data = drawn()
    assert data.origin is not None
    for weights in _draws(data, 4, 0):
        by_class = [set(weights[data.origin == number].tolist()) for number in range(12)]
        assert all(len(one) == 1 for one in by_class)
        times = [one.pop() for one in by_class]
        assert (sum(times[:6]), sum(times[6:9]), sum(times[9:])) == (6, 3, 3)


def test_without_origin_other_samples_are_drawn_one_by_one() -> None:
    data = drawn(origin=False)
    result = bootstrapped({"a": data}, replicates=2)
    assert result["units"]["a"]["known"] == {"drawn": "classes", "of": 6}
    assert result["units"]["a"]["unknown"] == {"drawn": "samples", "of": int(data.group("unknown").sum())}
    (weights,) = _draws(data, 1, 0)
    assert weights[data.group("unknown")].sum() == data.group("unknown").sum()
    assert weights[data.group("negative")].max() > 1


def test_the_same_seed_gives_the_same_and_replicates_are_a_prefix() -> None:
    data = drawn()
    assert bootstrapped({"a": data}, replicates=20, seed=3) == bootstrapped({"a": data}, replicates=20, seed=3)
    other = bootstrapped({"a": data}, replicates=20, seed=4)
    assert other["intervals"] != bootstrapped({"a": data}, replicates=20, seed=3)["intervals"]
    few, many = list(_draws(data, 3, 5)), list(_draws(data, 6, 5))
    assert all(np.array_equal(one, two) for one, two in zip(few, many, strict=False))


def test_intervals_hold_the_estimate_and_differences_are_paired() -> None:
    one, other = drawn(0), drawn(1)
    result = bootstrapped({"a": one, "b": other, "c": one}, replicates=200)
    for cells in result["intervals"].values():
        for cell in cells.values():
            assert cell["low"] <= cell["high"]
            assert cell["undefined"] == 0
        assert cells["accuracy"]["low"] < cells["accuracy"]["estimate"] < cells["accuracy"]["high"]
    # A classifier differs from itself by nothing, in every replicate.
    assert {(c["low"], c["estimate"], c["high"]) for c in result["differences"]["c"].values()} == {(0, 0, 0)}
    gap = result["differences"]["b"]["accuracy"]
    expected = result["intervals"]["b"]["accuracy"]["estimate"] - result["intervals"]["a"]["accuracy"]["estimate"]
    assert gap["estimate"] == pytest.approx(expected)


def test_other_samples_cannot_be_paired() -> None:
    result = bootstrapped({"a": drawn(), "b": drawn(n=100), "c": drawn(origin=False)}, replicates=2)
    assert result["differences"] == {}
    assert list(result["not_compared"]) == ["b", "c"]


def test_what_is_undefined_stays_so() -> None:
    known = class_scores([0, 1, 1], [[1.0, 0], [0, 1.0], [1.0, 0]])
    cells = bootstrapped({"a": known}, replicates=5)["intervals"]["a"]
    assert cells["unknown.auroc"]["low"] is None
    assert cells["gamma_plus"] == {
        "estimate": None, "low": None, "high": None, "undefined": 5,
        "reason": "undefined on the samples as they are",
    }  # fmt: skip
    assert cells["accuracy"]["estimate"] == pytest.approx(2 / 3)


def test_a_confidence_out_of_range() -> None:
    with pytest.raises(UsageError):
        bootstrapped({"a": drawn()}, replicates=1, confidence="2")
