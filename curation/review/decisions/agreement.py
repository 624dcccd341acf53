"""Counts of decisions, and the agreement of reviewers beyond chance: Cohen's kappa of two, Fleiss' kappa of more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from curation.core.tables import grouped
from curation.review.decisions.decision import STAGES, Action, Decision, Stage
from curation.review.decisions.sampling import exact_interval

NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class ListCount:
    """The decisions with the same pool, stage and action.

    Attributes
    ----------
    listed, unique : int
        Rows, and different images among them.
    repeated : tuple of str
        Images with several rows of the same reviewer, or several without one; sorted.
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
    """Return the counts of every list, sorted by stage, action and pool."""
    counts = []
    lists = grouped(decisions, lambda row: (STAGES.index(row.stage), row.action, row.dataset))
    for (stage, action, dataset), rows in sorted(lists.items()):
        times = Counter((row.reviewer, row.image_id) for row in rows)
        repeated = tuple(sorted({image for (_, image), n in times.items() if n > 1}))
        reasons = {
            reason: (len(some), len({row.image_id for row in some}))
            for reason, some in grouped(rows, lambda row: row.reason).items()
        }
        unique = len({row.image_id for row in rows})
        counts.append(ListCount(dataset, STAGES[stage], action, len(rows), unique, repeated, reasons))
    return tuple(counts)


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
        Images that at least two reviewers judged; no other image counts.
    observed, expected : float or None
        Share of agreeing pairs of decisions, and the share by chance; None without items.
    left_out : int
        Images with fewer than two decisions.
    raters : tuple of int
        Fewest and most decisions on an image that counts; ``(0, 0)`` without items.
    interval : tuple of float, or None
        95 % interval by the delta method over images; None if `value` is None, or if the interval has no width.
    """

    value: float | None
    reason: str
    items: int
    observed: float | None
    expected: float | None
    left_out: int = 0
    raters: tuple[int, int] = (2, 2)
    interval: tuple[float, float] | None = None

    def text(self) -> str:
        """Return the value with its 95 % interval, or why it is undefined."""
        if self.value is None:
            return f"undefined: {self.reason}"
        low_and_high = f" ({self.interval[0]:.2f} to {self.interval[1]:.2f})" if self.interval else ""
        return f"{self.value:.3f}{low_and_high}"


@dataclass(frozen=True, slots=True)
class Slice:
    """The kappa of an action or reason against all others, or of the images of an ID class."""

    by: Literal["action", "reason", "class"]
    name: str
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The share of gold images that a reviewer decided correctly, with its exact 95 % interval (Clopper-Pearson)."""

    reviewer: str
    images: int
    same: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two reviewers at one stage: numbers of images that both judged, and judged equally, and Cohen's kappa."""

    first: str
    second: str
    images: int
    same: int
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class StageAgreement:
    """Agreement at one stage: every pair of reviewers, all together (None for fewer than three), and by slices."""

    stage: Stage
    pairs: tuple[Pair, ...]
    fleiss: Kappa | None
    slices: tuple[Slice, ...] = ()


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> Kappa:
    """Return Cohen's kappa of two reviewers' verdicts on the same images (Cohen 1960), unweighted.

    Parameters
    ----------
    first, second : sequence
        The k-th decision of each is on the same image.

    Raises
    ------
    ValueError
        The two have different lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"verdicts on the same images are needed: {len(first)} and {len(second)}")
    if not first:
        return Kappa(None, "no image was judged by both", 0, None, None, raters=(0, 0))
    n, mine, theirs = len(first), Counter(first), Counter(second)
    expected = Fraction(sum(count * theirs[label] for label, count in mine.items()), n * n)
    # The change of the expected agreement by one more such image.
    moves = [Fraction(theirs[a] + mine[b], n) - 2 * expected for a, b in zip(first, second, strict=True)]
    return _kappa([Fraction(a == b) for a, b in zip(first, second, strict=True)], expected, moves)


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
    totals = sum(several, Counter[Hashable]())
    n, ratings_of_all = len(several), totals.total()
    expected = Fraction(sum(k * k for k in totals.values()), ratings_of_all**2)
    agreeing, moves = [], []
    for count in several:
        size = count.total()
        agreeing.append(Fraction(sum(k * (k - 1) for k in count.values()), size * (size - 1)))
        shares = Fraction(sum(k * totals[label] for label, k in count.items()), ratings_of_all)
        moves.append(2 * n * (shares - size * expected) / ratings_of_all)
    sizes = [count.total() for count in several]
    return _kappa(agreeing, expected, moves, left_out, (min(sizes), max(sizes)))


def joint_kappa(votes: Iterable[Mapping[str, Hashable]]) -> Kappa:
    """Return the kappa of all reviewers: Cohen's of two, Fleiss' of more.

    Parameters
    ----------
    votes : iterable of mapping
        The label of each reviewer on each image.

    Examples
    --------
    >>> votes = [{"anna": "near", "ben": "near"}, {"anna": "near", "ben": "far"}, {"anna": "far", "ben": "far"}]
    >>> kappa = joint_kappa(votes)
    >>> round(kappa.value, 3), kappa.items
    (0.4, 3)
    """
    images = list(votes)
    names = sorted(set().union(*images))
    if len(names) != 2:
        return fleiss_kappa(list(labels.values()) for labels in images)
    both = [tuple(labels[name] for name in names) for labels in images if len(labels) == 2]
    return cohen_kappa([mine for mine, _ in both], [theirs for _, theirs in both])


def agreement(
    standing: Iterable[Decision], classes: Mapping[str, Collection[str]] | None = None
) -> tuple[StageAgreement, ...]:
    """Return the agreement of named reviewers at each stage with two of them or more.

    Parameters
    ----------
    standing : iterable of Decision
        The current decisions, at most one of each reviewer on an image
        (`curation.review.decisions.resolution.standing_verdicts`). Those without a reviewer are left out: they
        may come from one person.
    classes : mapping of str to collection of str, optional
        The images that may show each ID class.
    """
    stages = []
    for stage, rows in grouped(standing, lambda row: row.stage).items():
        by_image = grouped((row for row in rows if row.reviewer), lambda row: (row.dataset, row.image_id))
        verdicts = {key: {row.reviewer: row for row in several} for key, several in by_image.items()}
        names = sorted({row.reviewer for several in by_image.values() for row in several})
        pairs = []
        for first, second in combinations(names, 2):
            both = [
                (votes[first].action, votes[second].action)
                for votes in verdicts.values()
                if first in votes and second in votes
            ]
            kappa = cohen_kappa([mine for mine, _ in both], [theirs for _, theirs in both])
            pairs.append(Pair(first, second, len(both), sum(mine == theirs for mine, theirs in both), kappa))
        if pairs:
            fleiss = fleiss_kappa([row.action for row in votes.values()] for votes in verdicts.values())
            slices = tuple(_slices(verdicts, classes or {}))
            stages.append(StageAgreement(stage, tuple(pairs), fleiss if len(names) > 2 else None, slices))
    return tuple(sorted(stages, key=lambda judged: STAGES.index(judged.stage)))


def _slices(
    verdicts: Mapping[tuple[str, str], Mapping[str, Decision]], classes: Mapping[str, Collection[str]]
) -> Iterator[Slice]:
    """Yield the kappa of each action and reason against all others, and of the actions on each ID class's images."""
    several = {key: votes for key, votes in verdicts.items() if len(votes) > 1}
    rows = [row for votes in several.values() for row in votes.values()]
    kinds: tuple[tuple[Literal["action", "reason"], set[str]], ...] = (
        ("action", {row.action for row in rows}),
        ("reason", {row.reason for row in rows} - {""}),
    )
    for by, labels in kinds:
        for label in sorted(labels):
            votes_on = [{who: getattr(row, by) == label for who, row in votes.items()} for votes in several.values()]
            yield Slice(by, label, joint_kappa(votes_on))
    for name in sorted(classes):
        images = set(classes[name])
        of_class = [votes for (_, image), votes in several.items() if image in images]
        if of_class:
            actions = [{who: row.action for who, row in votes.items()} for votes in of_class]
            yield Slice("class", name, joint_kappa(actions))


def accuracy(standing: Iterable[Decision], gold: Iterable[Decision]) -> tuple[Accuracy, ...]:
    """Return the share of gold images that each named reviewer decided correctly, sorted by name.

    Parameters
    ----------
    standing : iterable of Decision
        The current decisions, at most one of each reviewer on an image.
    gold : iterable of Decision
        The correct decisions on some images.
    """
    right = {(row.dataset, row.image_id, row.stage): row.action for row in gold}
    judged = (row for row in standing if row.reviewer and (row.dataset, row.image_id, row.stage) in right)
    scores = []
    for name, rows in sorted(grouped(judged, lambda row: row.reviewer).items()):
        same = sum(row.action == right[row.dataset, row.image_id, row.stage] for row in rows)
        low, high = exact_interval(same, len(rows))
        scores.append(Accuracy(name, len(rows), same, same / len(rows), low, high))
    return tuple(scores)


def _kappa(
    agreeing: Sequence[Fraction],
    expected: Fraction,
    moves: Sequence[Fraction],
    left_out: int = 0,
    raters: tuple[int, int] = (2, 2),
) -> Kappa:
    """Return a kappa from the agreement on each image and from how far each image moves the expected agreement."""
    items = len(agreeing)
    observed = sum(agreeing, Fraction()) / items
    if expected == 1:
        reason = "all decisions are the same, so chance alone would agree as well"
        return Kappa(None, reason, items, float(observed), 1.0, left_out, raters)
    value = (observed - expected) / (1 - expected)
    # The influence of an image on kappa; for two reviewers this is the variance of Fleiss, Cohen and Everitt (1969).
    influences = [(a - observed - (1 - value) * m) / (1 - expected) for a, m in zip(agreeing, moves, strict=True)]
    deviation = math.sqrt(math.fsum(float(influence) ** 2 for influence in influences)) / items
    middle, margin = float(value), NORMAL_95 * deviation
    interval = (max(-1.0, middle - margin), min(1.0, middle + margin)) if deviation > 0 else None
    return Kappa(middle, "", items, float(observed), float(expected), left_out, raters, interval)
