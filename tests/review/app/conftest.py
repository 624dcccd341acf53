"""Small reviews in the session's database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.review.app.live_review import LiveReview
from curation.review.app.session import start_review
from tests.review.app.review_world import ReviewWorld, write_world


@pytest.fixture
def world(tmp_path: Path) -> ReviewWorld:
    return write_world(tmp_path / "world")


@pytest.fixture
def review(fiftyone: Any, world: ReviewWorld, tmp_path: Path) -> Iterator[LiveReview]:
    """A review of the twelve photos in batches of five, five of them proposed."""
    started = start_review(tmp_path / "review", f"review-{tmp_path.name}", world.images())
    yield started.review
    fiftyone.delete_dataset(started.record.dataset)
