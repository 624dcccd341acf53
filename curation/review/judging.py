"""The one way to judge: what a key, a button, a form or the panel asks for, by whom, and what it is answered.

A key asks by one request of its own to the server of the review (`curation.review.guard`), since FiftyOne's way to call
an operator loads the dataset anew each time; buttons, forms and the panel are operators (`curation.review.plugin`). All
end in `judged`: the log first, then the database, then the answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from curation.errors import CurationError, ReviewError
from curation.review.live_review import open_review
from curation.review.verdicts import UNDO

REVIEWER_VARIABLE = "CURATION_REVIEWER"
"""Holds who reviews, for the life of a server: every way to judge reads it, and no request changes it."""


def reviewer_here(asked: Mapping[str, Any] | None = None) -> str:
    """Return who reviews: ``curation review start --reviewer``, fixed while the server runs.

    Parameters
    ----------
    asked : mapping, optional
        A request.

    Raises
    ------
    ReviewError
        The request names somebody else.
    """
    reviewer = os.environ.get(REVIEWER_VARIABLE, "")
    named = asked.get("reviewer") if asked is not None else None
    if named and named != reviewer:
        raise ReviewError(
            "The reviewer is fixed when the server starts",
            found=ascii(named)[:80],
            expected=reviewer or "curation review start --reviewer NAME",
            hint="each reviewer starts a server of their own, on the same folder and database",
        )
    return reviewer


def judged(dataset: Any, asked: Mapping[str, Any], samples: Any, verdict: Any, *, reason: Any = None) -> dict[str, Any]:
    """Give a verdict on samples, or take the last one back: to the log, then to the database; the answer, not shown.

    Parameters
    ----------
    asked : mapping
        The request, which may name no other reviewer.

    Returns
    -------
    dict
        ``images`` and ``message``; ``ids`` of the samples concerned and ``waiting``, those that have no verdict of the
        reviewer now; ``told``, count, rate and time left.

    Raises
    ------
    CurationError, OSError
        Nothing was recorded, or the database missed it: the message says which.
    """
    reviewer = reviewer_here(asked)
    review = open_review(dataset)
    if verdict == UNDO:
        done = review.undo(reviewer)
    else:
        done = review.decide(samples, str(verdict), reason=reason, reviewer=reviewer)
    return {
        "images": done.images,
        "message": done.text,
        "ids": list(done.samples),
        "waiting": list(done.waiting),
        "told": review.progress_text(reviewer),
    }


def answered(dataset: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a key is answered: `judged`, or why nothing was done.

    Parameters
    ----------
    asked : mapping
        ``ids`` of samples, ``verdict`` (``undo`` takes the last one back), and ``reason`` where there is one.
    """
    try:
        return judged(dataset, asked, asked.get("ids"), asked.get("verdict"), reason=asked.get("reason"))
    except (CurationError, OSError) as error:
        return refused(error)


def refused(error: CurationError | OSError) -> dict[str, Any]:
    """Return what is answered where nothing was done."""
    if isinstance(error, OSError):
        error = ReviewError(
            "Nothing was recorded: the log cannot be written",
            found=error.strerror or type(error).__name__,
            hint="make room on the disk, then press the key again",
        )
    text = error.what + (f". {error.hint[:1].upper()}{error.hint[1:]}" if error.hint else "")
    return {"images": 0, "message": text, **error.as_dict()}
