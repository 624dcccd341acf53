"""WordNet bars: a case by hand, and a published bar from the list that is at hand."""

import json
from pathlib import Path

import pytest

from curation.benchmarks.findmeifyoucan.rules import category_counts, start_by_rule
from curation.errors import HierarchyError, UsageError
from curation.hierarchy.word_kinship import word_bar
from curation.sources.opening import open_source
from tests.real_files import real_files

RULE = ("person", "bicycle", "car", "motorcycle", "bus", "train", "truck", "traffic light", "stop sign")
BDD = [
    "pedestrian",
    "rider",
    "car",
    "truck",
    "bus",
    "train",
    "motorcycle",
    "bicycle",
    "traffic light",
    "traffic sign",
]
"""The ten classes of BDD100k's detection task by their own names."""


def test_by_hand(wordnet_folder: Path) -> None:
    bar = word_bar(
        wordnet_folder, ["dog", "dining table"], {"wolf": 2, "cat": 5, "zzyzx": 1, "unused": 0}, "path"
    )
    # dog-wolf 1/3, dog-cat 1/5; the words of "dining table" stand apart.
    assert bar.id_words == ("dog", "dining", "table")
    assert bar.ood_words == ("cat", "wolf", "zzyzx")
    assert bar.missing == ("zzyzx",)
    alone = word_bar(wordnet_folder, ["dog"], {"wolf": 2, "cat": 5}, "path")
    assert alone.mean == pytest.approx(1 / 3)
    assert alone.std == 0
    assert word_bar(wordnet_folder, ["dog"], {"wolf": 2, "cat": 5}, "path", top=1).mean == pytest.approx(
        1 / 5
    )


def test_what_is_refused(wordnet_folder: Path) -> None:
    with pytest.raises(HierarchyError, match="No word"):
        word_bar(wordnet_folder, ["zzyzx"], {"dog": 1})
    with pytest.raises(UsageError, match="measure"):
        word_bar(wordnet_folder, ["dog"], {"cat": 1}, "lch")  # type: ignore[arg-type]


@real_files("coco")
def check_the_published_bar_of_coco_farther(shared: Path, wordnet_folder: Path) -> None:
    """From the 1,914 images of the rule: the published list has 1,873 of them, and the same bar."""
    bars = json.loads((shared / "golden/findmeifyoucan/wordnet_published_bars.json").read_text())["values"]
    path = shared / "data/coco/instances_val2017_rebuilt.json"
    source = open_source(path, dataset="coco", part="val2017", cache=False)
    counts = category_counts(source, start_by_rule(source, RULE))
    for measure in ("wup", "path"):
        bar = word_bar(wordnet_folder, BDD, counts, measure)  # type: ignore[arg-type]
        published = bars[measure]["coco_farther"]
        assert bar.mean == pytest.approx(published["mean"], abs=1e-4)
        assert bar.std == pytest.approx(published["std"], abs=1e-4)
