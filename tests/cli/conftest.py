"""A cache and a small pair of datasets for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.small_world import SmallWorld, write_small_world


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache for the tests of a module alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CURATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    """A small pair of datasets; none of the tests changes it."""
    return write_small_world(tmp_path_factory.mktemp("world"))
