"""All measures of open-set classifiers on one protocol: OSCR by grid, confidence, AUROC, open-set accuracy, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.imagenet.report import DEFINITIONS
from curation.errors import UsageError
from curation.evaluation import confidence as confidences
from curation.evaluation.class_scores import GROUPS, KINDS, ClassScores
from curation.evaluation.oscr import (
    ACCURACY_RULES,
    GRIDS,
    QUERIES,
    Grid,
    auroc_of,
    class_rates,
    margins_of,
    openset_accuracy,
    oscr,
    oscr_curve,
    point_at_fpr,
    read_query,
    shares_by_class,
)
from curation.evaluation.resample import class_bootstrap


@dataclass(frozen=True, slots=True)
class ImagenetOptions:
    """What to compute.

    Attributes
    ----------
    grids : tuple of str
        Of `curation.evaluation.oscr.GRIDS`; ``table2`` is left out for a classifier without a background column.
    queries : tuple of str
        False positive rates, decimal texts.
    bootstrap : int
        Replicates; 0 for no intervals.
    seed : int
    confidence : str
        Of the intervals.
    """

    grids: tuple[Grid, ...] = ("exact",)
    queries: tuple[str, ...] = QUERIES
    bootstrap: int = 0
    seed: int = 0
    confidence: str = "0.95"


def evaluate_imagenet(
    classifiers: Mapping[str, ClassScores],
    validations: Mapping[str, ClassScores] | None = None,
    options: ImagenetOptions | None = None,
) -> dict[str, Any]:
    """Return every measure of each classifier, with its definition.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
        Test scores.
    validations : mapping of name to ClassScores, optional
        Validation scores of some of them: confidence against negatives (by which the paper selects a model), and the
        thresholds of OOSA.

    Returns
    -------
    dict
        ``grids``, ``queries``, ``definitions``, ``classifiers`` by name (see `evaluate_classifier`), ``bootstrap``.

    Raises
    ------
    UsageError
        No classifier, an unknown grid, a query that is not a rate or given twice, a validation of no classifier.
    """
    options = options or ImagenetOptions()
    validations = validations or {}
    _check(classifiers, validations, options)
    return {
        "grids": {grid: GRIDS[grid] for grid in options.grids},
        "queries": list(options.queries),
        "definitions": DEFINITIONS,
        "openset_accuracy_rules": ACCURACY_RULES,
        "classifiers": {
            name: evaluate_classifier(data, validations.get(name), options)
            for name, data in classifiers.items()
        },
        "bootstrap": None
        if not options.bootstrap
        else class_bootstrap(
            classifiers,
            replicates=options.bootstrap,
            seed=options.seed,
            confidence=options.confidence,
            queries=options.queries,
        ),
    }


def evaluate_classifier(
    test: ClassScores, validation: ClassScores | None, options: ImagenetOptions
) -> dict[str, Any]:
    """Return every measure of one classifier.

    Returns
    -------
    dict
        ``n`` by group, ``scores`` (what kind), ``accuracy``, ``macro_accuracy``; ``confidence``, ``auroc`` and
        ``openset_accuracy`` by group; ``oscr`` by grid and group; ``validation`` (None without); ``classes``: one
        record a known class with its accuracy, mean probability or score of its own class, and CCR at each query (exact
        grid). Undefined is None, with a ``reason``.
    """
    shares = shares_by_class(test, test.right)
    defined = [share for share in shares if share is not None]
    n_known = int(test.known.sum())
    result: dict[str, Any] = {
        "n": {"known": n_known, **{group: int(test.group(group).sum()) for group in GROUPS}},
        "scores": KINDS[test.kind],
        "background": "a column"
        if test.background is not None
        else "none"
        if test.sums_to_one
        else "removed",
        "accuracy": int((test.known & test.right).sum()) / n_known if n_known else None,
        "macro_accuracy": sum(defined) / len(defined) if defined else None,
        "confidence": {group: confidences.confidence(test, group) for group in GROUPS},
        "auroc": {group: auroc_of(test, group) for group in GROUPS},
        "oscr": {
            grid: {group: oscr(test, group, grid=grid, queries=options.queries) for group in GROUPS}
            for grid in options.grids
            if grid != "table2" or test.background is not None
        },
        "openset_accuracy": {
            group: {
                rule: openset_accuracy(test, group, validation, rule=rule) for rule in ("strict", "inclusive")
            }
            for group in GROUPS
        },
        "validation": None if validation is None else _validation(validation, options.queries),
        "classes": _classes(test, shares, options.queries),
    }
    return result if n_known else result | {"reason": "no sample of a known class"}


def _validation(data: ClassScores, queries: tuple[str, ...]) -> dict[str, Any]:
    """Return what the papers read from validation scores: gamma, and the sum of CCR, both against negatives."""
    curve = oscr(data, "negative", grid="exact", queries=queries)
    return {
        "n": {"known": int(data.known.sum()), **{group: int(data.group(group).sum()) for group in GROUPS}},
        "confidence": {"negative": confidences.confidence(data, "negative")},
        "oscr": {"exact": {"negative": curve}},
    }


def _classes(test: ClassScores, shares: list[float | None], queries: Sequence[str]) -> list[dict[str, Any]]:
    counts = np.bincount(test.labels[test.known], minlength=len(test.classes)).tolist()
    totals = np.bincount(test.labels[test.known], test.target[test.known], minlength=len(test.classes))
    rates = {}
    for group in GROUPS:
        curve = oscr_curve(margins_of(test, group))
        for query in queries:
            place = None if curve is None else point_at_fpr(curve, query)
            rates[f"{group}.{query}"] = class_rates(test, curve, place)
    return [
        {
            "class": name,
            "n": n,
            "accuracy": shares[number],
            "mean_score": total / n if n and np.isfinite(total) else None,
            "ccr_at_fpr": {key: found[number] for key, found in rates.items()},
        }
        for number, (name, n, total) in enumerate(zip(test.classes, counts, totals.tolist(), strict=True))
    ]


def _check(
    classifiers: Mapping[str, ClassScores], validations: Mapping[str, ClassScores], options: ImagenetOptions
) -> None:
    if not classifiers or not options.queries or not options.grids:
        raise UsageError("There is nothing to evaluate", expected="a classifier, a grid and a query")
    if unknown := [grid for grid in options.grids if grid not in GRIDS]:
        raise UsageError("There is no such grid", expected=", ".join(GRIDS), found=str(unknown[0])[:40])
    if len({read_query(query) for query in options.queries}) < len(options.queries):
        raise UsageError("A false positive rate is asked for twice", found=",".join(options.queries)[:200])
    if strangers := [name for name in validations if name not in classifiers]:
        raise UsageError(
            "Validation scores belong to no classifier",
            expected=f"one of {', '.join(classifiers)}"[:200],
            found=strangers[0][:80],
        )
    for name, data in validations.items():
        if data.classes != classifiers[name].classes or data.kind != classifiers[name].kind:
            raise UsageError(
                "Validation and test scores are not of one classifier",
                where=name[:80],
                expected=f"{len(classifiers[name].classes)} classes, {classifiers[name].kind}",
                found=f"{len(data.classes)} classes, {data.kind}",
            )
