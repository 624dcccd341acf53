"""Fixtures that several test folders share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is slow, not wrong; and the same examples on every run, so that a failure can be met again.
settings.register_profile(
    "curation", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("curation")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real annotation files and golden results; the test skips where it is absent."""
    named = os.environ.get("CURATION_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(
            "real annotation files are absent: set CURATION_SHARED to the folder that holds data/ and golden/"
        )
    return folder
