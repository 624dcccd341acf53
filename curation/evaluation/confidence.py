"""Confidence of an open-set classifier, high on known samples and low on others (Palechor et al., WACV 2023, eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.evaluation.class_scores import ClassScores

DEFINITION = (
    "gamma_plus: mean probability of the true class over all known samples, also wrongly answered ones; gamma_minus: "
    "mean over the group of 1 - highest known probability + 1/K (without 1/K where there is a background class); "
    "gamma: their mean. Softmax runs over all outputs. gamma_minus_table2: 1/(largest label + 1) in place of 1/K, as "
    "the official code computes it for Table 2"
)


def confidence(data: ClassScores, group: str) -> dict[str, Any]:
    """Return gamma+, gamma- and gamma against one group.

    Parameters
    ----------
    group : {"negative", "unknown"}
        Negatives in validation, unknown samples in Table 2 of the paper.

    Returns
    -------
    dict
        ``gamma_plus``, ``gamma_minus``, ``gamma``, ``gamma_minus_table2``, ``gamma_table2``. Undefined is None, with
        ``reason``. With C = K, gamma- lies between 1/K and 1; with a background class between 0 and 1.
    """
    if data.kind == "real":
        return _named(None, None, None, "the scores are no probabilities")
    known, other = data.known, data.group(group)
    plus = float(data.target[known].mean()) if known.any() else None
    if not other.any():
        return _named(plus, None, None, f"no {group} sample")
    beyond = float((1 - data.highest[other]).mean())
    if not data.sums_to_one:
        return _named(plus, beyond, beyond, None if known.any() else "no sample of a known class")
    if not known.any():
        # The official offset needs a label; that of the definition does not.
        return _named(None, beyond + 1 / len(data.classes), None, "no sample of a known class")
    official = beyond + 1 / (int(data.labels.max()) + 1)
    return _named(plus, beyond + 1 / len(data.classes), official, None)


def best_epoch(values: Sequence[tuple[float, float]]) -> int | None:
    """Return the position of the model to keep: the first of the largest gamma+ + gamma-, None if none is above 0.

    Parameters
    ----------
    values : sequence of (float, float)
        gamma+ and gamma- on the validation set, by epoch.

    Notes
    -----
    As the official training code: strictly larger than the best so far, which begins at 0.
    """
    sums = [plus + minus for plus, minus in values]
    return sums.index(max(sums)) if max(sums, default=0) > 0 else None


def _named(plus: float | None, minus: float | None, official: float | None, reason: str | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "gamma_plus": plus,
        "gamma_minus": minus,
        "gamma": _half(plus, minus),
        "gamma_minus_table2": official,
        "gamma_table2": _half(plus, official),
    }
    return result | ({} if reason is None else {"reason": reason})


def _half(plus: float | None, minus: float | None) -> float | None:
    return None if plus is None or minus is None else (plus + minus) / 2
