"""How far a review is: by batch, by reviewer, and how far reviewers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from curation.decisions.agreement import Kappa, Pair, agreement
from curation.review.verdicts import CONFLICT, VERDICTS, Key, Standing, word_of


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One batch: its images, how many have a verdict, and on how many reviewers differ."""

    batch: str
    images: int
    decided: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """One reviewer: images with a standing verdict, and their number by verdict."""

    reviewer: str
    images: int
    verdicts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole review.

    Attributes
    ----------
    images, decided, conflicts : int
        Under review; with a verdict of anybody; on which reviewers differ.
    verdicts : dict of str to int
        Decided images by verdict, ``conflict`` among them.
    batches, reviewers : tuple
    agreement : tuple of Pair
        Each pair of reviewers with Cohen's kappa; None as its value comes with the reason.
    fleiss : Kappa or None
        Fleiss' kappa of all reviewers; None for fewer than three.
    strangers : int
        Decided images that are not under review.
    """

    images: int
    decided: int
    conflicts: int
    verdicts: dict[str, int]
    batches: tuple[BatchProgress, ...]
    reviewers: tuple[ReviewerProgress, ...]
    agreement: tuple[Pair, ...]
    fleiss: Kappa | None = None
    strangers: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return the progress as plain data for ``--json``."""
        return asdict(self)


def measure_progress(batch_of: Mapping[Key, str], standing: Mapping[Key, Standing]) -> Progress:
    """Return the progress of a review.

    Parameters
    ----------
    batch_of : mapping
        Batch of every image under review.
    standing : mapping
        What stands on images; those that are not under review are counted as `strangers`.
    """
    known = {key: one for key, one in standing.items() if key in batch_of and one.verdicts}
    verdict_of = {key: one.verdict for key, one in known.items()}
    sizes = Counter(batch_of.values())
    decided = Counter(batch_of[key] for key in known)
    conflicts = Counter(batch_of[key] for key, verdict in verdict_of.items() if verdict == CONFLICT)
    found = agreement(decision for one in known.values() for decision in one.verdicts)
    verdicts = Counter(str(verdict) for verdict in verdict_of.values())
    return Progress(
        images=len(batch_of),
        decided=len(known),
        conflicts=sum(conflicts.values()),
        verdicts={word: verdicts[word] for word in (*VERDICTS, CONFLICT) if verdicts[word]},
        batches=tuple(BatchProgress(one, sizes[one], decided[one], conflicts[one]) for one in sorted(sizes)),
        reviewers=_reviewers(known),
        agreement=found[0].pairs if found else (),
        fleiss=found[0].fleiss if found else None,
        strangers=sum(bool(one.verdicts) for key, one in standing.items() if key not in batch_of),
    )


def next_batch(
    batch_of: Mapping[Key, str], standing: Mapping[Key, Standing], *, reviewer: str = "", after: str = ""
) -> str | None:
    """Return the first batch, behind `after` and then from the start, with an image that still waits; None for none.

    Parameters
    ----------
    reviewer : str
        Whose verdict an image waits for; ``""`` for anybody's.
    """
    waiting = {
        batch
        for key, batch in batch_of.items()
        if not any(
            not reviewer or one.reviewer == reviewer for one in standing.get(key, Standing(())).verdicts
        )
    }
    return min(waiting, key=lambda batch: (batch <= after, batch), default=None)


def _reviewers(standing: Mapping[Key, Standing]) -> tuple[ReviewerProgress, ...]:
    words: dict[str, Counter[str]] = {}
    for one in standing.values():
        for decision in one.verdicts:
            words.setdefault(decision.reviewer, Counter())[word_of(decision)] += 1
    return tuple(
        ReviewerProgress(
            name, words[name].total(), {word: words[name][word] for word in VERDICTS if words[name][word]}
        )
        for name in sorted(words)
    )
