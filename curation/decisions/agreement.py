"""How many decisions say what, and how far reviewers agree beyond chance: Cohen's kappa of two, Fleiss' of many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from curation.decisions.decision import STAGES, Action, Decision, Stage


@dataclass(frozen=True, slots=True)
class ListCount:
    """The decisions of one pool, stage and action.

    Attributes
    ----------
    listed, unique : int
        Rows, and different images among them.
    repeated : tuple of str
        Images that stand in the list more than once from the same reviewer (or from none), sorted.
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
    rows: dict[tuple[Stage, Action, str], list[Decision]] = defaultdict(list)
    for one in decisions:
        rows[one.stage, one.action, one.dataset].append(one)
    order = sorted(rows, key=lambda key: (STAGES.index(key[0]), *key[1:]))
    return tuple(_count(*key, rows[key]) for key in order)


def _count(stage: Stage, action: Action, dataset: str, rows: list[Decision]) -> ListCount:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in rows:
        by_reason[one.reason].append(one.image_id)
    times = Counter((one.reviewer, one.image_id) for one in rows)
    return ListCount(
        dataset=dataset,
        stage=stage,
        action=action,
        listed=len(rows),
        unique=len({one.image_id for one in rows}),
        repeated=tuple(sorted({image for (_, image), n in times.items() if n > 1})),
        reasons={reason: (len(ids), len(set(ids))) for reason, ids in by_reason.items()},
    )


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
    images that count. With equal n_i this is Fleiss' formula. Images with one verdict say nothing of agreement: they
    are left out and counted.
    """
    counted: Counter[tuple[int, int]] = Counter()
    totals: Counter[Hashable] = Counter()
    sizes: set[int] = set()
    left_out = 0
    for verdicts in ratings:
        n = len(verdicts)
        if n < 2:
            left_out += 1
            continue
        labels = Counter(verdicts)
        totals.update(labels)
        sizes.add(n)
        counted[sum(k * (k - 1) for k in labels.values()), n * (n - 1)] += 1
    items = counted.total()
    if not items:
        return Kappa(None, "no image was judged by two reviewers", 0, None, None, left_out, (0, 0))
    observed = sum((Fraction(agreeing, pairs) * k for (agreeing, pairs), k in counted.items()), Fraction())
    expected = Fraction(sum(k * k for k in totals.values()), totals.total() ** 2)
    return _kappa(observed / items, expected, items, left_out, (min(sizes), max(sizes)))


def agreement(standing: Iterable[Decision]) -> tuple[StageAgreement, ...]:
    """Return the agreement of named reviewers at each stage with two of them or more.

    Parameters
    ----------
    standing : iterable of Decision
        The verdicts that stand, one of each reviewer on an image (`curation.decisions.resolution.standing_verdicts`).
        Those without a reviewer are left out: nobody knows whether they are one person's.
    """
    verdicts: dict[Stage, dict[tuple[str, str], dict[str, str]]] = {stage: {} for stage in STAGES}
    for one in standing:
        if one.reviewer:
            of_image = verdicts[one.stage].setdefault((one.dataset, one.image_id), {})
            of_image[one.reviewer] = one.action
    return tuple(found for stage, by_image in verdicts.items() if (found := _of_stage(stage, by_image)) is not None)


def _of_stage(stage: Stage, by_image: Mapping[tuple[str, str], Mapping[str, str]]) -> StageAgreement | None:
    names = sorted({name for of_image in by_image.values() for name in of_image})
    if len(names) < 2:
        return None
    several = [of_image for of_image in by_image.values() if len(of_image) > 1]
    pairs = tuple(_pair(first, second, several) for first, second in combinations(names, 2))
    fleiss = fleiss_kappa(list(of_image.values()) for of_image in by_image.values())
    return StageAgreement(stage, pairs, fleiss if len(names) > 2 else None)


def _pair(first: str, second: str, verdicts: Sequence[Mapping[str, str]]) -> Pair:
    both = [(one[first], one[second]) for one in verdicts if first in one and second in one]
    same = sum(a == b for a, b in both)
    return Pair(first, second, len(both), same, cohen_kappa([a for a, _ in both], [b for _, b in both]))


def _kappa(
    observed: Fraction, expected: Fraction, items: int, left_out: int = 0, raters: tuple[int, int] = (2, 2)
) -> Kappa:
    if expected == 1:
        reason, value = "every verdict is the same, so that chance alone would agree as well", None
    else:
        reason, value = "", float((observed - expected) / (1 - expected))
    return Kappa(value, reason, items, float(observed), float(expected), left_out, raters)
