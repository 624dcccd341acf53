"""Means of what is defined, summed as pycocotools sums them."""

from __future__ import annotations

from curation.evaluation.problem import Floats


def mean_of_defined(values: Floats) -> float:
    """Return the mean of what is defined, as pycocotools sums it; -1 where nothing is."""
    defined = values[values > -1]
    return float(defined.mean()) if len(defined) else -1.0
