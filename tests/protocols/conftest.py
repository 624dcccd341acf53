"""Sources drawn in memory, for protocols: which image shows which classes."""

import pytest

from tests.protocols.drawn_source import Draw, drawn_source


@pytest.fixture(scope="session")
def draw() -> Draw:
    """Return ``draw(dataset, part, {number: [class, …]}, names=…, flagged=…, presence=…)``."""
    return drawn_source
