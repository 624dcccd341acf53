import csv
import re
from pathlib import Path

import numpy as np

from curation.benchmarks.findmeifyoucan.evaluation import ood_histograms
from tests.evaluation.ood_reference import EXAMPLE

IDS = np.array(EXAMPLE.ids)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_histograms_count_every_detection(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pair = rng.normal(2, 1, 5000), rng.normal(0, 1, 400)
    paths = ood_histograms({"far": pair, "odd": (IDS, IDS)}, {"far": 0.5, "odd": None}, "energy", tmp_path / "h")
    found = [row for row in rows(paths[-1]) if row["split"] == "far"]
    assert sum(int(row["id_detections"]) for row in found) == 5000
    assert sum(int(row["ood_detections"]) for row in found) == 400
    assert {row["threshold"] for row in found} == {"0.5"}


def test_a_split_without_scores_is_named_and_has_no_panel(tmp_path: Path) -> None:
    scores = {"far": (IDS, IDS), "near $x": (IDS, np.empty(0))}
    paths = ood_histograms(scores, {"far": 0.5, "near $x": None}, "energy", tmp_path / "h")
    drawn = " ".join(re.findall("<!-- (.*?) -->", paths[1].read_text()))
    assert "no ID or no OOD detections: near $x)" in drawn
    assert {line.partition(",")[0] for line in paths[2].read_text().splitlines()[1:]} == {"far"}


def test_equal_scores_can_be_drawn(tmp_path: Path) -> None:
    paths = ood_histograms({"s": (np.ones(3), np.ones(2))}, {"s": 99.0}, "msp", tmp_path / "h")
    assert sum(int(row["id_detections"]) for row in rows(paths[-1])) == 3
