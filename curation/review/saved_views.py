"""Saved views: what the App's view menu offers, one a reason and one a batch, and what is still open."""

from __future__ import annotations

from collections import Counter
from typing import Any

from curation.review.images import ReviewImages
from curation.review.verdicts import CONFLICT

OPEN_VIEW, CONFLICT_VIEW = "to decide", "conflicts"
MOST_BATCH_VIEWS, MOST_REASON_VIEWS = 100, 50


def save_views(fiftyone: Any, dataset: Any, images: ReviewImages) -> None:
    """Save a view for what is open, for conflicts, for each reason and for each batch.

    Beyond 50 reasons (the most frequent are taken) and 100 batches the menu could not be read; the operator *Next
    batch* reaches every batch.
    """
    field = fiftyone.ViewField
    dataset.save_view(OPEN_VIEW, dataset.match(field("verdict") == None), description="no verdict yet")  # noqa: E711
    dataset.save_view(
        CONFLICT_VIEW, dataset.match(field("verdict") == CONFLICT), description="reviewers differ"
    )
    counts = Counter(one.reason for one in images.proposals if one is not None and one.reason)
    frequent = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_REASON_VIEWS]
    names: set[str] = set()
    for reason, count in frequent:
        name = _free(fiftyone, reason[:90], names)
        view = dataset.match(field("reason") == reason)
        dataset.save_view(name, view, description=f"{count} images proposed: {reason}"[:200])
    for batch, count in sorted(Counter(images.batches).items())[:MOST_BATCH_VIEWS]:
        view = dataset.match(field("batch") == batch)
        dataset.save_view(batch_view(batch), view, description=f"{count} images")


def batch_view(batch: str) -> str:
    """Return the name of the saved view of a batch."""
    return f"batch {batch}"


def _free(fiftyone: Any, name: str, taken: set[str]) -> str:
    """Return the name, numbered where the App's short form of it is taken already."""
    number, free = 1, name
    while (short := fiftyone.core.utils.to_slug(free)) in taken:
        number += 1
        free = f"{name} ({number})"
    taken.add(short)
    return free
