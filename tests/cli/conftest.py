"""Every command of these tests is held against what its verb announced to write (see `curation.cli.outputs`)."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest

from curation.cli import outputs
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


@pytest.fixture(autouse=True)
def _announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each command, fail where a folder got a file that was not looked for before the work began."""
    original = outputs.guarded

    @contextmanager
    def observed(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[None]:
        given = list(outputs.outputs_of(parser, options))
        before = {path: _names(path) for _, path in given}
        with original(parser, options):
            yield
        for kind, path in given:
            if kind.patterns:
                surprises = {
                    name
                    for name in _names(path) - before[path]
                    if not any(fnmatch(name, one) for one in kind.patterns())
                }
                assert not surprises

    monkeypatch.setattr(outputs, "guarded", observed)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
