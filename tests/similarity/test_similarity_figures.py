"""Histograms and galleries are written, and their tables say what they show."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from curation.similarity.similarity_figures import pair_gallery, similarity_histograms


def test_histograms(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.3, 0.9, 500).astype(np.float32)
    written = similarity_histograms({"COCO": {"near": values, "none": values[:0]}}, tmp_path / "h", bins=20)
    assert [path.suffix for path in written] == [".png", ".svg", ".csv"]
    with written[2].open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["set"] == "near"]
    area = sum((float(row["to"]) - float(row["from"])) * float(row["density"]) for row in rows)
    assert area == pytest.approx(1)
    assert float(rows[-1]["to"]) >= float(values.max())


def test_gallery_shows_what_can_be_read(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), "red").save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"broken")
    pairs = [("coco:1", tmp_path / "a.png", "voc:1", tmp_path / "b.png", 0.75)]
    written = pair_gallery(pairs, tmp_path / "g", title="Nearest pairs")
    assert written[2].read_text() == "id,nearest,similarity\ncoco:1,voc:1,0.75\n"
