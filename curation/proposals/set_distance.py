"""How far whole sets lie from the ID images: mean similarity with its standard error, and the order of WordNet.

The paper has an order (near, far, farther), not a cut: far of COCO lies nearer than near of Open Images. So a set is
called farther only beside other sets, or by a number that the user gives; otherwise it stays undecided (spec 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curation.errors import ProposalError
from curation.proposals.proposal import Group, SetProposal, Thresholds, Verdict, decimal_text

if TYPE_CHECKING:
    from curation.proposals.clip_overlap import Look


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Measured of one set.

    Attributes
    ----------
    pool : str
    group : {"near", "far", "all"}
    images : int
        With an embedding.
    mean, error : float or None
        Mean of s_j, and its standard error (sample deviation over the square root of the number); None where there are
        no, or fewer than two, images.
    kinship : float or None
        Mean over the categories annotated in the set of the Wu-Palmer similarity to the nearest ID class.
    encoder : str
    """

    pool: str
    group: Group
    images: int
    mean: float | None
    error: float | None
    kinship: float | None
    encoder: str = ""

    @property
    def name(self) -> str:
        """``POOL GROUP``."""
        return f"{self.pool} {self.group}"


def set_statistics(
    pool: str,
    group: Group,
    images: Collection[str],
    look: Look | None,
    kinships: Iterable[float],
) -> SetStatistics:
    """Return the statistics of some images of a pool.

    Parameters
    ----------
    images : collection of str
        Ids of the set.
    look : Look or None
        Of the pool; None without embeddings.
    kinships : iterable of float
        One for each category annotated in the set, in a fixed order.
    """
    held = set(images)
    near = (
        np.array(
            [s for one, s in zip(look.images, look.similarity.tolist(), strict=True) if one in held],
            np.float64,
        )
        if look is not None
        else np.empty(0)
    )
    kin = list(kinships)
    return SetStatistics(
        pool=pool,
        group=group,
        images=len(near),
        mean=float(near.mean()) if len(near) else None,
        error=float(near.std(ddof=1) / math.sqrt(len(near))) if len(near) > 1 else None,
        kinship=math.fsum(kin) / len(kin) if kin else None,
        encoder=look.encoder if look is not None else "",
    )


def statistics_of(proposal: SetProposal, where: str) -> SetStatistics:
    """Return the statistics that a proposals file states of a set, as far sets to compare with (``--compare``)."""

    def number(text: str | None) -> float | None:
        try:
            value = None if text is None else float(text)
        except ValueError:
            value = math.nan
        if value is not None and not -1 <= value <= 1:
            raise ProposalError(
                "A set's statistics are no decimal numbers in [-1, 1]", where=f"{where}: {proposal.name}"
            )
        return value

    return SetStatistics(
        pool=proposal.name.rpartition(" ")[0],
        group=proposal.group,
        images=proposal.images,
        mean=number(proposal.mean_similarity),
        error=number(proposal.standard_error),
        kinship=number(proposal.mean_kinship),
        encoder=proposal.encoder,
    )


def propose_sets(
    sets: Sequence[SetStatistics], others: Sequence[SetStatistics], thresholds: Thresholds
) -> tuple[SetProposal, ...]:
    """Return a proposal for every set: near, far, farther or, wherever the evidence is thin, undecided.

    A *near* group is near if it is more similar to the ID images than its pool's far group, by more standard errors of
    the difference than `Thresholds.standard_errors`. Any other is *farther* if it is that much less similar than the
    lowest far group of the other pools, and WordNet agrees in order; or, where `Thresholds.farther_below` is given, if
    it is that much below this number (and *far* if that much above).

    Parameters
    ----------
    others : sequence of SetStatistics
        Far sets of other proposals files, to compare with.

    Raises
    ------
    ProposalError
        Sets that are compared come from different encoders.
    """
    measured = [one for one in (*sets, *others) if one.mean is not None]
    if len(encoders := {one.encoder: one.name for one in measured}) > 1:
        raise ProposalError(
            "Sets of different encoders cannot be compared",
            where=", ".join(encoders.values()),
            expected=next(iter(encoders)),
            found=", ".join(list(encoders)[1:]),
        )
    made = []
    for one in sets:
        if one.group == "near":
            far = next((two for two in sets if (two.pool, two.group) == (one.pool, "far")), None)
            verdict, reason = _near(one, far, thresholds)
        elif thresholds.farther_below is not None:
            verdict, reason = _against_number(one, thresholds)
        else:
            rivals = [two for two in (*sets, *others) if two.group == "far" and two.pool != one.pool]
            verdict, reason = _against_sets(one, rivals, thresholds)
        made.append(_record(one, verdict, reason))
    return tuple(made)


def farther_pools(sets: Sequence[SetProposal]) -> set[str]:
    """Return the pools whose far group is proposed farther: their far images are called farther too."""
    return {one.name.rpartition(" ")[0] for one in sets if one.group == "far" and one.proposal == "farther"}


def _near(one: SetStatistics, far: SetStatistics | None, thresholds: Thresholds) -> tuple[Verdict, str]:
    if far is None:
        return "undecided", "there is no far group to compare with"
    gap = _gap(one, far)
    if gap is None:
        return "undecided", "too few embedded images"
    if gap > thresholds.standard_errors:
        return "near", f"{gap:.1f} standard errors nearer than {far.name}"
    return "undecided", f"only {gap:.1f} standard errors nearer than {far.name}"


def _against_number(one: SetStatistics, thresholds: Thresholds) -> tuple[Verdict, str]:
    bound = SetStatistics("", "far", 0, float(thresholds.farther_below or 0), 0.0, None)
    gap = _gap(bound, one)
    if gap is None:
        return "undecided", "too few embedded images"
    where = f"{abs(gap):.1f} standard errors {'below' if gap > 0 else 'above'} {thresholds.farther_below}"
    if abs(gap) <= thresholds.standard_errors:
        return "undecided", f"only {where}"
    return ("farther" if gap > 0 else "far"), where


def _against_sets(one: SetStatistics, rivals: Sequence[SetStatistics], thresholds: Thresholds) -> tuple[Verdict, str]:
    known = [two for two in rivals if two.mean is not None and two.error is not None]
    if not known:
        return "undecided", "there is no other far set to compare with"
    lowest = min(known, key=lambda two: (two.mean or 0.0, two.name))
    gap = _gap(lowest, one)
    if gap is None:
        return "undecided", "too few embedded images"
    if gap <= thresholds.standard_errors:
        return "undecided", f"{gap:.1f} standard errors below {lowest.name}: not farther by similarity"
    if one.kinship is None or lowest.kinship is None:
        return "undecided", f"{gap:.1f} standard errors below {lowest.name}, but WordNet says nothing"
    if one.kinship >= lowest.kinship:
        return "undecided", f"{gap:.1f} standard errors below {lowest.name}, but WordNet has the other order"
    return "farther", f"{gap:.1f} standard errors below {lowest.name}, and WordNet agrees"


def _gap(higher: SetStatistics, lower: SetStatistics) -> float | None:
    """Return the difference of two means in standard errors of the difference; None where it is undefined."""
    if higher.mean is None or lower.mean is None or higher.error is None or lower.error is None:
        return None
    error = math.hypot(higher.error, lower.error)
    difference = higher.mean - lower.mean
    return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0


def _record(one: SetStatistics, verdict: Verdict, reason: str) -> SetProposal:
    return SetProposal(
        name=one.name,
        group=one.group,
        proposal=verdict,
        reason=reason,
        images=one.images,
        mean_similarity=None if one.mean is None else decimal_text(one.mean),
        standard_error=None if one.error is None else decimal_text(one.error),
        mean_kinship=None if one.kinship is None else decimal_text(one.kinship),
        encoder=one.encoder,
    )


def kinships_in(shown: Iterable[str], scores: Mapping[str, float]) -> list[float]:
    """Return the similarity of each category that is shown and has one, in the order of their names."""
    return [scores[name] for name in sorted(set(shown)) if name in scores]
