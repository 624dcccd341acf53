import csv
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
