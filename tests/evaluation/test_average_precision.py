import numpy as np
import pytest

from curation.evaluation.curves import Ranking, area, eleven_point, eleven_point_in_floats, precision_at_recall


def ranking(events: list[tuple[float, bool]], n: int) -> Ranking:
    return Ranking(np.array([score for score, _ in events]), np.array([hit for _, hit in events], bool), n)


def test_a_hand_checked_curve() -> None:
    # Precision 1, 1/2, 2/3 at recall 1/4, 1/4, 2/4: eleven points hold 1 for k = 0..2, 2/3 for k = 3..5, else 0.
    curve = ranking([(0.9, True), (0.8, False), (0.7, True)], 4).curve()
    assert eleven_point(curve)[0] == pytest.approx((3 * 1 + 3 * 2 / 3) / 11)
    assert area(curve)[0] == pytest.approx(1 / 4 + 2 / 3 / 4)
    assert precision_at_recall(curve, 5).tolist() == [2 / 3]
    assert precision_at_recall(curve, 6).tolist() == [0.0]


def test_equal_scores_make_one_point_unless_input_order_is_asked_for() -> None:
    tied = ranking([(0.5, True), (0.5, False)], 1)
    assert eleven_point(tied.curve()).tolist() == [0.5]
    assert eleven_point(tied.curve("input_order")).tolist() == [1.0]


def test_levels_come_out_as_if_each_was_ranked_alone() -> None:
    rng = np.random.default_rng(1)
    scores, correct = rng.integers(0, 9, 60) / 10, rng.random(60) < 0.4
    level = np.where(correct, 0, rng.integers(0, 5, 60))
    for ties in ("grouped", "input_order"):
        together = Ranking(scores, correct, 30, level=level, n_levels=4).curve(ties)
        for k in range(4):
            some = level <= k
            alone = Ranking(scores[some], correct[some], 30).curve(ties)
            assert eleven_point(together)[k] == pytest.approx(eleven_point(alone)[0], abs=1e-15)
            assert area(together)[k] == pytest.approx(area(alone)[0], abs=1e-15)


def test_recalls_in_single_precision_are_reached_as_in_integers() -> None:
    """Elephant's official code divides and compares in float32: up to 6,000 objects a class that is 10 TP >= k n."""
    levels = np.arange(0, 1.1, 0.1).astype(np.float32)
    n = np.arange(1, 6001)
    for k, level in enumerate(levels):
        # Only the two counts about k n / 10 could go wrong.
        for tp in (k * n // 10, np.minimum(k * n // 10 + 1, n)):
            recall = tp.astype(np.float32) / n.astype(np.float32)
            assert ((recall >= level) == (10 * tp >= k * n)).all()


@pytest.mark.parametrize(("tp", "points"), [(3, 3), (6, 6), (7, 7), (5, 6), (10, 11)])
def test_recalls_in_double_precision_are_not(tp: int, points: int) -> None:
    """OW-DETR's are: three, six and seven of ten do not reach 0.3, 0.6 and 0.7."""
    curve = ranking([(1 - k / 20, True) for k in range(tp)], 10).curve()
    assert points == sum(tp / 10 >= level for level in np.arange(0, 1.1, 0.1))
    assert eleven_point_in_floats(curve)[0] == pytest.approx(points / 11)
