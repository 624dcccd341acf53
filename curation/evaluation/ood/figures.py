"""Figures of an OOD evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.evaluation.ood.separability import FPR_KEYS
from curation.evaluation.problem import Floats
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Section = Mapping[str, Any]
ID_COLOUR, OOD_COLOUR = SERIES[0], SERIES[1]
BINS = 60
_TAIL = 0.001
_PANELS = ("AUROC", "FPR95", "AP_U", "nOSE", "P_U", "R_U")
_LOWER_IS_BETTER = ("FPR95", "nOSE")


def metric_bars(sections: Sequence[Section], profiles: Sequence[str], stem: Path) -> list[Path]:
    """Draw AUROC, FPR95, AP_U, nOSE, P_U and R_U as bars (FMIYC, Figs. 4 and 5).

    One split and one score: a bar a metric. Else a panel a metric, a group a split and a bar a score. A metric without
    any value has no panel, and the title says why; where none has a value, each has one.

    Parameters
    ----------
    sections : sequence of result
        As `curation.benchmarks.findmeifyoucan.evaluation.evaluate_split` returns them, with ``split``.
    profiles : sequence of str
        Of ``official`` and ``paper``: the first as bars, another as a line on each bar where it says something else.
    stem : Path
        Path without suffix.

    Returns
    -------
    list of Path
        PNG, SVG, CSV. Undefined values are empty cells with a reason there and bars with the word "undefined" here.
    """
    places = {(one["split"], one["method"], profile): one for one in sections for profile in profiles}
    values = {place: _values(one, place[2]) for place, one in places.items()}
    rows = [
        (*place, name, found[name], _reason(places[place], place[2], name) if found[name] is None else "")
        for place, found in values.items()
        for name in _PANELS
    ]
    splits, methods, _ = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    alone = len(splits) == len(methods) == 1
    panels = [name for name in _PANELS if alone or any(one[name] is not None for one in values.values())] or _PANELS

    def draw() -> Figure:
        if alone:
            figure, axes = small_multiples(1, height=2.1)
            found = {(_arrowed(name), "", one[2]): values[one][name] for one in values for name in _PANELS}
            _draw_bars(axes[0], found)
        else:
            height = 0.155 * len(splits) * (len(methods) + 0.6) + 0.6
            figure, axes = small_multiples(len(panels), height=height, sharex=True, sharey=True)
            for axis, name in zip(axes, panels, strict=True):
                _draw_bars(axis, {place: one[name] for place, one in values.items()})
                axis.set_title(_arrowed(name))
        if len(profiles) > 1 or len(methods) > 1:
            add_key(figure, axes)
        rule = sections[0]["FPR95"]["rule"].replace("_", " ")
        about = (("split", splits), ("score", methods), ("profile", profiles))
        told = [f"{what} {of[0]}" for what, of in about if len(of) == 1]
        note = ", ".join([*told, f"FPR95 rule {rule}", "arrow: the better direction"])
        undefined = [(name, reason) for *_, name, _, reason in rows if name not in panels]
        set_title(figure, "Out-of-distribution metrics in %", "; ".join([*_in_words(undefined), note]))
        return figure

    return save_figure(draw, stem, ("split", "score", "profile", "metric", "value", "undefined"), rows)


def score_histograms(
    scores: Mapping[str, tuple[Floats, Floats]],
    thresholds: Mapping[str, float | None],
    method: str,
    stem: Path,
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

    def draw() -> Figure:
        figure, axes = small_multiples(len(counted), height=2.3)
        for axis, (split, histogram) in zip(axes, counted.items(), strict=True):
            _draw_histogram(axis, plain(split), histogram, thresholds[split])
        label_outer(axes, f"{plain(method)} (higher is more ID)", "share of detections (%)")
        set_title(figure, "Scores of ID and OOD detections", f"score {method}{note}")
        return figure

    header = ("split", "from", "to", "id_detections", "ood_detections", "threshold")
    return save_figure(draw, stem, header, rows)


def _values(section: Section, profile: str) -> dict[str, float | None]:
    """Return the metrics of the panels in per cent."""
    open_set = section.get(profile) or {}
    rates = open_set.get("unrounded", {})
    shares = {"AUROC": section["AUROC"], "FPR95": section["FPR95"]["value"]}
    return {
        **{name: None if value is None else 100 * value for name, value in shares.items()},
        **{name: rates.get(name) for name in _PANELS if name not in shares},
    }


def _reason(section: Section, profile: str, name: str) -> str:
    """Return why a metric of the panels has no value."""
    told = {**section["undefined"], **(section.get(profile) or {}).get("undefined", {})}
    key = FPR_KEYS[section["FPR95"]["rule"]] if name == "FPR95" else name
    # Without a threshold a profile has no metric at all.
    return str(told[key if key in told else profile])


def _in_words(undefined: Iterable[tuple[str, str]]) -> list[str]:
    """Return which metrics have no value, for each reason."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in undefined:
        names.setdefault(reason, {})[name] = None
    return [f"undefined: {', '.join(found)}, since {reason}" for reason, found in names.items()]


def _arrowed(name: str) -> str:
    return f"{name} {'↓' if name in _LOWER_IS_BETTER else '↑'}"


def _draw_bars(axis: Axes, values: Mapping[tuple[str, str, str], float | None]) -> None:
    """Draw values by row, series and profile as lying bars; of a second profile as a line."""
    rows, series, profiles = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    size = 0.82 / len(series)
    for number, name in enumerate(series):
        at = [place + (number - (len(series) - 1) / 2) * size for place in range(len(rows))]
        first, *others = ([values.get((row, name, profile)) for row in rows] for profile in profiles)
        label = plain(name) if len(series) > 1 else f"profile {profiles[0]}"
        axis.barh(at, [value or 0.0 for value in first], 0.9 * size, color=SERIES[number % len(SERIES)], label=label)
        for profile, found in zip(profiles[1:], others, strict=True):
            differing = [place for place, value in enumerate(found) if value not in (None, first[place])]
            if differing:
                axis.plot(
                    [found[place] or 0.0 for place in differing], [at[place] for place in differing], "|", color=INK,
                    markeredgewidth=1.5, markersize=max(5.0, 11 * size), label=f"profile {profile}, where it differs",
                )  # fmt: skip
        for y, *found in zip(at, first, *others, strict=True):
            text = "undefined" if found[0] is None else f"{found[0]:.1f}"
            end = max(value or 0.0 for value in found)
            axis.text(end + 2, y, text, va="center", fontsize=SMALL, color=INK)
    axis.set_xlim(0, 1.2 * max(100.0, *(value or 0.0 for value in values.values())))
    axis.set_xticks(range(0, 101, 20 if len(series) == 1 and not series[0] else 50))
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
    for values, colour, label in zip(counts, (ID_COLOUR, OOD_COLOUR), ("ID", "OOD"), strict=True):
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
