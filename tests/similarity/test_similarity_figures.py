"""Histograms are written, and their table says what they show."""

import csv
from pathlib import Path

import numpy as np
import pytest

from curation.similarity.set_similarity import similarity_histograms


def test_histograms(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.3, 0.9, 500).astype(np.float32)
    written = similarity_histograms({"COCO": {"near": values, "none": values[:0]}}, tmp_path / "h", bins=20)
    assert [path.suffix for path in written] == [".png", ".svg", ".csv"]
    with written[2].open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["set"] == "near"]
    area = sum((float(row["to"]) - float(row["from"])) * float(row["density"]) for row in rows)
    assert area == pytest.approx(1)
    assert float(rows[-1]["to"]) >= float(values.max())
