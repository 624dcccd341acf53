import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.evaluation import evaluate_split
from curation.benchmarks.findmeifyoucan.report import metric_bars, score_histograms
from curation.evaluation.measures import Scored
from curation.evaluation.ood.id_scores import IdScores
from tests.evaluation.ood_reference import EXAMPLE, OodWorld
from tests.evaluation.ood_worlds import columns

IDS = np.array(EXAMPLE.ids)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def scored(split: str, *variants: str, score: str = "s", world: OodWorld = EXAMPLE) -> list[Scored]:
    truth, detections = columns(world)
    found = evaluate_split(truth, detections, IdScores({"s": IDS}, None, "", "", {}), "s")
    about: dict[str, Any] = {"split": split, "score": score, "settings": {"fpr": "first"}}
    return [
        Scored(variant=one, found=found[one], method="d", truth={}, predictions={}, **about)
        for one in variants or ("paper",)
    ]


def test_the_table_beside_the_bars_holds_their_heights(tmp_path: Path) -> None:
    paths = metric_bars([*scored("near"), *scored("far $x")], tmp_path / "bars")
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    found = {(row["split"], row["metric"]): row["value"] for row in rows(paths[-1])}
    assert float(found["near", "P_U"]) == 50
    assert float(found["far $x", "FPR95"]) == pytest.approx(1 / 3)
    assert len(found) == 12


def test_undefined_bars_are_empty_cells_with_a_reason(tmp_path: Path) -> None:
    paths = metric_bars(scored("none", "official", world=OodWorld({1: []}, {})), tmp_path / "bars")
    found = {row["metric"]: (row["value"], row["undefined"]) for row in rows(paths[-1])}
    assert found["AUROC"] == found["FPR95"] == ("", "there are no OOD detections")
    assert found["R_U"] == ("", "N_U is 0: the split has no objects")


def test_histograms_count_every_detection(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pair = rng.normal(2, 1, 5000), rng.normal(0, 1, 400)
    paths = score_histograms({"far": pair, "odd": (IDS, IDS)}, {"far": 0.5, "odd": None}, "energy", tmp_path / "h")
    found = [row for row in rows(paths[-1]) if row["split"] == "far"]
    assert sum(int(row["id_detections"]) for row in found) == 5000
    assert sum(int(row["ood_detections"]) for row in found) == 400
    assert {row["threshold"] for row in found} == {"0.5"}


def test_a_split_without_scores_is_named_and_has_no_panel(tmp_path: Path) -> None:
    scores = {"far": (IDS, IDS), "near $x": (IDS, np.empty(0))}
    paths = score_histograms(scores, {"far": 0.5, "near $x": None}, "energy", tmp_path / "h")
    drawn = " ".join(re.findall("<!-- (.*?) -->", paths[1].read_text()))
    assert "no ID or no OOD detections: near $x)" in drawn
    assert {line.partition(",")[0] for line in paths[2].read_text().splitlines()[1:]} == {"far"}


def test_equal_scores_can_be_drawn(tmp_path: Path) -> None:
    paths = score_histograms({"s": (np.ones(3), np.ones(2))}, {"s": 99.0}, "msp", tmp_path / "h")
    assert sum(int(row["id_detections"]) for row in rows(paths[-1])) == 3
