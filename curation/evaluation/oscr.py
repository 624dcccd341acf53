"""Measures of open-set classifiers at thresholds: OSCR, known samples answered right against others, and accuracy.

``CCR(t)``: share of known samples whose highest score is that of their class and lies above t. ``FPR(t)``: share of the
negative, or of the unknown, samples whose highest known score lies above t (Palechor et al., WACV 2023, eq. 6; Dhamija
et al., NeurIPS 2018). Which thresholds count says a variant (`VARIANTS`). Open-set accuracy (OSA, OOSA) is one number
at one threshold for known samples answered right and others rejected. Confidence is high on known samples and low on
others (Palechor et al., eq. 7). Figures: the curves, and how scores are spread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.core.errors import EvaluationError, UsageError
from curation.core.figures import (
    PAGE,
    SERIES,
    SMALL,
    add_key,
    label_outer,
    new_figure,
    plain,
    save_figure,
    set_title,
    small_multiples,
)
from curation.evaluation.class_scores import GROUPS, ClassScores
from curation.evaluation.measures import facts_of, sum_in_order
from curation.evaluation.problem import Bools, Floats, Int64s
from curation.evaluation.separability import RankedScores, auroc

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Variant = Literal["exact", "paper", "comparison", "table2"]
_FACTS = facts_of("curation.evaluation.classification")
VARIANTS: dict[str, str] = _FACTS["variants"]
QUERIES = ("0.001", "0.01", "0.1", "1")
"""False positive rates at which the paper reports CCR (Table 2)."""

_LONGEST_QUERY = 12
# Two digits of exponent: a fraction of more takes the machine's memory before it can be refused.
_DECIMAL = re.compile(r"(?=\.?[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class OscrCurve:
    """Points of the curve by ascending threshold: both rates never rise.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (p,)
        The first of the exact curve is ``-inf``.
    correct, other : ndarray of int64, shape (p,)
        Known samples that are right and pass; samples of the other group that pass.
    n_known, n_other : int
    variant : {"exact", "paper", "comparison", "table2"}
    """

    thresholds: Floats
    correct: Int64s
    other: Int64s
    n_known: int
    n_other: int
    variant: Variant

    @property
    def ccr(self) -> Floats:
        """Correct classification rate, shape (p,)."""
        return np.asarray(self.correct / self.n_known)

    @property
    def fpr(self) -> Floats:
        """False positive rate, shape (p,)."""
        return np.asarray(self.other / self.n_other)


@dataclass(frozen=True, slots=True)
class Margins:
    """What the curve depends on: three sorted columns of scores.

    Attributes
    ----------
    correct : ndarray of float64
        Score of the true class of each known sample that is answered right.
    target : ndarray of float64, shape (n_known,)
        The same of every known sample.
    other : ndarray of float64, shape (n_other,)
        Highest score of each sample of the other group.
    """

    correct: Floats
    target: Floats
    other: Floats


def margins_of(data: ClassScores, group: str, *, with_background: bool = False) -> Margins:
    """Return sorted scores of right answers, scores of all true classes, and highest scores of the other group.

    Parameters
    ----------
    group : {"negative", "unknown"}
    with_background : bool
        Let the background column take part like a class: a known sample below it is wrong, and a sample of the other
        group passes by its background score too (variant ``table2``).
    """
    known, other = data.known, data.group(group)
    right, highest = data.right, data.highest
    if with_background and data.background is not None:
        right = right & (highest >= data.background)
        highest = np.maximum(highest, data.background)
    return Margins(
        correct=np.sort(data.target[known & right]), target=np.sort(data.target[known]), other=np.sort(highest[other])
    )


def oscr_curve(margins: Margins, variant: Variant = "exact") -> OscrCurve | None:
    """Return the curve; None where a group is empty or the variant holds no threshold."""
    thresholds = _thresholds(margins, variant)
    if not len(margins.target) or not len(margins.other) or not len(thresholds):
        return None
    side: Literal["left", "right"] = "left" if variant == "comparison" else "right"
    return OscrCurve(
        thresholds=thresholds,
        correct=len(margins.correct) - np.searchsorted(margins.correct, thresholds, side=side),
        other=len(margins.other) - np.searchsorted(margins.other, thresholds, side=side),
        n_known=len(margins.target),
        n_other=len(margins.other),
        variant=variant,
    )


def point_at_fpr(curve: OscrCurve, query: str) -> int | None:
    """Return the point at a false positive rate under the rule of its variant (see `VARIANTS`), or None.

    Parameters
    ----------
    query : str
        Decimal text, 0 to 1.

    Returns
    -------
    int or None
        Position in the curve's columns.
    """
    rate = read_query(query)
    if curve.variant == "exact":
        # In whole samples: 0.1 * 30 is more than 3 in floats.
        return int(np.argmax(curve.other <= int(rate * curve.n_other)))
    target, fpr = float(rate), curve.fpr
    if curve.variant == "comparison":
        below = fpr < target
        return int(np.argmax(below)) if below.any() else None
    if not rate:
        return None
    point = int(np.argmin(np.abs(fpr - target)))
    away = round(100 * abs(float(fpr[point]) - target) / target, 1)
    return None if away >= 10 else point


def read_query(text: str) -> Fraction:
    """Return a false positive rate exactly; anything but a decimal number from 0 to 1 is a `UsageError`."""
    usable = len(text) <= _LONGEST_QUERY and _DECIMAL.fullmatch(text) is not None
    value = Fraction(text) if usable else Fraction(-1)
    if not 0 <= value <= 1:
        raise UsageError(
            "A false positive rate is not usable", expected="a decimal number from 0 to 1", found=repr(text)[:40]
        )
    return value


def oscr(
    data: ClassScores, group: str, *, variant: Variant = "exact", queries: tuple[str, ...] = QUERIES
) -> list[dict[str, Any]]:
    """Return a row for each query: CCR of a group at a false positive rate, with related values.

    Returns
    -------
    list of dict
        ``fpr``, the query; ``CCR``; ``by_class``, each known class's own CCR at the same threshold, and ``macro_CCR``,
        their mean; ``threshold`` (None where every sample passes) and ``reached_fpr``; ``undefined``, why there is no
        CCR; ``smallest_fpr`` above zero that any threshold reaches.
    """
    margins = margins_of(data, group, with_background=variant == "table2")
    curve = oscr_curve(margins, variant)
    smallest = float((margins.other == margins.other[-1]).mean()) if len(margins.other) else None
    rows = []
    for query in queries:
        point = None if curve is None else point_at_fpr(curve, query)
        by_class = class_rates(data, curve, point)
        row = {"fpr": query, "by_class": by_class, "macro_CCR": _mean(by_class), "smallest_fpr": smallest}
        row |= {"CCR": None, "threshold": None, "reached_fpr": None, "undefined": ""}
        if curve is None or point is None:
            missing = "the variant has no threshold" if curve is None else "no threshold of the variant reaches it"
            row["undefined"] = _empty(margins, group) or missing
        else:
            row["CCR"] = float(curve.correct[point] / curve.n_known)
            row["threshold"] = _finite(float(curve.thresholds[point]))
            row["reached_fpr"] = float(curve.other[point] / curve.n_other)
        rows.append(row)
    return rows


def class_rates(data: ClassScores, curve: OscrCurve | None, point: int | None) -> list[float | None]:
    """Return the CCR of each known class at a point of the curve; None for a class without samples, or without a point.

    Returns
    -------
    list of float or None, length K
    """
    if curve is None or point is None:
        return [None] * len(data.classes)
    right, threshold = data.right, curve.thresholds[point]
    if curve.variant == "table2" and data.background is not None:
        right = right & (data.highest >= data.background)
    above = data.highest >= threshold if curve.variant == "comparison" else data.highest > threshold
    return shares_by_class(data, right & above)


def shares_by_class(data: ClassScores, passed: Bools) -> list[float | None]:
    """Return the share of each known class's samples that are among `passed`; None for a class without samples."""
    counts = np.bincount(data.labels[data.known], minlength=len(data.classes))
    hits = np.bincount(data.labels[data.known & passed], minlength=len(data.classes))
    return [hit / n if n else None for hit, n in zip(hits.tolist(), counts.tolist(), strict=True)]


def auroc_of(data: ClassScores, group: str) -> dict[str, float | None]:
    """Return the AUROC of known samples against a group, in two readings.

    Returns
    -------
    dict
        ``AUROC``: highest known score of known samples against the group's. ``AUROC_rest_as_known``: all samples
        outside the group count as known, the negatives among them, as openset-imagenet computes it.
    """
    other = data.group(group)
    readings = {"AUROC": data.known, "AUROC_rest_as_known": ~other}
    return {
        name: auroc(RankedScores.from_scores(data.highest[known], data.highest[other]))
        if known.any() and other.any()
        else None
        for name, known in readings.items()
    }


def _thresholds(margins: Margins, variant: Variant) -> Floats:
    if variant in ("paper", "table2"):
        return np.unique(margins.target)[:-1]
    if variant == "comparison":
        return np.unique(margins.other)
    return np.concatenate([[-np.inf], np.union1d(margins.correct, margins.other)])


def _empty(margins: Margins, group: str) -> str:
    """Return which kind of sample is missing; "" if there are known samples and others."""
    if not len(margins.target):
        return "no sample of a known class"
    return "" if len(margins.other) else f"no {group} sample"


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum_in_order(defined) / len(defined) if defined else None


Rule = Literal["strict", "inclusive"]
ACCURACY_RULES: dict[str, str] = _FACTS["accuracy_rules"]


def openset_accuracy(
    test: ClassScores, group: str, validation: ClassScores | None = None, *, rule: Rule = "strict"
) -> dict[str, Any]:
    """Return OSA of known samples and one group.

    Parameters
    ----------
    group : {"negative", "unknown"}
    validation : ClassScores, optional
        Known and negative samples on which OOSA's threshold is chosen.

    Returns
    -------
    dict
        ``iosa`` with ``iosa_threshold``; ``oosa`` with ``oosa_threshold``; undefined is None, with ``reason``.
    """
    margins = margins_of(test, group)
    result: dict[str, Any] = dict.fromkeys(("iosa", "iosa_threshold", "oosa", "oosa_threshold"))
    if (best := best_threshold(margins, rule)) is None:
        return result | {"reason": _empty(margins, group)}
    chosen = None if validation is None else best_threshold(margins_of(validation, "negative"), rule)
    result |= {"iosa": accuracy_at(margins, best, rule), "iosa_threshold": _finite(best)}
    if chosen is None:
        missing = "no validation scores" if validation is None else "no known or no negative sample in validation"
        return result | {"reason": f"oosa: {missing}"}
    return result | {"oosa": accuracy_at(margins, chosen, rule), "oosa_threshold": _finite(chosen)}


def best_threshold(margins: Margins, rule: Rule = "strict") -> float | None:
    """Return the lowest of the thresholds with the highest OSA; None where a group is empty."""
    if not len(margins.target) or not len(margins.other):
        return None
    strict = rule == "strict"
    thresholds = _thresholds(margins, "exact") if strict else np.union1d(margins.target, margins.other)
    return float(thresholds[np.argmax(_hits(margins, thresholds, rule))])


def accuracy_at(margins: Margins, threshold: float, rule: Rule = "strict") -> float:
    """Return OSA at a threshold; both groups must have samples."""
    hits = int(_hits(margins, np.array([threshold]), rule)[0])
    return hits / (len(margins.target) + len(margins.other))


def _hits(margins: Margins, thresholds: Floats, rule: Rule) -> Any:
    side: Literal["left", "right"] = "right" if rule == "strict" else "left"
    passed = len(margins.correct) - np.searchsorted(margins.correct, thresholds, side=side)
    return passed + np.searchsorted(margins.other, thresholds, side=side)


def _finite(threshold: float) -> float | None:
    return threshold if np.isfinite(threshold) else None


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
        result["reason"] = "the scores are not probabilities"
    elif beyond is None or plus is None:
        result["reason"] = f"no {group} sample" if beyond is None else "no sample of a known class"
    return result


BINS = 40
_KINDS = {"known": SERIES[0], "negative": SERIES[2], "unknown": SERIES[1]}


def oscr_figure(
    classifiers: Mapping[str, ClassScores], stem: Path, *, variant: Variant = "exact", note: str = ""
) -> list[Path]:
    """Draw the OSCR curves of classifiers, a row of panels for each group, false positive rates logarithmic and linear.

    The exact curve is a step: between two rates that occur, the lower one's CCR holds. The CSV has every point of every
    curve, a row a threshold of the variant, by falling threshold: both rates rise. The last threshold of the exact
    curve is ``-inf``.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
        The order sets the colours. Under ``table2`` only classifiers with a background column have a curve.
    stem : Path
        Path without suffix.
    variant : {"exact", "paper", "comparison", "table2"}
    note : str
        Added to the title.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.

    Raises
    ------
    EvaluationError
        No classifier has both known samples and others.
    """
    curves = {
        group: {name: curve for name, data in classifiers.items() if (curve := curve_of(data, group, variant))}
        for group in GROUPS
    }
    curves = {group: by_name for group, by_name in curves.items() if by_name}
    if not curves:
        raise EvaluationError("A curve needs known and other samples", where=str(stem))
    rows = [
        (group, name, *point)
        for group, by_name in curves.items()
        for name, curve in by_name.items()
        for point in np.column_stack([curve.thresholds, curve.ccr, curve.fpr])[::-1].tolist()
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(2 * len(curves), most=2, height=2.2, sharey=True)
        for line, (group, by_name) in enumerate(curves.items()):
            _draw_curves(axes[2 * line], by_name, list(classifiers), log=True)
            _draw_curves(axes[2 * line + 1], by_name, list(classifiers), log=False)
            axes[2 * line].set_title(f"{group} samples (log scale)")
            axes[2 * line + 1].set_title(f"{group} samples")
        label_outer(axes, "false positive rate", "correct classification rate")
        add_key(figure, axes)
        set_title(figure, f"Open-set classification rate, {variant} variant", note)
        return figure

    return save_figure(draw, stem, ("group", "classifier", "threshold", "ccr", "fpr"), rows)


def protocols_figure(
    protocols: Mapping[str, Mapping[str, ClassScores]], stem: Path, *, variant: Variant = "exact", note: str = ""
) -> list[Path]:
    """Draw OSCR curves of several protocols in one figure: a column a protocol, a line a group, rates logarithmic.

    As Fig. 2 of "Large-Scale Open-Set Classification Protocols for ImageNet" for P1, P2 and P3. A classifier has one
    colour in all panels.

    Parameters
    ----------
    protocols : mapping of name to classifiers
        ``result.columns["scores"]`` of each evaluation.
    stem, variant, note
        See `oscr_figure`.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.

    Raises
    ------
    EvaluationError
        A protocol has no curve.
    """
    curves = {
        (group, protocol): {name: curve for name, data in each.items() if (curve := curve_of(data, group, variant))}
        for group in GROUPS
        for protocol, each in protocols.items()
    }
    groups = [group for group in GROUPS if any(curves[group, protocol] for protocol in protocols)]
    for protocol in protocols:
        if not any(curves[group, protocol] for group in groups):
            raise EvaluationError("A curve needs known and other samples", where=f"{stem}: {protocol}"[:200])
    names = list(dict.fromkeys(name for each in protocols.values() for name in each))
    rows = [
        (protocol, group, name, *point)
        for (group, protocol), by_name in curves.items()
        for name, curve in by_name.items()
        for point in np.column_stack([curve.thresholds, curve.ccr, curve.fpr])[::-1].tolist()
    ]

    def draw() -> Figure:
        figure = new_figure(PAGE, 2.1 * len(groups) + 0.6)
        grid = figure.subplots(len(groups), len(protocols), squeeze=False, sharey=True)
        for group, line in zip(groups, grid, strict=True):
            for protocol, axis in zip(protocols, line, strict=True):
                axis.set_title(f"{plain(protocol)}, {group} samples")
                if curves[group, protocol]:
                    _draw_curves(axis, curves[group, protocol], names, log=True)
                else:
                    axis.text(0.5, 0.5, f"no {group} samples", ha="center", transform=axis.transAxes, fontsize=SMALL)
        axes = grid.ravel().tolist()
        label_outer(axes, "false positive rate", "correct classification rate")
        add_key(figure, axes)
        set_title(figure, f"Open-set classification rate, {variant} variant", note)
        return figure

    return save_figure(draw, stem, ("protocol", "group", "classifier", "threshold", "ccr", "fpr"), rows)


def score_histograms(classifiers: Mapping[str, ClassScores], stem: Path, *, note: str = "") -> list[Path]:
    """Draw histograms of scores: of the true class for known samples, the highest known score for the others.

    Forty bins over [0, 1] for probabilities, else over the range of scores (see `oscr_figure` for the parameters).
    """
    columns = {name: _columns(data) for name, data in classifiers.items()}
    edges = {name: _edges(data, columns[name]) for name, data in classifiers.items()}
    counts = {
        name: {kind: np.histogram(values, edges[name])[0] for kind, values in samples.items()}
        for name, samples in columns.items()
    }
    rows = [
        (name, kind, low, high, count)
        for name, samples in counts.items()
        for kind, heights in samples.items()
        for low, high, count in zip(edges[name][:-1].tolist(), edges[name][1:].tolist(), heights.tolist(), strict=True)
    ]

    def draw() -> Figure:
        figure, axes = small_multiples(len(classifiers), height=1.9)
        for axis, (name, by_kind) in zip(axes, counts.items(), strict=True):
            for kind, heights in by_kind.items():
                _draw_histogram(axis, edges[name], heights, kind)
            axis.set(title=plain(name), ylim=(0, None))
        label_outer(axes, "score", "share of samples (%)")
        for axis, data in zip(axes, classifiers.values(), strict=True):
            axis.set_xlabel("score" if data.kind == "real" else "probability")
        if len({label for axis in axes for label in axis.get_legend_handles_labels()[1]}) <= len(_KINDS):
            add_key(figure, axes)
        else:
            for axis in axes:
                axis.set_ylim(0, 1.5 * axis.get_ylim()[1])
                axis.legend(loc="upper left", fontsize=SMALL)
        meaning = "known: score of the true class; others: highest"
        set_title(figure, "Scores of known and other samples", "; ".join(filter(None, (meaning, note))))
        return figure

    return save_figure(draw, stem, ("classifier", "samples", "from", "to", "count"), rows)


def curve_of(data: ClassScores, group: str, variant: Variant) -> OscrCurve | None:
    """Return a classifier's curve; None if a group is empty, or the variant has no threshold or does not score it."""
    if variant == "table2" and data.background is None:
        return None
    return oscr_curve(margins_of(data, group, with_background=variant == "table2"), variant)


def _drawn_points(curve: OscrCurve) -> Floats:
    """Return CCR and FPR by rising FPR, shape (p, 2): of equal FPR the highest CCR."""
    order = np.arange(len(curve.thresholds))[::-1]
    other = curve.other[order]
    last = np.append(other[1:] != other[:-1], True)
    rows = order[last] if curve.variant == "exact" else order
    return np.column_stack([curve.ccr[rows], curve.fpr[rows]])


def _draw_curves(axis: Axes, curves: Mapping[str, OscrCurve], names: list[str], *, log: bool) -> None:
    # Every rate below one sample is the rate zero, which a logarithm cannot show: it is drawn at half a sample.
    floor = 0.5 / max(curve.n_other for curve in curves.values())
    for name, curve in curves.items():
        number = names.index(name)
        points = _drawn_points(curve)
        x = np.maximum(points[:, 1], floor) if log else points[:, 1]
        axis.plot(
            x, points[:, 0], color=SERIES[number % len(SERIES)], label=plain(name),
            linestyle=("-", "--", "-.")[number // len(SERIES) % 3],
            drawstyle="steps-post" if curve.variant == "exact" else "default",
        )  # fmt: skip
    axis.set_ylim(0, 1.02)
    if log:
        axis.set_xscale("log")
        axis.set_xlim(floor, 1.05)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.xaxis.set_minor_formatter(lambda value, _: "")
    else:
        axis.set_xlim(-0.01, 1.02)


def _columns(data: ClassScores) -> dict[str, Floats]:
    columns = {"known": data.target[data.known]}
    columns |= {group: data.highest[data.group(group)] for group in GROUPS}
    return {kind: values for kind, values in columns.items() if len(values)}


def _edges(data: ClassScores, columns: Mapping[str, Floats]) -> Floats:
    if data.kind != "real":
        # A probability may lie a rounding above 1.
        edges = np.linspace(0, 1, BINS + 1)
        edges[-1] += 1e-6
        return edges
    values = np.concatenate([column[np.isfinite(column)] for column in columns.values()])
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    scale = max(abs(low), abs(high))
    if high - low <= scale * 1e-9:
        # Forty bins need room between neighbouring floats.
        room = max(0.5, scale * 1e-6)
        low, high = low - room, high + room
    return np.linspace(low, high, BINS + 1)


def _draw_histogram(axis: Axes, edges: Floats, heights: Any, kind: str) -> None:
    shares = 100 * heights / max(int(heights.sum()), 1)
    axis.stairs(shares, edges, color=_KINDS[kind], linewidth=1.4, label=f"{kind} (n = {int(heights.sum()):,})")
    axis.stairs(shares, edges, color=_KINDS[kind], alpha=0.10, fill=True)
