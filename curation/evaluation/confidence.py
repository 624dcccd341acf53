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
    known, other, is_real = data.known, data.group(group), data.kind == "real"
    plus = float(data.target[known].mean()) if known.any() and not is_real else None
    minus = official = beyond = float((1 - data.highest[other]).mean()) if other.any() and not is_real else None
    if beyond is not None and data.sums_to_one:
        minus = beyond + 1 / len(data.classes)
        # The official offset needs a label; that of the definition does not.
        official = None if plus is None else beyond + 1 / (int(data.labels.max()) + 1)
    result: dict[str, Any] = {
        "gamma_plus": plus,
        "gamma_minus": minus,
        "gamma": None if plus is None or minus is None else (plus + minus) / 2,
        "gamma_minus_table2": official,
        "gamma_table2": None if plus is None or official is None else (plus + official) / 2,
    }
    if is_real:
        result["reason"] = "the scores are no probabilities"
    elif beyond is None or plus is None:
        result["reason"] = f"no {group} sample" if beyond is None else "no sample of a known class"
    return result


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
