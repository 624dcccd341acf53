"""A world for open-set classifiers: K = 5, scores in 64ths, with and without a background column, in loops.

Scores are exact in binary, and rows sum to 1 exactly; ties between known and other samples are common, and some scores
saturate at 1 on both sides.
"""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.evaluation import oscr_cases
from tests.worlds.drawing import Draws

N_CLASSES, PARTS = 5, 64
GROUPS = {"negative": -1, "unknown": -2}
QUERIES = ("0.001", "0.05", "0.1", "0.25", "0.5", "1")
CLASSIFIERS = ("softmax", "background")
GRIDS = ("exact", "paper", "comparison", "table2")


def drawn(name: str, part: str = "test") -> tuple[list[int], list[list[Fraction]]]:
    """Return labels and probabilities; the last column of ``background`` is the background class."""
    draws = Draws(f"imagenet/{name}/{part}")
    columns = N_CLASSES + (name == "background")
    labels, scores = [], []
    for place in range(90 if part == "test" else 50):
        label = draws.among((*range(N_CLASSES), *range(N_CLASSES), -1, -1, -1, -2, -2, -2))
        if part == "val" and label == -2:
            label = -1
        best = label if label >= 0 and draws.below(4) else draws.below(columns)
        counts = [draws.below(8) for _ in range(columns)]
        if place % 15 == 0:
            counts = [0] * columns
        counts[best] += PARTS - sum(counts)
        labels.append(label)
        scores.append([Fraction(count, PARTS) for count in counts])
    return labels, scores


def files(folder: Path) -> dict[str, Path]:
    """Write ``.csv`` files of both classifiers: test and validation scores."""
    paths = {}
    for name in CLASSIFIERS:
        for part in ("test", "val"):
            labels, scores = drawn(name, part)
            head = ["gt", *(f"score_{k}" for k in range(len(scores[0])))]
            lines = [",".join(head)] + [
                ",".join([str(label), *(repr(float(score)) for score in row)])
                for label, row in zip(labels, scores, strict=True)
            ]
            paths[f"{name}_{part}"] = folder / f"{name}_{part}.csv"
            paths[f"{name}_{part}"].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def expected() -> dict[str, Any]:
    """Return every number of both classifiers, on every grid."""
    return {name: of_classifier(name) for name in CLASSIFIERS}


def of_classifier(name: str) -> dict[str, Any]:
    labels, scores = drawn(name)
    highest = [max(row[:N_CLASSES]) for row in scores]
    answers = [row[:N_CLASSES].index(max(row[:N_CLASSES])) for row in scores]
    known = [k for k, label in enumerate(labels) if label >= 0]
    right = [k for k in known if answers[k] == labels[k]]
    shares = [Fraction(sum(labels[k] == one for k in right), labels.count(one)) for one in range(N_CLASSES)]
    result: dict[str, Any] = {
        "n": {"known": len(known), **{group: labels.count(code) for group, code in GROUPS.items()}},
        "accuracy": Fraction(len(right), len(known)),
        "macro_accuracy": sum(shares, Fraction(0)) / N_CLASSES,
        "auroc": {},
        "confidence": {},
        "oscr": {grid: {} for grid in GRIDS if grid != "table2" or name == "background"},
        "openset_accuracy": {},
    }
    for group, code in GROUPS.items():
        others = [highest[k] for k, label in enumerate(labels) if label == code]
        rest = [highest[k] for k, label in enumerate(labels) if label != code]
        result["auroc"][group] = {
            "auroc": auroc([highest[k] for k in known], others),
            "auroc_rest_as_known": auroc(rest, others),
        }
        plus = sum((scores[k][labels[k]] for k in known), Fraction(0)) / len(known)
        beyond = sum((1 - one for one in others), Fraction(0)) / len(others)
        offset = Fraction(1, N_CLASSES) if name == "softmax" else Fraction(0)
        result["confidence"][group] = {
            "gamma_plus": plus,
            "gamma_minus": beyond + offset,
            "gamma": (plus + beyond + offset) / 2,
        }
        for grid, found in result["oscr"].items():
            found[group] = on_grid(labels, scores, code, grid)
        test = (labels, scores, code)
        validation = (*drawn(name, "val"), -1)
        result["openset_accuracy"][group] = {
            rule: open_set_accuracy(test, validation, rule) for rule in ("strict", "inclusive")
        }
    return result


def auroc(known: list[Fraction], others: list[Fraction]) -> Fraction:
    """Return the share of pairs in which the known sample scores higher, ties half."""
    won = sum(((a > b) + Fraction(a == b, 2) for a in known for b in others), Fraction(0))
    return won / (len(known) * len(others))


def on_grid(labels: list[int], scores: list[list[Fraction]], code: int, grid: str) -> dict[str, Any]:
    with_background = grid == "table2"
    grid = "paper" if with_background else grid
    known, others = oscr_cases.samples(labels, scores, N_CLASSES, code, with_background=with_background)
    points = oscr_cases.curve(known, others, grid)
    chosen = {query: oscr_cases.point_at(points, float(query), grid) for query in QUERIES}
    rates = {query: point and point[1] for query, point in chosen.items()}
    defined = [rate for rate in rates.values() if rate is not None]
    return {
        "n": len(others),
        "ccr_at_fpr": rates,
        "macro_ccr_at_fpr": {
            query: point and by_class(labels, known, point[0], grid) for query, point in chosen.items()
        },
        "sum_ccr": {"value": sum(defined) if defined else None, "of": len(defined)},
    }


def by_class(labels: list[int], known: list[tuple[float, bool]], threshold: float, grid: str) -> Fraction:
    """Return the mean over known classes of the share of each one's samples that are right beyond the threshold."""
    of = [label for label in labels if label >= 0]
    hits = [
        label
        for label, (score, right) in zip(of, known, strict=True)
        if right and (score >= threshold if grid == "comparison" else score > threshold)
    ]
    return sum((Fraction(hits.count(label), of.count(label)) for label in set(of)), Fraction(0)) / len(set(of))


Sample = tuple[list[int], list[list[Fraction]], int]


def open_set_accuracy(test: Sample, validation: Sample, rule: str) -> dict[str, Any]:
    """Return the highest share of right decisions over thresholds, and that at validation's best threshold."""
    lowest = -math.inf

    def thresholds(sample: Sample) -> list[float]:
        labels, scores, code = sample
        known, others = oscr_cases.samples(labels, scores, N_CLASSES, code)
        chosen = {float(one) for one in others}
        chosen |= {float(score) for score, right in known if right or rule == "inclusive"}
        return sorted(chosen | ({lowest} if rule == "strict" else set()))

    def share(sample: Sample, threshold: float) -> Fraction:
        labels, scores, code = sample
        known, others = oscr_cases.samples(labels, scores, N_CLASSES, code)

        def passes(score: float) -> bool:
            return score > threshold if rule == "strict" else score >= threshold

        hits = sum(right and passes(score) for score, right in known) + sum(not passes(one) for one in others)
        return Fraction(hits, len(known) + len(others))

    best = max(thresholds(test), key=lambda one: (share(test, one), -one))
    chosen = max(thresholds(validation), key=lambda one: (share(validation, one), -one))
    return {
        "iosa": share(test, best),
        "iosa_threshold": None if best == lowest else best,
        "oosa": share(test, chosen),
        "oosa_threshold": None if chosen == lowest else chosen,
    }
