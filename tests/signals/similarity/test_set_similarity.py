"""Set similarity by hand, the paper's sample, its histograms, and what is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import SimilarityError, UsageError
from curation.signals.similarity.neighbors import (
    leave_one_out,
    reference_statistics,
    sample_rows,
    set_similarity,
    similarity_histograms,
)
from tests.rounding import cosine_error, product_error
from tests.signals.similarity.vectors import embedded, random_set

AXES = {"voc:1": [1, 0, 0], "voc:2": [0, 2, 0], "voc:3": [3, 3, 0]}


def test_by_hand() -> None:
    ood = embedded({"coco:1": [5, 0, 0], "coco:2": [1, 1, 1], "coco:3": [0, 0, 1]})
    found = set_similarity(ood, embedded(AXES))
    assert found.nearest[:2] == ("voc:1", "voc:3")
    assert found.similarity.tolist() == pytest.approx([1, 2 / np.sqrt(6), 0], rel=0, abs=cosine_error(3))
    assert found.margin.tolist()[0] == pytest.approx(1 - 1 / np.sqrt(2), rel=0, abs=2 * cosine_error(3))
    statistics = found.statistics()
    assert statistics["n"] == 3
    assert statistics["mean"] == pytest.approx((1 + 2 / np.sqrt(6)) / 3, rel=0, abs=cosine_error(3))
    assert statistics["quantiles"]["0.5"] == pytest.approx(2 / np.sqrt(6), rel=0, abs=cosine_error(3))


def test_against_all_products() -> None:
    ood, known = random_set(40, 12, 1), random_set(300, 12, 2, "voc")
    found = set_similarity(ood, known)
    one, two = ood.normalised().astype(np.float64), known.normalised().astype(np.float64)
    products, allowed = one @ two.T, product_error(one, two.T)
    # The exact maximum; and where two references are that near, either may be found.
    assert (np.abs(found.similarity - products.max(axis=1)) <= allowed.max(axis=1)).all()
    places = [known.ids.index(name) for name in found.nearest]
    nearest = products[np.arange(len(ood)), places]
    assert (products.max(axis=1) - nearest <= 2 * allowed.max(axis=1)).all()


def test_the_paper_s_sample() -> None:
    known = random_set(2500, 2, 3, "voc")
    generator = np.random.RandomState(42)
    generator.choice(5011, 4000, replace=False)
    expected = sorted(generator.choice(2500, 2000, replace=False).tolist())
    assert sample_rows(known, "paper", n_train=5011).tolist() == expected
    # Every image of a smaller set: the authors' helper would keep two.
    assert sample_rows(random_set(50, 2, 3), "paper", n_train=9).tolist() == list(range(50))


def test_our_sample_is_stable_when_the_set_grows() -> None:
    small, large = random_set(2100, 2, 4), random_set(2400, 2, 4)
    first = {small.ids[row] for row in sample_rows(small)}
    second = {large.ids[row] for row in sample_rows(large)}
    assert len(first) == len(second) == 2000
    assert {one for one in second if one in set(small.ids)} <= first
    assert sample_rows(random_set(30, 2, 4)).tolist() == list(range(30))


def test_leave_one_out() -> None:
    found = leave_one_out(embedded({"a:1": [1, 0], "a:2": [1, 0], "a:3": [0, 1], "a:4": [1, 1]}))
    assert found.tolist() == pytest.approx([1, 1, 1 / np.sqrt(2), 1 / np.sqrt(2)], rel=0, abs=cosine_error(2))
    assert leave_one_out(embedded({"a:1": [1, 0]})).tolist() == []
    # Cosines of the gaps: .9950, .9950, .9801, .9211, .6967; deviations from the median .0149, .0149, 0, .0590, .2834.
    angles = (0.0, 0.1, 0.3, 0.7, 1.5)
    by_hand = reference_statistics(embedded({f"voc:{one}": [np.cos(one), np.sin(one)] for one in angles}))
    assert by_hand.median == pytest.approx(np.cos(0.2), rel=0, abs=cosine_error(2))
    expected = 1.4826 * (np.cos(0.1) - np.cos(0.2))
    assert by_hand.sigma == pytest.approx(expected, rel=0, abs=1.4826 * 2 * cosine_error(2))
    statistics = reference_statistics(random_set(200, 4, 5))
    similar = leave_one_out(random_set(200, 4, 5))
    assert statistics.median == pytest.approx(float(np.median(similar)))
    assert statistics.sigma == pytest.approx(1.4826 * float(np.median(np.abs(similar - np.median(similar)))))
    assert reference_statistics(embedded({"a:1": [1, 0], "a:2": [0, 1]})).median is None


def test_what_is_refused() -> None:
    with pytest.raises(SimilarityError, match="different encoders"):
        set_similarity(embedded({"a:1": [1, 0]}), embedded({"b:1": [1, 0]}, weights="sha256:1"))
    with pytest.raises(SimilarityError, match="No ID image"):
        set_similarity(embedded({"a:1": [1, 0]}), embedded({"b:1": [1, 0]}).take([]))
    with pytest.raises(UsageError, match="training images"):
        sample_rows(random_set(3, 2, 1), "paper")


def test_histograms(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.3, 0.9, 500).astype(np.float32)
    written = similarity_histograms({"COCO": {"near": values, "none": values[:0]}}, tmp_path / "h", bins=20)
    assert [path.suffix for path in written] == [".png", ".svg", ".csv"]
    with written[2].open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["set"] == "near"]
    area = sum((float(row["to"]) - float(row["from"])) * float(row["density"]) for row in rows)
    assert area == pytest.approx(1)
    assert float(rows[-1]["to"]) >= float(values.max())
