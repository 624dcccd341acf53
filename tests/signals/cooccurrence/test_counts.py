"""Pairs are counted once an image."""

from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import CutError
from curation.signals.cooccurrence.graph import count_cooccurrence
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.real_files import real_files


def source_of(folder: Path, rows: str) -> Source:
    path = folder / "table.csv"
    path.write_text("image,class\n" + rows, encoding="utf-8")
    return open_path(path, dataset="shapes", part="")


def test_an_image_counts_once_a_pair(tmp_path: Path) -> None:
    source = source_of(tmp_path, "1,stop\n1,stop\n1,yield\n1,yield\n2,yield\n2,stop\n3,stop\n4,tree\n")
    counts = count_cooccurrence(source)
    assert counts.names == ("stop", "tree", "yield")
    assert counts.images.tolist() == [3, 1, 2]
    assert counts.pairs.tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]
    assert counts.total == 4


def test_some_classes_alone(tmp_path: Path) -> None:
    source = source_of(tmp_path, "1,a\n1,b\n1,c\n2,a\n2,c\n")
    counts = count_cooccurrence(source, ["c", "a"])
    assert counts.names == ("a", "c")
    assert counts.pairs.tolist() == [[0, 2], [2, 0]]
    with pytest.raises(CutError, match="no such class"):
        count_cooccurrence(source, ["a", "z"])
    with pytest.raises(CutError, match="named twice"):
        count_cooccurrence(source, ["a", "a"])


@pytest.mark.parametrize("at_once", [1, 7, 1 << 21])
@pytest.mark.parametrize("classes", [4, 60])
def test_blocks_count_what_a_product_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, classes: int
) -> None:
    monkeypatch.setattr("curation.signals.cooccurrence.graph._KEYS_AT_ONCE", at_once)
    shown = (np.random.default_rng(classes).random((40, classes)) < 3 / classes).astype(np.int64)
    rows = [f"{image},c{number:02}\n" for image, number in np.argwhere(shown).tolist()]
    counts = count_cooccurrence(source_of(tmp_path, "".join(rows)))
    named = [int(name[1:]) for name in counts.names]
    expected = (shown.T @ shown)[np.ix_(named, named)]
    assert (np.diagonal(expected) == counts.images).all()
    np.fill_diagonal(expected, 0)
    assert expected.any()
    assert (expected == counts.pairs).all()


@real_files("coco")
def check_the_real_validation_set(shared: Path) -> None:
    source = open_path(shared / "data/coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017")
    counts = count_cooccurrence(source)
    place = {name: number for number, name in enumerate(counts.names)}
    shown = np.zeros((len(source.images), len(place)), np.int64)
    for image, category in zip(*source.class_pairs(), strict=True):
        shown[image, place[source.categories.names[category]]] = 1
    expected = shown.T @ shown
    assert (np.diagonal(expected) == counts.images).all()
    np.fill_diagonal(expected, 0)
    assert (expected == counts.pairs).all()
