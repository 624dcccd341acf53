"""One process that forks commands, for all tests of a worker."""

from collections.abc import Iterator

import pytest

from tests.torture.forks import Forks


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(tmp_path_factory.mktemp("forks")) as made:
        yield made
