"""Groups of classes by image, against a plain loop."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import UsageError
from curation.sources.openimages import read_openimages
from curation.sources.presence_masks import presence_masks
from curation.sources.source import Source
from tests.sources.openimages_files import write_openimages


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return read_openimages(write_openimages(tmp_path_factory.mktemp("oi")), "train")


@given(st.lists(st.lists(st.integers(0, 2)), max_size=64))
def test_a_bit_says_that_an_image_shows_a_class_of_the_group(source: Source, groups: list[list[int]]) -> None:
    masks = presence_masks(source, groups)
    assert masks.dtype == np.uint64
    image, category = source.class_pairs()
    shown = [set(category[image == place].tolist()) for place in range(len(source.images))]
    assert masks.tolist() == [
        sum(1 << number for number, group in enumerate(groups) if classes & set(group)) for classes in shown
    ]


def test_more_groups_than_bits_or_strange_classes_are_refused(source: Source) -> None:
    with pytest.raises(UsageError, match="too many"):
        presence_masks(source, [[0]] * 65)
    for strange in ([3], [-1]):
        with pytest.raises(UsageError, match="lacks"):
            presence_masks(source, [strange])


def test_a_source_of_presence_alone_has_masks_too(tmp_path: Path) -> None:
    from curation.sources.opening import open_source

    (tmp_path / "table.csv").write_text("image,class\na,dog\na,cat\nb,\n")
    source = open_source(tmp_path / "table.csv", dataset="mine", part="", cache=False)
    cat, dog = source.categories.names.index("cat"), source.categories.names.index("dog")
    assert presence_masks(source, [[cat], [dog]]).tolist() == [3, 0]
