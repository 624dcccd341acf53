"""The one rule by which references name images: matched, refused, or a stray; never another image."""

import random
from typing import Any

import numpy as np
import pytest

from curation.sources.identity import AMBIGUOUS, STRAY, ImageIndex
from tests.worlds.image_references import NUMBERS, forms, world

FILES = ["val/0001.jpg", "val/0002.png", "train/0002.jpg", "train/deep/0003.jpg", "b_0.9994893"]
NUMBERED = ImageIndex(np.array([3, 1, 2, 9, 8]), FILES)
TEXTS = ImageIndex(["1", "0001", "k", "2", "v"], FILES)


def index_of(files: list[str], ids: list[Any]) -> ImageIndex:
    return ImageIndex(np.array(ids, np.int64) if isinstance(ids[0], int) else ids, files)


def test_no_reference_by_name_means_another_image() -> None:
    right = refused = 0
    for number in range(500):
        rng = random.Random(f"rule {number}")
        drawn = world(rng)
        index = index_of(drawn.files, drawn.ids)
        for form, references in forms(drawn):
            rows = [row for row in range(len(references)) if rng.random() < 0.8] or [0]
            ids, names = (
                [references[row][key] for row in rows] if key in references[0] else None
                for key in ("image_id", "file_name")
            )
            resolved = index.resolve(ids, names)
            matched = np.flatnonzero(resolved.position >= 0)
            meant = resolved.position[matched].tolist() == [rows[row] for row in matched.tolist()]
            whole = len(matched) == len(rows)
            right, refused = right + (whole and meant), refused + (not whole)
            assert meant or form in NUMBERS or not whole, (number, form)
            if form in ("ids", "paths", "named paths", "ids and paths") and meant:
                assert AMBIGUOUS in resolved.position or whole, (number, form)
    assert right > 6 * refused / 4 > 1000


@pytest.mark.parametrize(
    ("index", "ids", "names", "positions"),
    [
        (NUMBERED, [1, 2, 7], None, [1, 2, STRAY]),
        (NUMBERED, ["1", "2"], None, [1, 2]),
        (NUMBERED, ["0001", "b_0.9994893"], None, [0, 4]),
        (NUMBERED, ["0002"], None, [AMBIGUOUS]),
        (NUMBERED, None, ["0002.png", "0002.jpg"], [1, 2]),
        (NUMBERED, None, ["0001.png"], [STRAY]),
        (NUMBERED, None, ["0001", "other/0001"], [0, STRAY]),
        (NUMBERED, None, ["/data/val/0001.jpg", "/data/train/deep/0003.jpg"], [0, 3]),
        (NUMBERED, None, ["deep\\0003.jpg"], [3]),
        (NUMBERED, None, ["test/0001.jpg"], [STRAY]),
        (NUMBERED, [1, 1], ["0001.jpg", "0003.jpg"], [0, 3]),
        (NUMBERED, [3, 2], ["0001.jpg", "0002"], [0, 2]),
        (NUMBERED, None, ["9"], [STRAY]),
        (NUMBERED, None, ["", "val//./0001.jpg"], [STRAY, 0]),
        (TEXTS, [1, 2, 12], None, [0, AMBIGUOUS, STRAY]),
        (TEXTS, ["k", "v"], None, [2, 4]),
        (TEXTS, ["0001"], None, [AMBIGUOUS]),
    ],
)
def test_references(index: ImageIndex, ids: list[Any] | None, names: list[str] | None, positions: list[int]) -> None:
    assert index.resolve(ids, names).position.tolist() == positions


def test_both_candidates_are_named() -> None:
    resolved = NUMBERED.resolve(None, ["0002"])
    assert NUMBERED.describe(resolved.candidates[0]) == "1 (val/0002.png) or 2 (train/0002.jpg)"


def test_a_composed_and_a_decomposed_accent_are_one_name() -> None:
    index = ImageIndex(np.array([1]), ["caf\N{LATIN SMALL LETTER E WITH ACUTE}.jpg"])
    assert index.resolve(None, ["cafe\N{COMBINING ACUTE ACCENT}.jpg"]).position.tolist() == [0]


LISTED = ["coco:000000000139", "coco:000000000012", "voc2007:000012", "voc2012:2008_000008"]


def test_numbers_of_joined_sources_are_resolved_for_each_source() -> None:
    """An export of several sources counts images from 1; a detector may have run on each source before."""
    index = ImageIndex(np.array([1, 2, 3, 4]), ["a.jpg", "b.jpg", "c.jpg", "d.jpg"], LISTED)
    assert index.resolve([1, 4, 2]).position.tolist() == [0, 3, 1]
    assert index.resolve([139, 2008000008]).position.tolist() == [0, 3]
    assert index.resolve(["000000000139", "2008_000008", "voc2007:000012"]).position.tolist() == [0, 3, 2]
    shared = index.resolve([139, 12])
    assert shared.position.tolist() == [0, AMBIGUOUS]
    assert shared.candidates == {1: (1, 2)}


def test_a_column_of_two_numberings_is_ambiguous() -> None:
    """1 is a number of the export, 500 of a source, 2 of both: nothing says whose it is."""
    listed = ["coco:000000000002", "coco:000000000500", "coco:000000000600"]
    index = ImageIndex(np.array([1, 2, 3]), ["a.jpg", "b.jpg", "c.jpg"], listed)
    assert index.resolve([1, 2, 500]).position.tolist() == [0, AMBIGUOUS, STRAY]
    assert index.resolve([1, 600, 500]).position.tolist() == [STRAY, 2, 1]


def test_other_readings_mean_other_images() -> None:
    index = ImageIndex(np.array([2, 1]), ["0001.jpg", "0002.jpg"])
    readings = {name: first.tolist() for name, first, _ in index.other_readings(np.array([1, 1]))}
    assert readings == {"stem_number": [0, 0], "index0": [1, 1], "index1": [0, 0]}
    assert not list(index.other_readings(["1", "a"]))
