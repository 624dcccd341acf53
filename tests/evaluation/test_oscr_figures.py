import csv
from pathlib import Path

import pytest

from curation.core.errors import EvaluationError
from curation.evaluation.class_scores import class_scores
from curation.evaluation.oscr import oscr_figure, protocols_figure
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


@pytest.mark.usefixtures("unpainted")
def test_a_figure_of_protocols_holds_the_curves_of_each(tmp_path: Path) -> None:
    alone = read(oscr_figure({"soft": SOFT}, tmp_path / "one"))
    together = read(protocols_figure({"P1": {"soft": SOFT}, "P2": {"soft": SOFT, "b": SOFT}}, tmp_path / "all"))
    for protocol, classifier in (("P1", "soft"), ("P2", "soft"), ("P2", "b")):
        rows = [row for row in together if (row["protocol"], row["classifier"]) == (protocol, classifier)]
        assert [{**row, "classifier": "soft"} for row in rows] == [{"protocol": protocol, **row} for row in alone]
    known = class_scores([0, 1], [[0.9, 0.1], [0.2, 0.8]], kind="probabilities")
    with pytest.raises(EvaluationError, match="known and other samples"):
        protocols_figure({"P1": {"soft": SOFT}, "P2": {"soft": known}}, tmp_path / "none")
