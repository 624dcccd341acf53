"""Samples by hash rank, and the exact bound of remaining errors among unseen images: when a review may stop."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import msgspec

from curation.core.errors import UsageError
from curation.core.tables import grouped
from curation.core.wording import counted
from curation.review.decisions.decision import IN_DISTRIBUTION, Decision

SAMPLE_SALT, OVERLAP_SALT = "review sample ", "review overlap "
"""Prefixes of hashed ids, which make the drawn sample and the shared images independent of each other."""
Order = Literal["evidence", "random", "stratified"]
_HALVINGS = 60


class Stratum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Images from which some were drawn.

    Attributes
    ----------
    name : str
        Common property of these images.
    images : int
        Number of images.
    drawn : tuple of str
        Ids of the drawn images, in hash rank.
    """

    name: str
    images: int
    drawn: tuple[str, ...]


def by_hash_rank(ids: Iterable[str], salt: str) -> list[str]:
    """Return ids in the order of ``sha256(salt + id)``: the first n are a random sample without a seed."""
    return sorted(ids, key=lambda image: sha256((salt + image).encode()).digest())


def draw_sample(strata: Mapping[str, Collection[str]], size: int) -> tuple[Stratum, ...]:
    """Return some images of every stratum, as many as its share of all images, and one at least.

    Parameters
    ----------
    strata : mapping of str to collection of str
        Ids by the name of their stratum.
    size : int
        Images to draw in all.

    Raises
    ------
    UsageError
        There are fewer images, or more strata than images to draw.

    Examples
    --------
    >>> drawn = draw_sample({"near?": ["a:1", "a:2"], "none": [f"b:{n}" for n in range(8)]}, 5)
    >>> [(stratum.name, stratum.images, len(stratum.drawn)) for stratum in drawn]
    [('near?', 2, 1), ('none', 8, 4)]
    """
    sizes = {name: len(ids) for name, ids in strata.items() if ids}
    total = sum(sizes.values())
    if not len(sizes) <= size <= total or not sizes:
        expected = f"from {len(sizes)}, one of each stratum, to {total:,}" if sizes else "an image without a proposal"
        hint = "" if sizes else "--order random draws from all images"
        raise UsageError(
            "The sample has the wrong size", where="--set sample=N", expected=expected, found=str(size), hint=hint
        )
    shares = {name: max(1, size * images // total) for name, images in sizes.items()}
    # The rest goes to the largest remainders; the largest strata give up what the minimum of 1 image added.
    for name in sorted(sizes, key=lambda name: (-(size * sizes[name] % total), name)):
        if sum(shares.values()) < size and shares[name] < sizes[name]:
            shares[name] += 1
    while sum(shares.values()) > size:
        shares[max(shares, key=lambda name: (shares[name], name))] -= 1
    return tuple(
        Stratum(name=name, images=images, drawn=tuple(by_hash_rank(strata[name], SAMPLE_SALT)[: shares[name]]))
        for name, images in sizes.items()
    )


def assigned_reviewers(batch: Sequence[str], reviewers: Sequence[str], overlap: float) -> list[tuple[str, ...]]:
    """Return the reviewers of each image of a batch: all reviewers for some images, one reviewer for each other.

    Parameters
    ----------
    batch : sequence of str
        Ids.
    reviewers : sequence of str
        Names.
    overlap : float
        Share of the batch that all reviewers judge, by hash rank; rounded up.

    Examples
    --------
    >>> assigned_reviewers(["a:1", "a:2", "a:3", "a:4"], ["anna", "ben"], 0.5)
    [('anna',), ('anna', 'ben'), ('ben',), ('anna', 'ben')]
    """
    names = sorted(reviewers)
    rank_of = {image: rank for rank, image in enumerate(by_hash_rank(batch, OVERLAP_SALT))}
    shared = math.ceil(round(overlap * len(batch), 9))
    return [tuple(names) if rank_of[image] < shared else (names[rank_of[image] % len(names)],) for image in batch]


def exact_bound(positives: int, judged: int, confidence: float = 0.95) -> float:
    """Return the one-sided upper bound of a share by Clopper and Pearson (1934).

    Examples
    --------
    >>> round(exact_bound(0, 300), 5)
    0.00994
    """
    if not 0 <= positives <= judged or not judged:
        raise ValueError(f"{positives} of {judged}")
    if positives == judged:
        return 1.0
    log_choose = [
        math.lgamma(judged + 1) - math.lgamma(k + 1) - math.lgamma(judged - k + 1) for k in range(positives + 1)
    ]
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        log_share, log_rest = math.log(share), math.log1p(-share)
        tail = math.fsum(
            math.exp(choose + k * log_share + (judged - k) * log_rest) for k, choose in enumerate(log_choose)
        )
        low, high = (share, high) if tail > 1 - confidence else (low, share)
    return high


def exact_interval(positives: int, judged: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided interval of a share by Clopper and Pearson (1934)."""
    each = (1 + confidence) / 2
    return 1 - exact_bound(judged - positives, judged, each), exact_bound(positives, judged, each)


@dataclass(frozen=True, slots=True)
class Remainder:
    """The bound that a sample gives for all images that it was drawn from.

    Attributes
    ----------
    images, drawn, judged : int
        Numbers of images: in all, drawn, and drawn with a decision.
    positives : int
        Drawn images that a decision removes, and unsure ones, which might be removed.
    share : float or None
        At most this share of `images` would be removed (95 %); None if undefined, for the stated `reason`.
    unseen : int
        Images that were not drawn.
    at_most : int or None
        Maximum number of unseen images that would be removed.
    """

    images: int
    drawn: int
    judged: int
    positives: int
    share: float | None
    unseen: int
    at_most: int | None
    reason: str = ""

    def text(self) -> str:
        """Return the bound, or why it is undefined, as text."""
        begin = f"{self.drawn:,} of {self.images:,} images were drawn by hash rank"
        if self.share is None or self.at_most is None:
            return f"{begin}; what remains is undefined: {self.reason}."
        percent = math.ceil(self.share * 10_000) / 100
        return (
            f"{begin} and judged; {self.positives:,} of them are in-distribution, unfit or unsure. At most "
            f"{percent:.2f} % of all images are (95 %, Clopper-Pearson): at most {self.at_most:,} of the "
            f"{self.unseen:,} unseen."
        )


def remainder(strata: Sequence[Stratum], standing: Iterable[Decision]) -> Remainder | None:
    """Return the bound of remaining errors among the images that were not drawn; None without a sample.

    The bound of a share holds for images drawn without replacement too. With several strata each has an error
    probability of 5 % divided by their number, so that all bounds hold together.

    Parameters
    ----------
    standing : iterable of Decision
        The current decisions; if they differ on an image, one that removes it counts.
    """
    if not strata:
        return None
    actions = {
        image: {row.action for row in rows} for image, rows in grouped(standing, lambda row: row.image_id).items()
    }
    images, drawn, judged, positives = sum(stratum.images for stratum in strata), 0, 0, 0
    expected = at_most = 0.0
    doubtful = {*IN_DISTRIBUTION, "unsure"}
    for stratum in strata:
        on_drawn = [actions[image] for image in stratum.drawn if image in actions]
        removed = sum(bool(doubtful & votes) for votes in on_drawn)
        drawn, judged, positives = drawn + len(stratum.drawn), judged + len(on_drawn), positives + removed
        if len(on_drawn) == len(stratum.drawn):
            bound = exact_bound(removed, len(on_drawn), 1 - 0.05 / len(strata)) * stratum.images
            expected += bound
            at_most += min(math.floor(bound) - removed, stratum.images - len(stratum.drawn))
    unseen = images - drawn
    if judged < drawn:
        reason = f"{counted(drawn - judged, 'drawn image')} of {drawn:,} have no decision yet"
        return Remainder(images, drawn, judged, positives, None, unseen, None, reason)
    return Remainder(images, drawn, judged, positives, expected / images, unseen, int(at_most))
