"""The selection rule against a plain reading of annotations; validation and exemplars by their properties."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.parts import show_classes
from curation.benchmarks.rules.task_lists import exemplars, hash_ranks, hash_validation, listed_validation
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry
from curation.sources.source import Source
from tests import made_source
from tests.made_source import image_rows

NAMES = ("cat", "dog", "cow", "kite")
CLASSES = tuple(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(NAMES))


def make_source(n_images: int, rows: list[tuple[int, int, bool]]) -> Source:
    """Return a source of rows (image, class, crowd); categories stand in another order than the classes."""
    natives = [f"{1000 - image:012d}" for image in range(n_images)]
    return made_source.make_source(
        "coco",
        "coco",
        image_rows(natives, numbers=[int(native) for native in natives]),
        [(image, NAMES[label], [1, 1, 1, 1], {"crowd": crowd}) for image, label, crowd in rows],
        {number: NAMES[place] for number, place in enumerate((2, 0, 3, 1), 1)},
        part="train2017",
        file="a.json",
    )


def plain_selection(rows: list[tuple[int, int, bool]], labels: set[int], *, crowd: bool) -> list[int]:
    """The published scripts in words: a dict of annotations by image, filled in file order."""
    by_image: dict[int, list[tuple[int, bool]]] = {}
    for image, label, is_crowd in rows:
        by_image.setdefault(image, []).append((label, is_crowd))
    return [
        image
        for image, held in by_image.items()
        if any(label in labels and (crowd or not is_crowd) for label, is_crowd in held)
    ]


rows_of = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3), st.booleans()), max_size=40)


@given(rows_of, st.sets(st.integers(0, 3)), st.booleans())
def test_selection_is_that_of_the_scripts(rows: list[tuple[int, int, bool]], labels: set[int], crowd: bool) -> None:
    what = show_classes(make_source(12, rows), CLASSES, crowd=crowd)
    assert what.showing(sorted(labels)).tolist() == plain_selection(rows, labels, crowd=crowd)


def test_an_image_stands_where_its_first_annotation_of_any_class_does() -> None:
    rows = [(3, 3, False), (0, 0, False), (3, 0, False)]
    assert show_classes(make_source(5, rows), CLASSES).showing([0]).tolist() == [3, 0]


def test_a_crowd_region_alone_selects_and_an_empty_image_never() -> None:
    what = show_classes(make_source(3, [(1, 0, True)]), CLASSES)
    assert what.showing([0, 1, 2, 3]).tolist() == [1]
    assert show_classes(make_source(3, [(1, 0, True)]), CLASSES, crowd=False).showing([0]).tolist() == []


def many(seed: int, n: int = 200) -> list[tuple[int, int, bool]]:
    rng = random.Random(seed)
    return [(rng.randrange(n), min(rng.randrange(8), 3), rng.random() < 0.1) for _ in range(2 * n)]


@pytest.mark.parametrize("seed", range(5))
def test_validation_lists_are_inside_apart_and_independent_of_order(seed: int) -> None:
    rows = many(seed)
    source = make_source(200, rows)
    what = show_classes(source, CLASSES)
    selections = [what.showing([0]), what.showing([1, 2]), what.showing([3])]
    (rank,) = hash_ranks([what], "a")
    chosen = hash_validation(selections, rank, size=10)
    assert [len(one) for one in chosen] == [10, 10, 10]
    assert len(np.unique(np.concatenate(chosen))) == 30
    for one, selection in zip(chosen, selections, strict=True):
        assert np.isin(one, selection).all()
    backwards = hash_validation([one[::-1] for one in selections], rank, size=10)
    assert [one.tolist() for one in backwards] == [one.tolist() for one in chosen]


def test_too_few_images_for_validation() -> None:
    source = make_source(5, [(0, 0, False), (1, 0, False)])
    what = show_classes(source, CLASSES)
    with pytest.raises(ProtocolError, match="too few images") as caught:
        hash_validation([what.showing([0])], hash_ranks([what], "a")[0], size=3)
    assert "at most 2" in str(caught.value)


def test_published_segments() -> None:
    source = make_source(8, many(1, 8))
    listed = make_source(8, [])
    segments = listed_validation(listed, source, 4)
    assert [one.tolist() for one in segments] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ProtocolError, match="does not divide"):
        listed_validation(listed, source, 3)
    with pytest.raises(ProtocolError, match="does not belong"):
        listed_validation(make_source(12, []), source, 4)


@settings(max_examples=60)
@given(rows_of, st.integers(1, 6))
def test_exemplars_serve_every_class_as_far_as_the_images_go(rows: list[tuple[int, int, bool]], size: int) -> None:
    what = show_classes(make_source(12, rows), CLASSES)
    images = what.showing([0, 1, 2])
    ranks = hash_ranks([what], "x")
    (chosen,), held = exemplars([(what, images)], [0, 1, 2], ranks, size=size)
    assert set(chosen.tolist()) <= set(images.tolist())
    assert len(set(chosen.tolist())) == len(chosen)
    for label in (0, 1, 2):
        there = sum(label in {one for image, one, _ in rows if image == place} for place in images.tolist())
        got = sum(label in {one for image, one, _ in rows if image == place} for place in chosen.tolist())
        assert got >= min(size, there)
        assert held[label] == got
    # No image is superfluous for a reason other than its own class: each was taken for a class that lacked it.
    assert len(chosen) <= 3 * size


@settings(max_examples=60)
@given(rows_of, rows_of, st.integers(1, 6))
def test_exemplars_of_two_sources_are_those_of_both_together(
    rows: list[tuple[int, int, bool]], more: list[tuple[int, int, bool]], size: int
) -> None:
    joined = show_classes(make_source(24, [*rows, *((12 + image, *rest) for image, *rest in more)]), CLASSES)
    first, second = (
        show_classes(make_source(12, rows), CLASSES),
        show_classes(_later(make_source(24, []), more), CLASSES),
    )
    whats = [first, second]
    pools = [(what, what.order) for what in whats]
    labels = [0, 1, 2]
    chosen, held = exemplars(pools, labels, hash_ranks(whats, "x"), size=size)
    (together,), all_held = exemplars([(joined, joined.order)], labels, hash_ranks([joined], "x"), size=size)
    ids = {one for (what, _), mine in zip(pools, chosen, strict=True) for one in what.source.image_ids[mine].tolist()}
    assert ids == set(joined.source.image_ids[together].tolist())
    assert held == all_held


def _later(source: Source, rows: list[tuple[int, int, bool]]) -> Source:
    """Return a source of the images from the 12th on, with rows of their own."""
    other = make_source(12, rows)
    images = replace(other.images, native=source.images.native[12:], numbers=source.images.numbers[12:])
    return replace(other, images=images)
