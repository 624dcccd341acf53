import numpy as np
import pytest

from curation.proposals.clip_overlap import reference_of
from curation.similarity.set_similarity import leave_one_out
from tests.proposals.embedding_world import embedded
from tests.rounding import cosine_error

ANGLES = (0.0, 0.1, 0.3, 0.7, 1.5)


def test_an_image_is_not_its_own_neighbour() -> None:
    rows = {f"voc:{row}": [np.cos(angle), np.sin(angle)] for row, angle in enumerate(ANGLES)}
    gaps = [0.1, 0.1, 0.2, 0.4, 0.8]
    assert leave_one_out(embedded(rows)).tolist() == pytest.approx(np.cos(gaps).tolist(), rel=0, abs=cosine_error(2))


def test_duplicates_are_neighbours_of_each_other() -> None:
    rows = {"voc:1": [1, 0], "voc:2": [1, 0], "voc:3": [1, 0], "voc:4": [0, 1]}
    assert leave_one_out(embedded(rows)).tolist() == pytest.approx([1, 1, 1, 0], rel=0, abs=cosine_error(2))


def test_median_and_robust_deviation_by_hand() -> None:
    rows = {f"voc:{row}": [np.cos(angle), np.sin(angle)] for row, angle in enumerate(ANGLES)}
    found = reference_of(embedded(rows))
    # Cosines of the gaps: .9950, .9950, .9801, .9211, .6967; deviations from the median .0149, .0149, 0, .0590, .2834.
    assert found.median == pytest.approx(np.cos(0.2), rel=0, abs=cosine_error(2))
    assert found.sigma == pytest.approx(1.4826 * (np.cos(0.1) - np.cos(0.2)), rel=0, abs=1.4826 * 2 * cosine_error(2))
    assert found.as_texts()["median"] == "0.9801"


def test_two_images_make_no_median() -> None:
    found = reference_of(embedded({"voc:1": [1, 0], "voc:2": [1, 1]}))
    assert (found.median, found.sigma) == (None, None)
    assert "median" not in found.as_texts()
    assert leave_one_out(embedded({"voc:1": [1, 0]})).tolist() == []
