"""Images by class, in the order of the protocols."""

import json
from pathlib import Path

import numpy as np

from curation.benchmarks.imagenet import ClassImages
from curation.sources.imagenet import read_imagenet


def test_files_stand_in_code_point_order_whatever_the_order_of_the_list(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    names = {
        "n00000002": ["n00000002_2.JPEG", "n00000002_100.JPEG", "n00000002_1.JPEG", "n00000002_10.JPEG"],
        "n00000001": ["n00000001_7.JPEG"],
    }
    path.write_text(json.dumps(names))
    images = ClassImages(read_imagenet(path, part="train"))
    found = images.source.images.native[images.of("n00000002")].tolist()
    assert found == ["n00000002_1", "n00000002_10", "n00000002_100", "n00000002_2"]
    asked = ["n00000001", "n00000003", "n00000002"]
    positions = images.of_all(asked)
    assert images.sizes(asked).tolist() == [1, 0, 4]
    assert sorted(positions.tolist()) == list(range(5))
    assert images.missing(["n00000001", "n00000003"]) == ["n00000003"]
    assert images.of_all([]).dtype == np.int64
