"""The threshold below which a detection is called unknown, taken from the scores of ID detections."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curation.errors import UsageError
from curation.evaluation.columns import Floats
from curation.evaluation.ood.records import LARGEST_SCORE

RULES: dict[str, str] = {
    "zscore": "mean - 1.645 * population standard deviation of the ID scores (FMIYC's code; normal assumption, not "
    "invariant under monotone changes of the score)",
    "quantile": "the ID score of rank floor(n / 20) counted from 0, ascending: at least 95 % of ID scores are >= it "
    "(the paper's text)",
    "given": "a number given by the user",
}
UNKNOWN_IF = "score < threshold (strict)"


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold of a score, with the rule that made it.

    Attributes
    ----------
    rule : {"zscore", "quantile", "given"}
    value : float or None
        None where there are no ID scores.
    """

    rule: str
    value: float | None

    def margin(self, scores: Floats) -> float | None:
        """Return the distance of the nearest score: how far the threshold may move before a verdict changes."""
        if self.value is None or not len(scores):
            return None
        return float(np.abs(scores - self.value).min())


def zscore_threshold(id_scores: Floats) -> float | None:
    """Return ``mean - 1.645 * std`` (ddof 0) of the ID scores, None where there are none."""
    return float(np.mean(id_scores) - 1.645 * np.std(id_scores)) if len(id_scores) else None


def quantile_threshold(id_scores: Floats) -> float | None:
    """Return the ID score of ascending rank ``floor(0.05 n)``, None where there are none."""
    if not len(id_scores):
        return None
    rank = len(id_scores) // 20
    return float(np.partition(id_scores, rank)[rank])


def threshold_of(id_scores: Floats, rule: str) -> Threshold:
    """Return the threshold of a rule: ``zscore``, ``quantile``, or a decimal number as text.

    Raises
    ------
    UsageError
        The text is neither a rule nor a finite number.
    """
    if rule == "zscore":
        return Threshold(rule, zscore_threshold(id_scores))
    if rule == "quantile":
        return Threshold(rule, quantile_threshold(id_scores))
    try:
        value = float(rule) if len(rule) <= 40 else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_SCORE:
        raise UsageError(
            "The threshold is neither a rule nor a number",
            expected="zscore, quantile, or a finite number",
            found=repr(rule)[:80],
        )
    return Threshold("given", value)
