import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from curation.core.errors import EvaluationError
from curation.evaluation.class_scores import class_scores
from curation.evaluation.oscr import oscr_figure, score_histograms
from tests.evaluation.oscr_cases import LABELS, SOFTMAX, table

SOFT = class_scores(LABELS, table(SOFTMAX), kind="probabilities")


def read(paths: list[Path]) -> list[dict[str, str]]:
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    assert all(path.stat().st_size for path in paths)
    with paths[-1].open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("unpainted")
def test_the_csv_holds_every_point_of_the_exact_curve(tmp_path: Path) -> None:
    rows = read(oscr_figure({"soft": SOFT}, tmp_path / "oscr"))
    unknown = [(float(row["fpr"]), float(row["ccr"])) for row in rows if row["group"] == "unknown"]
    # Table 5.5: one corner at each rate that occurs, with the highest CCR there.
    corners = [max(point for point in unknown if point[0] == rate) for rate in sorted({p[0] for p in unknown})]
    assert corners == [(0, 0), (0.25, 0.25), (0.5, 0.625), (0.75, 0.75), (1, 0.75)]
    # A row for each score that a right known sample or an unknown one has, counted one by one, and one for all samples.
    right = [
        score[label] for label, score in zip(LABELS, table(SOFTMAX), strict=True)
        if label >= 0 and score[label] == max(score) and list(score).index(max(score)) == label
    ]  # fmt: skip
    others = [max(score) for label, score in zip(LABELS, table(SOFTMAX), strict=True) if label == -2]
    n_known = sum(label >= 0 for label in LABELS)
    expected = [
        (sum(score > t for score in others) / len(others), sum(score > t for score in right) / n_known)
        for t in sorted({*right, *others}, reverse=True)
    ]
    assert unknown == [*expected, (1.0, len(right) / n_known)]


def test_a_long_curve_is_listed_whole_and_drawn_thinned(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, -2], 25_000)
    data = class_scores(labels, rng.normal(labels == 0, 1)[:, None])
    paths = oscr_figure({"drawn $x_1$": data}, tmp_path / "oscr")
    rows = read(paths)
    # Every one of 50,000 different scores, and the point where all samples pass.
    assert len(rows) == 50_001
    thresholds = [float(row["threshold"]) for row in rows]
    assert thresholds == sorted(set(thresholds), reverse=True)
    assert thresholds[-1] == -np.inf
    rates = [float(row["fpr"]) for row in rows]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0, 1)
    for row in rows[:: len(rows) // 7]:
        above = data.target[:25_000] > float(row["threshold"])
        assert float(row["ccr"]) == above.mean()
    # The drawing has no point for each of them.
    assert paths[1].stat().st_size < 1 << 20


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("grid", ["paper", "comparison", "table2"])
def test_other_grids_and_two_classifiers(tmp_path: Path, grid: Any) -> None:
    rows = read(oscr_figure({"a": SOFT, "b $x_1$": SOFT}, tmp_path / "oscr", variant=grid))
    assert {row["classifier"] for row in rows} == {"a", "b $x_1$"}


def test_every_score_is_in_a_bin_below_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda made, *to, **how: (figures.append(made), savefig(made, *to, **how)))
    real = class_scores(LABELS, np.array(table(SOFTMAX)) * 90 - 30)
    one = class_scores([0, 1], [[3.0, 3.0], [3.0, 3.0]])
    large = class_scores([0, 1], [[1e99, 1e99], [1e99, 1e99]])
    wide = class_scores([0, -1], [[1e100, 0.0], [-1e100, -1e100]])
    drawn = {"soft": SOFT, "real": real, "one": one, "large": large, "wide": wide}
    rows = read(score_histograms(drawn, tmp_path / "scores"))
    for name, n in (("soft", 16), ("real", 16), ("one", 2), ("large", 2), ("wide", 2)):
        assert sum(int(row["count"]) for row in rows if row["classifier"] == name) == n
    axes = [axis for axis in figures[0].axes if axis.get_legend()]
    assert axes
    for axis in axes:
        assert axis.get_ylim()[1] >= 1.5 * max(patch.get_data().values.max() for patch in axis.patches)


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError):
        oscr_figure({"known": class_scores([0], [[1.0]])}, tmp_path / "x")
    assert not list(tmp_path.iterdir())
