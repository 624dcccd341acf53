"""What the evaluation of out-of-distribution detection measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.findmeifyoucan.measures import FPR_KEYS, SEPARABILITY, UNKNOWN_IF
from curation.evaluation.measures import Better, Measure, formulas
from curation.evaluation.ood.detections import UNNAMED
from curation.evaluation.problem import Floats
from curation.evaluation.result import (
    Column,
    Data,
    Figure,
    Report,
    Result,
    Scored,
    Table,
    across,
    inputs_table,
    order_table,
    shown,
    stem_of,
    truth_digests,
)
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

_FMIYC = "Montoya et al., Find Me If You Can"
_EMPTY = "there are no ID detections, or no OOD detections"


def _separability(key: str, name: str, *, better: Better = "higher", is_ranked: bool = False) -> Measure:
    return Measure(
        key,
        name,
        SEPARABILITY[key],
        unit="share",
        better=better,
        undefined=_EMPTY,
        count=("counts", "ood_detections"),
        ranked=is_ranked,
    )


def _rate(
    key: str, name: str, formula: str, *, better: Better = "higher", bounds: tuple[float, float] | None = None
) -> Measure:
    return Measure(
        key,
        name,
        formula,
        unit="%",
        better=better,
        source=f"{_FMIYC}, appendix D",
        undefined="the split has no object, or nothing is called unknown",
        count=("n_unknown_gt",),
        ranked=True,
        bounds=bounds,
    )


def _count(key: str, name: str, formula: str, *, better: Better | None = None, is_ranked: bool = False) -> Measure:
    return Measure(key, name, formula, unit="count", better=better, count=("n_unknown_gt",), ranked=is_ranked)


MEASURES = (
    _separability("AUROC", "area under the ROC curve", is_ranked=True),
    _separability("AUPR_trapezoid", "area under precision and recall, by trapezoids", is_ranked=True),
    Measure(
        "FPR95",
        "false positive rate at 95 % true positive rate",
        "under the rule that was chosen",
        unit="share",
        better="lower",
        undefined=_EMPTY,
        paths=(("FPR95", "value"),),
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
        "detections of known classes whose best object they overlap, in both profiles",
        better="lower",
        is_ranked=True,
    ),
    _rate(
        "AP_U",
        "average precision of unknown",
        "area under the precision envelope of unknown detections by falling confidence (not OOD score), ties by "
        "image id and then file order, in %",
    ),
    _rate("P_U", "precision of unknown", "TP_U / (TP_U + FP_U), in %"),
    _rate("R_U", "recall of unknown", "TP_U / N_U, in %"),
    _separability("AUPR_step", "average precision of the scores"),
    _separability("FPR95_first", "FPR at 95 % TPR, first threshold", better="lower"),
    _separability("FPR95_nearest_vos", "FPR at 95 % TPR, nearest threshold", better="lower"),
    _separability("FPR95_ood_positive", "FPR at 95 % TPR, OOD positive", better="lower"),
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
PROFILES = ("official", "paper")
BINS = 60
_TAIL = 0.001
_PANELS = ("AUROC", "FPR95", "AP_U", "nOSE", "P_U", "R_U")
_LOWER_IS_BETTER = ("FPR95", "nOSE")
_RATES = ("nOSE", "AP_U", "P_U", "R_U")
_COUNTS = (
    "n_unknown_gt", "n_det", "n_det_unknown", "n_det_known", "TP_U", "FP_U", "AOSE", "objects_misclassified",
    "objects_ignored",
)  # fmt: skip
_PLAIN = (
    *SEPARABILITY, "threshold", "threshold_zscore", "threshold_quantile", "threshold_margin",
    "id_share_at_least_threshold", "images", "images_without_predictions", "pct_images_without_predictions",
)  # fmt: skip
DEFINITIONS: dict[str, str] = {
    **SEPARABILITY,
    "population": "all detections on the ID test set against all detections on the OOD split, pooled over images, "
    "whatever they overlap",
    "unknown": f"a detection is called unknown where its {UNKNOWN_IF}",
    "N_U": "n_unknown_gt: all annotations of the split, crowd and group regions included",
    "TP_U, FP_U": "unknown detections that found an object, and that did not",
    "P_U, R_U": "TP_U / (TP_U + FP_U) and TP_U / N_U, in %",
    **formulas(MEASURES, "AP_U", "AOSE", "objects_misclassified", "objects_ignored", "nOSE"),
    "pct_images_without_predictions": "100 * images of the split without any detection / images of the split, images "
    "absent from the detections file included; 2 decimals",
    "wilderness impact": "left out: it has no meaning where no image shows a known class",
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each score of one detector on each split, under each profile."""
    settings = data["settings"]
    for section in data["results"].values():
        split, method = section["split"], section["method"]
        inputs = data["inputs"][split]
        for profile in settings["profiles"]:
            own = section[profile] or {}
            reasons = {**section.get("undefined", {}), **own.get("undefined", {})}
            yield Scored(
                part=split,
                split=split,
                variant=profile,
                numbers={**section, **own, "undefined": reasons},
                truth=truth_digests(data, split),
                predictions={name: inputs[name] for name in ("detections", "id_scores")},
                settings={
                    "threshold": section["threshold_rule"],
                    "fpr": settings["fpr"]["rule"],
                    "official_compat": str(settings["official_compat"]).lower(),
                },
                operating_point={"t_star": str(settings["t_star"]), "threshold": str(section["threshold"])},
                method=stem_of(inputs["detections"]),
                score="" if method == UNNAMED else method,
            )


def _tables(result: Result) -> Iterator[Table]:
    data, results = result.data, result.data["results"]
    t_star = data["settings"]["t_star"]
    told = "not stated, files taken as cut already" if t_star is None else t_star
    yield inputs_table(data, f"Inputs; t* {told}", "split")
    yield _separability_table(data, results)
    for profile in PROFILES:
        if profile in next(iter(results.values())):
            yield _open_set(profile, results)
    if any(one["intervals"] for one in results.values()):
        yield _intervals(results)
    found = {
        f"{name}, {profile}": one[profile] for name, one in results.items() for profile in PROFILES if one.get(profile)
    }
    yield order_table({name: section["decided_by_order"] for name, section in found.items()})
    notes = list(_notes(results))
    columns = (Column("result", head=""), Column("note", head=""))
    yield Table("notes", columns, notes, title="Notes" if notes else "")
    yield Table(
        "metrics",
        tuple(map(Column, ("split", "score", "profile", "metric", "value"))),
        list(_metrics(results)),
        file=True,
    )


def _separability_table(data: Data, results: Data) -> Table:
    def taking(key: str) -> Callable[[Data], Any]:
        return lambda one: one[key]

    def counted(key: str) -> Callable[[Data], Any]:
        return lambda one: one["counts"][key]

    settings = data["settings"]
    return across(
        f"Separability, ID positive (FPR95_ood_positive apart); FPR95 is rule {settings['fpr']['rule']}",
        results,
        [
            *((name, "share", taking(name)) for name in SEPARABILITY),
            (f"threshold ({settings['threshold']['rule']})", "ratio", taking("threshold")),
            ("ID scores >= threshold", "share", taking("id_share_at_least_threshold")),
            ("ID detections", "count", counted("id_detections")),
            ("OOD detections", "count", counted("ood_detections")),
            ("images without predictions, %", "", _images_without),
        ],
    )


def _images_without(one: Data) -> str:
    share = shown(one["pct_images_without_predictions"], "%")
    return f"{share} ({one['images_without_predictions']}/{one['images']})"


def _open_set(profile: str, results: Data) -> Table:
    def taking(key: str) -> Callable[[Data], Any]:
        return lambda one: None if one[profile] is None else one[profile][key]

    counted = "detections" if profile == "official" else "objects"
    return across(
        f"Open-set metrics, profile {profile}: rates in %, nOSE counts {counted}",
        results,
        [
            *((name, ".3f", taking(name)) for name in _RATES),
            *((name, "count", taking(name)) for name in _COUNTS),
        ],
    )


def _intervals(results: Data) -> Table:
    names = dict.fromkeys(name for one in results.values() if one["intervals"] for name in one["intervals"]["metrics"])

    def taking(key: str) -> Callable[[Data], str]:
        return lambda one: _interval(one["intervals"], key)

    return across("95 % bootstrap intervals over images", results, [(name, "", taking(name)) for name in names])


def _interval(intervals: Data | None, name: str) -> str:
    one = None if intervals is None else intervals["metrics"].get(name)
    return "-" if one is None or one["low"] is None else f"{one['low']:.3f} … {one['high']:.3f}"


def _notes(results: Data) -> Iterator[tuple[str, str]]:
    for name, one in results.items():
        told = [*one["notes"], *(f"{key}: {reason}" for key, reason in one["undefined"].items())]
        for profile in PROFILES:
            told += [f"{profile}: {note}" for note in (one.get(profile) or {}).get("notes", ())]
        yield from ((name, text) for text in dict.fromkeys(told))


def _metrics(results: Data) -> Iterator[tuple[Any, ...]]:
    for one in results.values():
        place = one["split"], one["method"]
        yield from ((*place, "", name, one[name]) for name in _PLAIN)
        yield from ((*place, "", name, value) for name, value in one["counts"].items())
        for profile in PROFILES:
            section = one.get(profile)
            for name in (*_RATES, *_COUNTS) if section else ():
                yield *place, profile, name, section["unrounded"].get(name, section[name])


def _drawings(result: Result) -> Iterator[Figure]:
    sections = list(result.data["results"].values())
    # The paper's rules are drawn as bars, what the official code says otherwise as lines on them.
    if profiles := [profile for profile in reversed(PROFILES) if any(one.get(profile) for one in sections)]:
        yield Figure("metric_bars", partial(metric_bars, sections, profiles))
    for number, (method, by_split) in enumerate(result.columns.items()):
        is_drawn = any(all(map(len, pair)) for pair in by_split.values())
        thresholds = {one["split"]: one["threshold"] for one in sections if one["method"] == method}
        yield Figure(
            f"scores_{_stem(method, number)}",
            partial(score_histograms, by_split, thresholds, method) if is_drawn else None,
            f"no histogram of {method}: a split needs ID and OOD detections",
        )


def _stem(method: str, number: int) -> str:
    """Return a method's name where it can be part of a file name, else its place."""
    return method if method.isascii() and method.isidentifier() and len(method) <= 40 else f"{number + 1}"


def metric_bars(sections: Sequence[Data], profiles: Sequence[str], stem: Path) -> list[Path]:
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

    def draw() -> matplotlib.figure.Figure:
        if alone:
            figure, axes = small_multiples(1, height=2.1)
            found = {(_arrowed(name), "", one[2]): values[one][name] for one in values for name in _PANELS}
            _draw_bars(axes[0], found, {_arrowed(name): _full(name) for name in _PANELS})
        else:
            height = 0.155 * len(splits) * (len(methods) + 0.6) + 0.6
            figure, axes = small_multiples(len(panels), height=height, sharey=True)
            for axis, name in zip(axes, panels, strict=True):
                _draw_bars(
                    axis, {place: one[name] for place, one in values.items()}, dict.fromkeys(splits, _full(name))
                )
                axis.set_title(_arrowed(name))
        if len(profiles) > 1 or len(methods) > 1:
            add_key(figure, axes)
        rule = sections[0]["FPR95"]["rule"].replace("_", " ")
        about = (("split", splits), ("score", methods), ("profile", profiles))
        told = [f"{what} {of[0]}" for what, of in about if len(of) == 1]
        units = "AUROC and FPR95 as shares, all else in %"
        note = ", ".join([*told, f"FPR95 rule {rule}", units, "arrow: the better direction"])
        undefined = [(name, reason) for *_, name, _, reason in rows if name not in panels]
        set_title(figure, "Out-of-distribution metrics", "; ".join([*_in_words(undefined), note]))
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

    def draw() -> matplotlib.figure.Figure:
        figure, axes = small_multiples(len(counted), height=2.3)
        for axis, (split, histogram) in zip(axes, counted.items(), strict=True):
            _draw_histogram(axis, plain(split), histogram, thresholds[split])
        label_outer(axes, f"{plain(method)} (higher is more ID)", "share of detections (%)")
        set_title(figure, "Scores of ID and OOD detections", f"score {method}{note}")
        return figure

    header = ("split", "from", "to", "id_detections", "ood_detections", "threshold")
    return save_figure(draw, stem, header, rows)


def _values(section: Data, profile: str) -> dict[str, float | None]:
    """Return the metrics of the panels, in the units of the tables."""
    open_set = section.get(profile) or {}
    rates = open_set.get("unrounded", {})
    shares = {"AUROC": section["AUROC"], "FPR95": section["FPR95"]["value"]}
    return {**shares, **{name: rates.get(name) for name in _PANELS if name not in shares}}


def _full(name: str) -> float:
    """Return the value of a metric of the panels that a bar of full length stands for."""
    return 1.0 if name in ("AUROC", "FPR95") else 100.0


def _reason(section: Data, profile: str, name: str) -> str:
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


def _draw_bars(axis: Axes, values: Mapping[tuple[str, str, str], float | None], full: Mapping[str, float]) -> None:
    """Draw values by row, series and profile as lying bars, a second profile as a line; `full` of a row is one long."""
    rows, series, profiles = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    lengths = {place: None if value is None else value / full[place[0]] for place, value in values.items()}
    size = 0.82 / len(series)
    for number, name in enumerate(series):
        at = [place + (number - (len(series) - 1) / 2) * size for place in range(len(rows))]
        first, *others = ([lengths.get((row, name, profile)) for row in rows] for profile in profiles)
        label = plain(name) if len(series) > 1 else f"profile {profiles[0]}"
        axis.barh(at, [length or 0.0 for length in first], 0.9 * size, color=SERIES[number % len(SERIES)], label=label)
        for profile, found in zip(profiles[1:], others, strict=True):
            differing = [place for place, length in enumerate(found) if length not in (None, first[place])]
            if differing:
                axis.plot(
                    [found[place] or 0.0 for place in differing], [at[place] for place in differing], "|", color=INK,
                    markeredgewidth=1.5, markersize=max(5.0, 11 * size), label=f"profile {profile}, where it differs",
                )  # fmt: skip
        for row, y, *found in zip(rows, at, first, *others, strict=True):
            value = values.get((row, name, profiles[0]))
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
    scored,
    _tables,
    _drawings,
    # 2: P_U is undefined without objects.
    algorithm=2,
    files=("metrics",),
    figures=("metric_bars", "scores_*"),
)
