"""What the evaluation of out-of-distribution detection measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any

from curation.evaluation.measures import Better, Measure, formulas
from curation.evaluation.ood import separability
from curation.evaluation.ood.detections import UNNAMED
from curation.evaluation.ood.separability import UNKNOWN_IF
from curation.evaluation.result import (
    Column,
    Data,
    Drawing,
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

_FMIYC = "Montoya et al., Find Me If You Can"
_EMPTY = "there are no ID detections, or no OOD detections"


def _separability(key: str, name: str, *, better: Better = "higher", is_ranked: bool = False) -> Measure:
    return Measure(
        key,
        name,
        separability.DEFINITIONS[key],
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
_SEPARABILITY = (
    "AUROC", "AUPR_trapezoid", "AUPR_step", "FPR95_first", "FPR95_nearest_vos", "FPR95_ood_positive",
)  # fmt: skip
_RATES = ("nOSE", "AP_U", "P_U", "R_U")
_COUNTS = (
    "n_unknown_gt", "n_det", "n_det_unknown", "n_det_known", "TP_U", "FP_U", "AOSE", "objects_misclassified",
    "objects_ignored",
)  # fmt: skip
_PLAIN = (
    *_SEPARABILITY, "threshold", "threshold_zscore", "threshold_quantile", "threshold_margin",
    "id_share_at_least_threshold", "images", "images_without_predictions", "pct_images_without_predictions",
)  # fmt: skip
DEFINITIONS: dict[str, str] = {
    **separability.DEFINITIONS,
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
        f"Separability in %, ID positive (FPR95_ood_positive apart); FPR95 is rule {settings['fpr']['rule']}",
        results,
        [
            *((name, ".3%", taking(name)) for name in _SEPARABILITY),
            (f"threshold ({settings['threshold']['rule']})", "ratio", taking("threshold")),
            ("ID scores >= threshold, %", ".3%", taking("id_share_at_least_threshold")),
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


def _drawings(result: Result) -> Iterator[Drawing]:
    from curation.evaluation.ood.figures import metric_bars, score_histograms

    sections = list(result.data["results"].values())
    # The paper's rules are drawn as bars, what the official code says otherwise as lines on them.
    if profiles := [profile for profile in reversed(PROFILES) if any(one.get(profile) for one in sections)]:
        yield Drawing("metric_bars", partial(metric_bars, sections, profiles))
    for number, (method, by_split) in enumerate(result.columns.items()):
        is_drawn = any(all(map(len, pair)) for pair in by_split.values())
        thresholds = {one["split"]: one["threshold"] for one in sections if one["method"] == method}
        yield Drawing(
            f"scores_{_stem(method, number)}",
            partial(score_histograms, by_split, thresholds, method) if is_drawn else None,
            f"no histogram of {method}: a split needs ID and OOD detections",
        )


def _stem(method: str, number: int) -> str:
    """Return a method's name where it can be part of a file name, else its place."""
    return method if method.isascii() and method.isidentifier() and len(method) <= 40 else f"{number + 1}"


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
