"""One process that forks commands, and one world of inputs, for all tests of a worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.forks import Forks
from tests.torture.world import write_world
from tests.unpainted import unpainted


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch, unpainted():
        patch.setenv("CURATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        write_world(folder := tmp_path_factory.mktemp("in"))
    return folder
