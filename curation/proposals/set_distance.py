"""How far whole sets lie from the ID images: mean similarity with its standard error, and the order of WordNet.

The paper has an order (near, far, farther), not a cut: far of COCO lies nearer than near of Open Images. So a set is
called farther only beside other sets; otherwise it stays undecided (spec 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curation.errors import ProposalError
from curation.proposals.proposal import Group, SetProposal, Thresholds, Verdict, decimal_text

if TYPE_CHECKING:
    from curation.proposals.clip_overlap import Look

_TOO_FEW = "too few embedded images"


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """What was measured on one set.

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
    pool: str, group: Group, images: Collection[str], look: Look | None, kinships: Iterable[float]
) -> SetStatistics:
    """Return the statistics of some images of a pool.

    Parameters
    ----------
    images : collection of str
        Ids of the set.
    look : Look or None
        Of the pool; None without embeddings.
    kinships : iterable of float
        For each category annotated in the set, in a fixed order.
    """
    held, kin = set(images), list(kinships)
    scores = zip(look.images, look.similarity.tolist(), strict=True) if look is not None else ()
    near = np.array([score for one, score in scores if one in held], np.float64)
    return SetStatistics(
        pool=pool,
        group=group,
        images=len(near),
        mean=float(near.mean()) if len(near) else None,
        error=float(near.std(ddof=1) / math.sqrt(len(near))) if len(near) > 1 else None,
        kinship=math.fsum(kin) / len(kin) if kin else None,
        encoder=look.encoder if look is not None else "",
    )


def propose_sets(sets: Sequence[SetStatistics], thresholds: Thresholds) -> tuple[SetProposal, ...]:
    """Return a proposal for every set: near, far, farther or, wherever the evidence is thin, undecided.

    A *near* group is near if it is more similar to the ID images than its pool's far group, by more standard errors of
    the difference than `Thresholds.standard_errors`. Any other is *farther* if it is that much less similar than the
    lowest far group of the other pools, and WordNet agrees in order.

    Raises
    ------
    ProposalError
        Sets that are compared come from different encoders.
    """
    encoders = {one.encoder: one.name for one in sets if one.mean is not None}
    if len(encoders) > 1:
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
        else:
            rivals = [two for two in sets if two.group == "far" and two.pool != one.pool]
            verdict, reason = _against_sets(one, rivals, thresholds)
        mean, error, kinship = (None if x is None else decimal_text(x) for x in (one.mean, one.error, one.kinship))
        made.append(
            SetProposal(
                name=one.name,
                group=one.group,
                proposal=verdict,
                reason=reason,
                images=one.images,
                mean_similarity=mean,
                standard_error=error,
                mean_kinship=kinship,
                encoder=one.encoder,
            )
        )
    return tuple(made)


def farther_pools(sets: Sequence[SetProposal]) -> set[str]:
    """Return the pools whose far group is proposed farther: their far images are called farther too."""
    return {one.name.rpartition(" ")[0] for one in sets if one.group == "far" and one.proposal == "farther"}


def _near(one: SetStatistics, far: SetStatistics | None, thresholds: Thresholds) -> tuple[Verdict, str]:
    if far is None:
        return "undecided", "there is no far group to compare with"
    if (gap := _gap(one, far)) is None:
        return "undecided", _TOO_FEW
    reason = f"{gap:.1f} standard errors nearer than {far.name}"
    return ("near", reason) if gap > thresholds.standard_errors else ("undecided", f"only {reason}")


def _against_sets(one: SetStatistics, rivals: Sequence[SetStatistics], thresholds: Thresholds) -> tuple[Verdict, str]:
    known = [two for two in rivals if two.mean is not None and two.error is not None]
    if not known:
        return "undecided", "there is no other far set to compare with"
    lowest = min(known, key=lambda two: (two.mean or 0.0, two.name))
    if (gap := _gap(lowest, one)) is None:
        return "undecided", _TOO_FEW
    reason = f"{gap:.1f} standard errors below {lowest.name}"
    if gap <= thresholds.standard_errors:
        return "undecided", f"{reason}: not farther by similarity"
    if one.kinship is None or lowest.kinship is None:
        return "undecided", f"{reason}, but WordNet says nothing"
    if one.kinship >= lowest.kinship:
        return "undecided", f"{reason}, but WordNet has the other order"
    return "farther", f"{reason}, and WordNet agrees"


def _gap(higher: SetStatistics, lower: SetStatistics) -> float | None:
    """Return the difference of two means in standard errors of the difference; None where it is undefined."""
    if higher.mean is None or lower.mean is None or higher.error is None or lower.error is None:
        return None
    error, difference = math.hypot(higher.error, lower.error), higher.mean - lower.mean
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0
