"""What the evaluation of open-set classification measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from operator import getitem
from typing import Any

from curation.evaluation import confidence, oscr
from curation.evaluation.class_scores import GROUPS
from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import (
    Column,
    Data,
    Drawing,
    Report,
    Result,
    Scored,
    Table,
    across,
    input_rows,
    shown,
)

_PAPER = "Palechor et al., WACV 2023"
_OSCR = "Dhamija et al., NeurIPS 2018"
_WORST = 5

_NO_KNOWN = "no sample of a known class"
_NO_UNKNOWN = "there are no unknown samples, or no known ones"
_NOT_REACHED = "the rate is not reached"
_share = partial(Measure, unit="share", better="higher")
_confidence = partial(_share, source=_PAPER)

MEASURES = (
    _share(
        "CCR@{fpr}",
        "correct classification rate at a false positive rate",
        "known samples that are classified right with a score above the threshold / known samples, at the threshold "
        "where the share of unknown samples above it is the rate, as the variant says",
        source=f"{_OSCR}; {_PAPER}", undefined=_NOT_REACHED, paths=(("rates", "ccr_at_fpr", "{fpr}"),),
        count=("n", "known"), ranked=True,
    ),
    _share(
        "AUROC",
        "area under the ROC curve against unknown samples",
        "highest known score of known samples against that of unknown samples, ties half",
        undefined=_NO_UNKNOWN, paths=(("auroc", "unknown", "auroc"),), count=("n", "unknown"), ranked=True,
    ),
    _confidence(
        "gamma",
        "confidence against unknown samples",
        "mean of gamma_plus and gamma_minus",
        undefined="there are no unknown samples, or the scores are no probabilities",
        paths=(("confidence", "unknown", "gamma"),), ranked=True,
    ),
    _share(
        "accuracy",
        "closed-set accuracy",
        "known samples whose highest known score is that of their class / known samples (closed set)",
        undefined=_NO_KNOWN, count=("n", "known"), ranked=True,
    ),
    _share(
        "macro_accuracy",
        "closed-set accuracy, mean over classes",
        "mean over known classes with samples of the accuracy on each",
        undefined=_NO_KNOWN,
    ),
    _share(
        "macro_CCR@{fpr}",
        "CCR at FPR, mean over classes",
        "mean over known classes of each class's CCR at the same threshold",
        undefined=_NOT_REACHED, paths=(("rates", "macro_ccr_at_fpr", "{fpr}"),),
    ),
    Measure(
        "sum_ccr",
        "sum of CCR at FPR",
        "sum of CCR@FPR over the queries that are defined (openset-imagenet-comparison)",
        unit="ratio", better="higher", undefined="none of the rates is reached", paths=(("rates", "sum_ccr", "value"),),
    ),
    _confidence(
        "gamma_plus",
        "confidence of known samples",
        "mean probability of the true class over known samples, also misclassified ones",
        undefined="there are no known samples, or the scores are no probabilities",
        paths=(("confidence", "unknown", "gamma_plus"),), count=("n", "known"),
    ),
    _confidence(
        "gamma_minus",
        "confidence of unknown samples",
        "mean over the group of 1 - highest known probability + 1/K (without 1/K where there is a background class)",
        undefined="there are no unknown samples, or the scores are no probabilities",
        paths=(("confidence", "unknown", "gamma_minus"),), count=("n", "unknown"),
    ),
    _share(
        "iosa",
        "best open-set accuracy",
        "highest over all thresholds of (right answers that pass + samples of the group that do not) / both",
        undefined=_NO_UNKNOWN, paths=(("openset_accuracy", "unknown", "strict", "iosa"),),
    ),
    _share(
        "oosa",
        "open-set accuracy at the validation threshold",
        "the same at the threshold that is best on validation (known and negative); of equal ones the lowest",
        undefined="no validation scores", paths=(("openset_accuracy", "unknown", "strict", "oosa"),),
    ),
)  # fmt: skip
DEFINITIONS: dict[str, str] = {
    **formulas(MEASURES, "accuracy", "macro_accuracy"),
    "auroc": "highest known score of known samples against the group's, ties half; auroc_rest_as_known: samples of the "
    "other group count as known (openset-imagenet)",
    **formulas(MEASURES, "sum_ccr"),
    "confidence": confidence.DEFINITION,
    "openset_accuracy": oscr.ACCURACY_DEFINITION,
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each classifier on each variant, against unknown samples."""
    part = data["manifest"] and data["manifest"]["parts"]["scores"]
    left = data.get("option_files", {}).get("without_kin", {})
    for name, one in data["classifiers"].items():
        file = data["inputs"][name]["scores"]
        for variant, rates in one["oscr"].items():
            yield Scored(
                part=part or "",
                split=left[name]["name"] if name in left else "",
                variant=variant,
                numbers={**one, "rates": rates["unknown"]},
                truth={"labels": file["labels_sha256"]},
                predictions={name: file},
                operating_point={"scores": file["kind"], "background": one["background"]},
                method=name,
                pinned=bool(part) and name not in left,
                of_several=True,
            )


def _tables(result: Result) -> Iterator[Table]:
    data = result.data
    yield _inputs(data)
    yield _summary(data)
    for group in GROUPS:
        if _has(data, group):
            yield _rates(data, group)
    for name, one in data["classifiers"].items():
        if one["classes"]:
            yield _worst_classes(name, one)
    if data["bootstrap"] is not None:
        yield from _bootstrap(data["bootstrap"])
    yield Table(
        "metrics",
        tuple(map(Column, ("classifier", "part", "metric", "value"))),
        list(_metrics(data)),
        file=True,
    )
    queries = (f"ccr_at_fpr_{group}_{query}" for group in GROUPS for query in data["queries"])
    yield Table(
        "classes",
        tuple(map(Column, ("classifier", "class", "n", "accuracy", "mean_score", *queries))),
        [
            (name, row["class"], row["n"], row["accuracy"], row["mean_score"], *row["ccr_at_fpr"].values())
            for name, one in data["classifiers"].items()
            for row in one["classes"]
        ],
        file=True,
    )


def _inputs(data: Data) -> Table:
    rows: list[tuple[Any, ...]] = [
        (name, what, f"{file['name']} ({file['rows']})", file["sha256"], file["kind"], file["labels_from"],
         "; ".join(f"{reason}: {count}" for reason, count in file["reported"].items()))
        for name, files in data["inputs"].items()
        for what, file in files.items()
        if file is not None
    ]  # fmt: skip
    rows += [(*row[:4], "", "", row[4]) for row in input_rows({}, data["manifest"])]
    columns = (
        Column("classifier"), Column("part", head=""), Column("file"), Column("digest", "digest"), Column("kind"),
        Column("labels_from", head="labels from"), Column("reported"),
    )  # fmt: skip
    return Table("inputs", columns, rows, title="Inputs")


def _taking(*path: str) -> Callable[[Data], Any]:
    return lambda one: reduce(getitem, path, one)


def _summary(data: Data) -> Table:
    ones = data["classifiers"]
    lines: list[tuple[str, str, Callable[[Data], Any]]] = [
        ("samples known/negative/unknown", "", lambda one: "/".join(str(n) for n in one["n"].values())),
        ("accuracy", "ratio", _taking("accuracy")),
        ("macro accuracy", "ratio", _taking("macro_accuracy")),
        ("gamma+", "ratio", _taking("confidence", "unknown", "gamma_plus")),
    ]
    for group in (one for one in GROUPS if _has(data, one)):
        lines += [
            (f"gamma-, {group}", "ratio", _taking("confidence", group, "gamma_minus")),
            (f"gamma, {group}", "ratio", _taking("confidence", group, "gamma")),
            (f"AUROC, {group}", "ratio", _taking("auroc", group, "auroc")),
            (f"best OSA, {group}", "ratio", _taking("openset_accuracy", group, "strict", "iosa")),
            (f"OSA at validation threshold, {group}", "ratio", _taking("openset_accuracy", group, "strict", "oosa")),
        ]
    if any(one["validation"] is not None for one in ones.values()):
        gamma = _taking("validation", "confidence", "negative", "gamma")
        lines.append(("validation gamma, negative", "ratio", lambda one: one["validation"] and gamma(one)))
    if data["epochs"]:
        lines.append(("epoch kept", "count", _taking("kept")))
    kept = {name: (data["epochs"].get(name) or {}).get("kept") for name in ones}
    return across("Measures", {name: {**one, "kept": kept[name]} for name, one in ones.items()}, lines)


def _rates(data: Data, group: str) -> Table:
    queries = data["queries"]
    rows = []
    for name, one in data["classifiers"].items():
        for variant, sections in one["oscr"].items():
            section = sections[group]
            rates = (
                f"{shown(section['ccr_at_fpr'][query], 'ratio')} ({shown(section['macro_ccr_at_fpr'][query], 'ratio')})"
                for query in queries
            )
            total = section["sum_ccr"]
            summed = f"{shown(total['value'], 'ratio')} of {total['of']}"
            rows.append((name, variant, *rates, summed, section["smallest_fpr"]))
    columns = (
        *map(Column, ("classifier", "variant", *(f"CCR@{query}" for query in queries), "sum")),
        Column("smallest FPR above 0", "ratio"),
    )
    return Table("", columns, rows, title=f"CCR at FPR on {group} samples (in brackets: mean over classes)")


def _worst_classes(name: str, one: Data) -> Table:
    """Return the classes of lowest accuracy."""
    defined = [row for row in one["classes"] if row["accuracy"] is not None]
    worst = sorted(defined, key=lambda row: (row["accuracy"], row["class"]))[:_WORST]
    columns = (Column("class"), Column("n", "count"), Column("accuracy", "ratio"))
    rows = [(row["class"], row["n"], row["accuracy"]) for row in worst]
    return Table("", columns, rows, title=f"{name}: classes of lowest accuracy, of {len(defined)}")


def _bootstrap(bootstrap: Data) -> Iterator[Table]:
    percent = f"{100 * float(bootstrap['confidence']):g} %"
    note = f"{percent} intervals over classes, {bootstrap['replicates']} replicates, seed {bootstrap['seed']}"
    lines = [(one, "", partial(_interval, one)) for one in next(iter(bootstrap["intervals"].values()))]
    yield across(note, bootstrap["intervals"], lines)
    if paired := {name: found for name, found in bootstrap["differences"].items() if "reason" not in found}:
        yield across(f"Differences to {bootstrap['differences_to']}, paired", paired, lines)


def _interval(measure: str, found: Data) -> str:
    cell = found[measure]
    if cell["low"] is None:
        return "-"
    return f"{cell['estimate']:.4f} [{cell['low']:.4f}, {cell['high']:.4f}]"


def _metrics(data: Data) -> Iterator[tuple[Any, ...]]:
    """Yield every number of a result under its path, ``oscr.exact.unknown.ccr_at_fpr.0.01``."""
    for name, one in data["classifiers"].items():
        for key, value in one.items():
            if key not in ("classes", "validation"):
                yield from ((name, "test", *row) for row in _leaves(value, key))
        for key, value in (one["validation"] or {}).items():
            yield from ((name, "val", *row) for row in _leaves(value, key))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    elif value is None or isinstance(value, int | float):
        yield path, value


def _drawings(result: Result) -> Iterator[Drawing]:
    from curation.evaluation.oscr_figures import confidence_figure, curve_of, oscr_figure, score_histograms

    data, scores, runs = result.data, result.columns["scores"], result.columns["runs"]
    ones = data["classifiers"].values()
    drawable = any(one["n"]["known"] and any(one["n"][group] for group in GROUPS) for one in ones)
    if not drawable:
        yield Drawing("oscr", None, "no curves: they need known and other samples")
    for variant in data["grids"] if drawable else ():
        curves = {name: one for name, one in scores.items() if variant in data["classifiers"][name]["oscr"]}
        # Of scores that are all equal the variants of the two codes hold no threshold.
        has_points = any(curve_of(one, group, variant) for one in curves.values() for group in GROUPS)
        missing = f"no curve on the variant {variant}: it holds no threshold" if curves and not has_points else ""
        yield Drawing(f"oscr_{variant}", partial(oscr_figure, curves, variant=variant) if has_points else None, missing)
    yield Drawing("scores", partial(score_histograms, scores))
    yield Drawing("confidence", partial(confidence_figure, runs) if runs else None)


def _has(data: Data, group: str) -> bool:
    return any(one["n"][group] for one in data["classifiers"].values())


def report_as(protocol: str) -> Report:
    """Return how the results of open-set classification show themselves, under the name of a benchmark."""
    return Report(
        protocol,
        MEASURES,
        scored,
        _tables,
        _drawings,
        files=("metrics", "classes"),
        figures=("oscr_*", "scores", "confidence"),
    )
