"""F-beta operating points of each class at each wilderness ratio (Elephant paper, Table 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.matching import Matches
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int64s

Formula = Literal["correct", "published"]
FORMULAS: dict[str, str] = {
    "correct": "F = (1 + b^2) TP / ((TP + FP) + b^2 n), which is (1 + b^2) P R / (b^2 P + R)",
    "published": "F = (1 + b^2) P R: what Table 4 prints for b = 0.5; the denominator is missing",
}
TABLE_4_BETAS = ("0.5", "1.0", "1.5")
TABLE_4_RATIOS = tuple(f"{quarters / 4}" for quarters in range(18))
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?\Z")


def f_beta(tp: int, tp_fp: int, n: int, beta: str | Fraction, *, formula: Formula = "correct") -> float | None:
    """Return F-beta of one operating point, or None where it is undefined.

    Parameters
    ----------
    tp, tp_fp, n : int
        True positives, kept detections (true and false positives), and ground-truth objects.
    beta : str or Fraction
        Weight of recall against precision, as a decimal text (``"0.5"``).
    formula : {"correct", "published"}
        ``published`` is the b = 0.5 column of the paper's Table 4, which lacks the denominator in all 18 rows.

    Returns
    -------
    float or None
        None when there is no ground truth, or nothing is kept under ``published`` (precision 0/0).
    """
    square = _positive(beta, "beta") ** 2
    if n == 0 or (formula == "published" and tp_fp == 0):
        return None
    if formula == "published":
        return float(1 + square) * (tp / tp_fp) * (tp / n)
    return float((1 + square) * tp / (tp_fp + square * n))


def images_at_ratio(ratio: str, n_closed: int) -> int:
    """Return how many wilderness images a ratio asks for: the floor of ``ratio * n_closed`` in exact integers."""
    return int(_non_negative(ratio, "wilderness ratio") * n_closed)


def available_ratios(n_closed: int, n_wilderness: int, ratios: Sequence[str] = TABLE_4_RATIOS) -> tuple[str, ...]:
    """Return those ratios that the available wilderness has images for."""
    return tuple(ratio for ratio in ratios if images_at_ratio(ratio, n_closed) <= n_wilderness)


def fbeta_operating_points(
    closed: GroundTruth,
    closed_detections: Detections,
    matches: Matches,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    *,
    ratios: Sequence[str] = TABLE_4_RATIOS,
    betas: Sequence[str] = TABLE_4_BETAS,
    formula: Formula = "correct",
) -> dict[str, Any]:
    """Return the threshold of highest F-beta per class, wilderness ratio and beta.

    Candidates are the distinct scores of the class on the closed images and on the first ``floor(ratio * n_closed)``
    wilderness images; every detection there is a false positive. Equal F: the highest threshold. The choice always
    follows the correct formula, as in Table 4 (its b = 0.5 row at ratio 0 is not the best of the printed formula);
    `formula` only says which F is reported.

    Parameters
    ----------
    matches : Matches
        Outcome of each closed detection; ignored ones count nowhere.
    ratios, betas : sequence of str
        Decimal texts; they become the keys of the result as they stand.

    Returns
    -------
    dict
        ``result[class][ratio][beta] = {"F", "precision", "recall", "threshold", "TP", "FP", "n"}``; where F is
        undefined these are None (the counts 0) and ``reason`` says why.

    Raises
    ------
    UsageError
        A ratio or beta is no decimal number, a ratio is negative, a beta is not positive, a formula is unknown.
    EvaluationError
        A ratio needs more wilderness images than there are.
    """
    if formula not in FORMULAS:
        raise UsageError("Unknown F-beta formula", expected=", ".join(FORMULAS), found=repr(formula)[:80])
    weights = {beta: _positive(beta, "beta") for beta in betas}
    sizes = {ratio: _checked_size(ratio, closed.n_images, wilderness.n_images) for ratio in ratios}
    result: dict[str, Any] = {}
    for number, name in enumerate(closed.classes):
        ranking = _Ranking.of_class(number, closed_detections, matches, wilderness_detections)
        n = int(matches.n_positive[number])
        result[name] = {
            ratio: {beta: ranking.best(size, n, weight, formula) for beta, weight in weights.items()}
            for ratio, size in sizes.items()
        }
    return result


class _Ranking:
    """Detections of one class on both parts, by falling score, with the image position each one enters at."""

    def __init__(self, scores: Floats, correct: Bools, enters: Int64s) -> None:
        order = np.argsort(-scores, kind="stable")
        self.scores, self.correct, self.enters = scores[order], correct[order], enters[order]
        # The last of equal scores: a threshold keeps all of them or none.
        self.ends = np.flatnonzero(np.append(np.diff(self.scores) != 0, True)[: len(order)])
        self.true_positives = np.cumsum(self.correct)[self.ends]

    @classmethod
    def of_class(cls, number: int, closed: Detections, matches: Matches, wilderness: Detections) -> _Ranking:
        kept = np.flatnonzero((closed.label == number) & (matches.outcome >= 0))
        wild = np.flatnonzero(wilderness.label == number)
        return cls(
            np.concatenate([closed.scores[kept], wilderness.scores[wild]]),
            np.concatenate([matches.outcome[kept] == 1, np.zeros(len(wild), bool)]),
            np.concatenate([np.full(len(kept), -1, np.int64), wilderness.image[wild].astype(np.int64)]),
        )

    def best(self, size: int, n: int, beta: Fraction, formula: Formula) -> dict[str, Any]:
        """Return the operating point of highest F with the first `size` wilderness images."""
        kept = np.cumsum(self.enters < size)[self.ends]
        if n == 0:
            return _undefined("the class has no ground truth", n)
        if len(kept) == 0 or kept[-1] == 0:
            return _undefined("the class has no detections", n)
        p, q = (beta**2).as_integer_ratio()
        # Integers below 2^53 make numerator and denominator exact, so equal F are equal floats.
        f = ((p + q) * self.true_positives) / (q * kept + p * n)
        best = int(np.argmax(np.where(kept > 0, f, -1.0)))
        tp, tp_fp = int(self.true_positives[best]), int(kept[best])
        return {
            "F": f_beta(tp, tp_fp, n, beta, formula=formula),
            "precision": tp / tp_fp,
            "recall": tp / n,
            "threshold": float(self.scores[self.ends[best]]),
            "TP": tp,
            "FP": tp_fp - tp,
            "n": n,
        }


def _undefined(reason: str, n: int) -> dict[str, Any]:
    nothing = {"F": None, "precision": None, "recall": None, "threshold": None}
    return {**nothing, "TP": 0, "FP": 0, "n": n, "reason": reason}


def _checked_size(ratio: str, n_closed: int, n_wilderness: int) -> int:
    size = images_at_ratio(ratio, n_closed)
    if size > n_wilderness:
        raise EvaluationError(
            "A wilderness ratio needs more images than there are",
            where=f"ratio {ratio} of {n_closed} closed images",
            expected=f"{size} wilderness images",
            found=str(n_wilderness),
            hint="give a larger wilderness part, or smaller ratios",
        )
    return size


def _positive(text: str | Fraction, what: str) -> Fraction:
    value = _non_negative(text, what)
    if value == 0:
        raise UsageError(f"The {what} must be positive", found=str(text)[:40])
    return value


def _non_negative(number: str | Fraction, what: str) -> Fraction:
    # Exponents are refused: "1e999999999" would fill the memory with digits.
    if isinstance(number, Fraction) and number >= 0:
        return number
    if isinstance(number, str) and _DECIMAL.match(number):
        return Fraction(number)
    raise UsageError(
        f"The {what} is not a usable number",
        expected="a decimal number such as 0.5, zero or above",
        found=repr(number)[:80],
    )
