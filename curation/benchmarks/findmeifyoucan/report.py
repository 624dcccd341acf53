"""What the evaluation of out-of-distribution detection measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.findmeifyoucan.measures import RATES
from curation.evaluation.measures import Measure, Measured, definitions
from curation.evaluation.ood.detections import UNNAMED
from curation.evaluation.problem import Floats
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Tidy
from curation.figure_style import (
    INK,
    SERIES,
    SMALL,
    add_key,
    bins_of,
    label_outer,
    plain,
    save_figure,
    set_title,
    small_multiples,
)

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_share = partial(Measure, unit="share", undefined="there are no ID detections, or no OOD detections")
_rate = partial(
    Measure,
    unit="%",
    better="higher",
    source="Montoya et al., Find Me If You Can, appendix D",
    undefined="the split has no object, or nothing is called unknown",
    ranked=True,
)
_count = partial(Measure, unit="count")

MEASURES = (
    _share(
        "AUROC",
        "area under the ROC curve",
        "P(s_id > s_ood) + P(s_id = s_ood) / 2 over all pairs; ID positive; never inverted",
        better="higher",
        ranked=True,
    ),
    _share(
        "AUPR_trapezoid",
        "area under precision and recall, by trapezoids",
        "area by trapezoids under precision over recall, ID positive, from (0, 1); one point a distinct score "
        "(torchmetrics 0.10 with sklearn's auc, which FMIYC logs)",
        better="higher",
        ranked=True,
    ),
    _share(
        "FPR95",
        "false positive rate at 95 % true positive rate",
        "under the rule that was chosen",
        better="lower",
        ranked=True,
    ),
    _rate(
        "nOSE",
        "normalised open-set error, in %",
        "official: 100 * AOSE / N_U; paper: 100 * objects_misclassified / N_U",
        better="lower",
        bounds=(0, inf),  # Several detections may lie on one object.
    ),
    _count(
        "AOSE",
        "absolute open-set error",
        "detections of known classes whose best object they overlap, in both variants",
        better="lower",
        ranked=True,
    ),
    _rate(
        "AP_U",
        "average precision of unknown",
        "area under the precision envelope of unknown detections by falling confidence (not OOD score), ties by "
        "image id and then file order, in %",
    ),
    _rate("P_U", "precision of unknown", "TP_U / (TP_U + FP_U), in %"),
    _rate("R_U", "recall of unknown", "TP_U / N_U, in %"),
    _share(
        "AUPR_step",
        "average precision of the scores",
        "average precision: sum of recall gained * precision, one point a distinct score, ID positive",
        better="higher",
    ),
    _share(
        "FPR95_first",
        "FPR at 95 % TPR, first threshold",
        "ID positive: share of OOD scores >= tau, tau the largest score with 20 * TP >= 19 * n_id (FMIYC's code)",
        better="lower",
    ),
    _share(
        "FPR95_nearest_vos",
        "FPR at 95 % TPR, nearest threshold",
        "ID positive: share of OOD scores >= tau, tau the score whose TPR is nearest to 0.95, be it below; of equal "
        "TPR the lowest (VOS's code)",
        better="lower",
    ),
    _share(
        "FPR95_ood_positive",
        "FPR at 95 % TPR, OOD positive",
        "OOD positive: share of ID scores <= tau, tau the smallest score with 20 * (OOD scores <= tau) >= 19 * n_ood "
        "(OpenOOD, pytorch-ood)",
        better="lower",
    ),
    _count("n_unknown_gt", "objects", "N_U: all annotations of the split, crowd and group regions included"),
    _count("TP_U", "unknown detections that found an object", "unknown detections that found an object"),
    _count("FP_U", "unknown detections that found none", "unknown detections that found none"),
    _count(
        "objects_misclassified",
        "objects called known",
        "objects that no unknown detection found, and that are the best object of a known detection",
        better="lower",
    ),
    _count("objects_ignored", "objects that were not found", "N_U - TP_U - objects_misclassified", better="lower"),
)
UNKNOWN_IF = "score < threshold (strict)"
DEFINITIONS = definitions(
    MEASURES,
    population="all detections on the ID test set against all detections on the OOD split, pooled over images, "
    "whatever they overlap",
    unknown=f"a detection is called unknown where its {UNKNOWN_IF}",
    pct_images_without_predictions="100 * images of the split without any detection / images of the split, images "
    "absent from the detections file included; 2 decimals",
    wilderness_impact="left out: it has no meaning where no image shows a known class",
)
_SHOWN_DETAILS = (
    "threshold", "id_share_at_least_threshold", "images", "pct_images_without_predictions", "id_detections",
    "ood_detections", "unknown_detections",
)  # fmt: skip
TABLES = (
    Tidy(
        "details",
        (Column("detail"), Column("value", "count", show=".7g")),
        title="Thresholds and counts",
        printed=lambda row: row[0] in _SHOWN_DETAILS,
    ),
    Tidy(
        "intervals",
        (Column("measure"), *(Column(name, "score", show=".3f") for name in ("estimate", "low", "high")),
         Column("undefined", "count", text=False)),
        title="95 % bootstrap intervals over images",
    ),
)  # fmt: skip
"""What a result has beside its measures."""
BINS = 60
_TAIL = 0.001
_PANELS = {"AUROC": 1.0, "FPR95": 1.0, "AP_U": 100.0, "nOSE": 100.0, "P_U": 100.0, "R_U": 100.0}
"""The metrics of the bars, with the value of a full bar."""
_LOWER_IS_BETTER = ("FPR95", "nOSE")


def detail(found: Measured | None, name: str) -> float | None:
    """Return a number of the table ``details``, None where it is undefined or nothing was measured."""
    table = found.tables["details"] if found else {"detail": (), "value": ()}
    return dict(zip(table["detail"], table["value"], strict=True)).get(name)


def _drawings(result: Result) -> Iterator[Figure]:
    # The paper's rules are drawn as bars, what the official code says otherwise as lines on them.
    places = list(dict.fromkeys((one.split, one.score) for one in result.scored))
    bars = sorted(result.scored, key=lambda one: (places.index((one.split, one.score)), one.variant != "paper"))
    yield Figure("metric_bars", partial(metric_bars, bars))
    for number, (method, by_split) in enumerate(result.columns.items()):
        is_drawn = any(all(map(len, pair)) for pair in by_split.values())
        thresholds = {
            one.split: detail(one.found, "threshold") for one in result.scored if (one.score or UNNAMED) == method
        }
        yield Figure(
            f"scores_{_stem(method, number)}",
            partial(score_histograms, by_split, thresholds, method) if is_drawn else None,
            f"no histogram of {method}: a split needs ID and OOD detections",
        )


def _stem(method: str, number: int) -> str:
    """Return a method's name where it can be part of a file name, else its place."""
    return method if method.isascii() and method.isidentifier() and len(method) <= 40 else f"{number + 1}"


def metric_bars(scored: Sequence[Scored], stem: Path) -> list[Path]:
    """Draw AUROC, FPR95, AP_U, nOSE, P_U and R_U as bars (FMIYC, Figs. 4 and 5).

    One split and one score: a bar a metric. Else a panel a metric, a group a split and a bar a score. A metric without
    any value has no panel, and the title says why; where none has a value, each has one.

    Parameters
    ----------
    scored : sequence of Scored
        The first variant as bars, another as a line on each bar where it says something else.
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV. Undefined values are empty cells with a reason there and bars with the word "undefined" here.
    """
    values: dict[tuple[str, str, str], dict[str, float | None]] = {}
    rows = []
    for one in scored:
        place = one.split, one.score or UNNAMED, one.variant
        measured = {row.measure: row for row in (one.found.values if one.found else ())}
        values[place] = {
            name: detail(one.found, f"{name}_unrounded") if name in RATES else measured[name].value for name in _PANELS
        }
        rows += [
            (*place, name, value, "" if value is not None else measured[name].undefined)
            for name, value in values[place].items()
        ]
    splits, methods, variants = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    alone = len(splits) == len(methods) == 1
    has_value = [name for name in _PANELS if any(one[name] is not None for one in values.values())]
    panels = list(_PANELS) if alone or not has_value else has_value

    def draw() -> matplotlib.figure.Figure:
        if alone:
            figure, axes = small_multiples(1, height=2.1)
            found = {(_arrowed(name), "", one[2]): values[one][name] for one in values for name in _PANELS}
            _draw_bars(axes[0], found, {_arrowed(name): full for name, full in _PANELS.items()})
        else:
            height = 0.155 * len(splits) * (len(methods) + 0.6) + 0.6
            figure, axes = small_multiples(len(panels), height=height, sharey=True)
            for axis, name in zip(axes, panels, strict=True):
                of_name = {place: one[name] for place, one in values.items()}
                _draw_bars(axis, of_name, dict.fromkeys(splits, _PANELS[name]))
                axis.set_title(_arrowed(name))
        if len(variants) > 1 or len(methods) > 1:
            add_key(figure, axes)
        rule = scored[0].settings["fpr"].replace("_", " ")
        about = (("split", splits), ("score", methods), ("variant", variants))
        single = [f"{what} {of[0]}" for what, of in about if len(of) == 1]
        units = "AUROC and FPR95 as shares, all else in %"
        note = ", ".join([*single, f"FPR95 rule {rule}", units, "arrow: the better direction"])
        undefined = [(name, reason) for *_, name, _, reason in rows if name not in panels]
        set_title(figure, "Out-of-distribution metrics", "; ".join([*_in_words(undefined), note]))
        return figure

    return save_figure(draw, stem, ("split", "score", "variant", "metric", "value", "undefined"), rows)


def score_histograms(
    scores: Mapping[str, tuple[Floats, Floats]], thresholds: Mapping[str, float | None], method: str, stem: Path
) -> list[Path]:
    """Draw the distributions of ID and OOD scores of each split, with the threshold between known and unknown.

    Parameters
    ----------
    scores : mapping of split to (ID scores, OOD scores)
        Not all empty; of a split that lacks either there is no panel, and the title says so. The outermost 0.1 % at
        either end are counted in the first and the last bin.
    thresholds : mapping of split to float or None
    method : str
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV with the counts of each bin.
    """
    counted = {split: _histogram(*pair) for split, pair in scores.items() if all(map(len, pair))}
    lacking = [split for split in scores if split not in counted]
    note = f"; no ID or no OOD detections: {', '.join(lacking)}" if lacking else ""
    rows = [
        (split, *row, thresholds[split])
        for split, (edges, ids, oods) in counted.items()
        for row in zip(edges[:-1].tolist(), edges[1:].tolist(), ids.tolist(), oods.tolist(), strict=True)
    ]

    def draw() -> matplotlib.figure.Figure:
        figure, axes = small_multiples(len(counted), height=2.3)
        for axis, (split, histogram) in zip(axes, counted.items(), strict=True):
            _draw_histogram(axis, plain(split), histogram, thresholds[split])
        label_outer(axes, f"{plain(method)} (higher is more ID)", "share of detections (%)")
        set_title(figure, "Scores of ID and OOD detections", f"score {method}{note}")
        return figure

    header = ("split", "from", "to", "id_detections", "ood_detections", "threshold")
    return save_figure(draw, stem, header, rows)


def _in_words(undefined: Iterable[tuple[str, str]]) -> list[str]:
    """Return which metrics have no value, for each reason."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in undefined:
        names.setdefault(reason, {})[name] = None
    return [f"undefined: {', '.join(found)}, since {reason}" for reason, found in names.items()]


def _arrowed(name: str) -> str:
    return f"{name} {'↓' if name in _LOWER_IS_BETTER else '↑'}"


def _draw_bars(axis: Axes, values: Mapping[tuple[str, str, str], float | None], full: Mapping[str, float]) -> None:
    """Draw values by row, series and variant as lying bars, a second variant as a line; `full` of a row is one long."""
    rows, series, variants = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    lengths = {place: None if value is None else value / full[place[0]] for place, value in values.items()}
    size = 0.82 / len(series)
    for number, name in enumerate(series):
        at = [place + (number - (len(series) - 1) / 2) * size for place in range(len(rows))]
        first, *others = ([lengths.get((row, name, variant)) for row in rows] for variant in variants)
        label = plain(name) if len(series) > 1 else f"variant {variants[0]}"
        axis.barh(at, [length or 0.0 for length in first], 0.9 * size, color=SERIES[number % len(SERIES)], label=label)
        for variant, found in zip(variants[1:], others, strict=True):
            differing = [place for place, length in enumerate(found) if length not in (None, first[place])]
            if differing:
                axis.plot(
                    [found[place] or 0.0 for place in differing], [at[place] for place in differing], "|", color=INK,
                    markeredgewidth=1.5, markersize=max(5.0, 11 * size), label=f"variant {variant}, where it differs",
                )  # fmt: skip
        for row, y, *found in zip(rows, at, first, *others, strict=True):
            value = values.get((row, name, variants[0]))
            text = "undefined" if value is None else f"{value:.{3 if full[row] == 1 else 1}f}"
            end = max(length or 0.0 for length in found)
            axis.text(end + 0.02, y, text, va="center", fontsize=SMALL, color=INK)
    axis.set_xlim(0, 1.2 * max(1.0, *(length or 0.0 for length in lengths.values())))
    # Rows of different units share no scale; each bar has its number.
    scales = set(full.values())
    ticks = (0.0, 0.5, 1.0)
    axis.set_xticks(ticks, [f"{place * max(scales):g}" if len(scales) == 1 else "" for place in ticks])
    axis.set_yticks(range(len(rows)), [plain(row, 24) for row in rows])
    axis.set_ylim(len(rows) - 0.45, -0.55)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)


def _histogram(ids: Floats, oods: Floats) -> tuple[Floats, Any, Any]:
    pooled = np.concatenate([ids, oods])
    low, high = np.quantile(pooled, [_TAIL, 1 - _TAIL]).tolist()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins_of(min(len(ids), len(oods)), BINS) + 1)
    counts = [np.histogram(np.clip(values, low, high), edges)[0] for values in (ids, oods)]
    return edges, counts[0], counts[1]


def _draw_histogram(axis: Axes, split: str, histogram: tuple[Floats, Any, Any], threshold: float | None) -> None:
    edges, *counts = histogram
    for values, colour, label in zip(counts, SERIES, ("ID", "OOD"), strict=False):
        share = 100 * values / values.sum()
        axis.stairs(share, edges, color=colour, fill=True, alpha=0.28)
        axis.stairs(share, edges, color=colour, linewidth=1.4, label=f"{label}, n = {int(values.sum()):,}")
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        axis.axvline(threshold, color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}")
    elif threshold is not None:
        axis.plot([], [], color=INK, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.4g}, outside")
    axis.set_title(split)
    axis.set_ylim(0, 1.5 * axis.get_ylim()[1])
    axis.legend(loc="upper left", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")


REPORT = Report(
    "findmeifyoucan",
    MEASURES,
    drawings=_drawings,
    # 2: P_U is undefined without objects.
    algorithm=2,
    files=tuple(one.name for one in TABLES),
    figures=("metric_bars", "scores_*"),
    tidy=TABLES,
    places=("split", "score", "variant"),
)
