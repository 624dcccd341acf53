"""How many decisions say what, and how far reviewers agree beyond chance: Cohen's kappa of two, Fleiss' of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from curation.core.tables import grouped
from curation.review.decisions.decision import STAGES, Action, Decision, Stage


@dataclass(frozen=True, slots=True)
class ListCount:
    """The decisions with the same pool, stage and action.

    Attributes
    ----------
    listed, unique : int
        Rows, and different images among them.
    repeated : tuple of str
        Images that the list holds more than once from the same reviewer (or without one), sorted.
    reasons : dict of str to (int, int)
        Rows and different images by reason, in the order of the rows.
    """

    dataset: str
    stage: Stage
    action: Action
    listed: int
    unique: int
    repeated: tuple[str, ...]
    reasons: dict[str, tuple[int, int]]


def count_lists(decisions: Iterable[Decision]) -> tuple[ListCount, ...]:
    """Return the counts of every list that has rows, sorted by stage, action and pool."""
    lists = grouped(decisions, lambda row: (STAGES.index(row.stage), row.action, row.dataset))
    return tuple(_count(rows) for _, rows in sorted(lists.items()))


def _count(rows: Sequence[Decision]) -> ListCount:
    times = Counter((row.reviewer, row.image_id) for row in rows)
    reasons = grouped(rows, lambda row: row.reason)
    return ListCount(
        dataset=rows[0].dataset,
        stage=rows[0].stage,
        action=rows[0].action,
        listed=len(rows),
        unique=_images(rows),
        repeated=tuple(sorted({image for (_, image), n in times.items() if n > 1})),
        reasons={reason: (len(some), _images(some)) for reason, some in reasons.items()},
    )


def _images(rows: Iterable[Decision]) -> int:
    return len({row.image_id for row in rows})


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement beyond chance.

    Attributes
    ----------
    value : float or None
        (observed − expected) / (1 − expected); None where it is undefined.
    reason : str
        Why `value` is None, or ``""``.
    items : int
        Images that at least two reviewers judged, the only ones that count.
    observed, expected : float or None
        Share of agreeing pairs of verdicts, and the share that chance would give; None without items.
    left_out : int
        Images with fewer than two verdicts.
    raters : tuple of int
        Fewest and most verdicts on an image that counts; ``(0, 0)`` without items.
    """

    value: float | None
    reason: str
    items: int
    observed: float | None
    expected: float | None
    left_out: int = 0
    raters: tuple[int, int] = (2, 2)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two reviewers at one stage: the images that both judged, those with equal verdicts, and Cohen's kappa."""

    first: str
    second: str
    images: int
    same: int
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class StageAgreement:
    """Agreement at one stage: every pair of reviewers, and all together (None for fewer than three)."""

    stage: Stage
    pairs: tuple[Pair, ...]
    fleiss: Kappa | None


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> Kappa:
    """Return Cohen's kappa of two reviewers' verdicts on the same images (Cohen 1960), unweighted.

    Parameters
    ----------
    first, second : sequence
        The k-th verdict of each is on the same image.

    Raises
    ------
    ValueError
        The two have different lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"verdicts on the same images are needed: {len(first)} and {len(second)}")
    n = len(first)
    if not n:
        return Kappa(None, "no image was judged by both", 0, None, None, raters=(0, 0))
    observed = Fraction(sum(a == b for a, b in zip(first, second, strict=True)), n)
    mine, theirs = Counter(first), Counter(second)
    expected = Fraction(sum(count * theirs[label] for label, count in mine.items()), n * n)
    return _kappa(observed, expected, n)


def fleiss_kappa(ratings: Iterable[Sequence[Hashable]]) -> Kappa:
    """Return Fleiss' kappa of any number of reviewers (Fleiss 1971), who need not all judge every image.

    Parameters
    ----------
    ratings : iterable of sequence
        The verdicts on each image, in any order.

    Notes
    -----
    With n_i verdicts on image i, of which n_ij say j, the observed agreement is the mean over images of
    Σ_j n_ij (n_ij − 1) / (n_i (n_i − 1)); the expected one is Σ_j p_j², with p_j the share of j among all verdicts on
    images that count. With equal n_i this is Fleiss' formula. Images with one verdict have no agreement: they
    are left out and counted.
    """
    counts = [Counter(verdicts) for verdicts in ratings]
    several = [count for count in counts if count.total() > 1]
    left_out = len(counts) - len(several)
    if not several:
        return Kappa(None, "no image was judged by two reviewers", 0, None, None, left_out, (0, 0))
    agreeing, totals = Fraction(), Counter[Hashable]()
    for count in several:
        agreeing += Fraction(sum(k * (k - 1) for k in count.values()), count.total() * (count.total() - 1))
        totals.update(count)
    expected = Fraction(sum(k * k for k in totals.values()), totals.total() ** 2)
    sizes = [count.total() for count in several]
    return _kappa(agreeing / len(several), expected, len(several), left_out, (min(sizes), max(sizes)))


def agreement(standing: Iterable[Decision]) -> tuple[StageAgreement, ...]:
    """Return the agreement of named reviewers at each stage with two of them or more.

    Parameters
    ----------
    standing : iterable of Decision
        The current verdicts, at most one of each reviewer on an image
        (`curation.review.decisions.resolution.standing_verdicts`). Those without a reviewer are left out: they
        may come from one person.
    """
    stages = []
    for stage, rows in grouped(standing, lambda row: row.stage).items():
        by_image = grouped((row for row in rows if row.reviewer), lambda row: (row.dataset, row.image_id))
        verdicts = [{row.reviewer: row.action for row in several} for several in by_image.values()]
        names = sorted(set().union(*verdicts))
        pairs = []
        for first, second in combinations(names, 2):
            both = [(votes[first], votes[second]) for votes in verdicts if first in votes and second in votes]
            kappa = cohen_kappa([mine for mine, _ in both], [theirs for _, theirs in both])
            pairs.append(Pair(first, second, len(both), sum(mine == theirs for mine, theirs in both), kappa))
        if pairs:
            fleiss = fleiss_kappa(list(votes.values()) for votes in verdicts) if len(names) > 2 else None
            stages.append(StageAgreement(stage, tuple(pairs), fleiss))
    return tuple(sorted(stages, key=lambda judged: STAGES.index(judged.stage)))


def _kappa(
    observed: Fraction, expected: Fraction, items: int, left_out: int = 0, raters: tuple[int, int] = (2, 2)
) -> Kappa:
    value = None if expected == 1 else float((observed - expected) / (1 - expected))
    reason = "every verdict is the same, so that chance alone would agree as well" if value is None else ""
    return Kappa(value, reason, items, float(observed), float(expected), left_out, raters)
