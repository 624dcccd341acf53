"""What the evaluation of open-set classification measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from operator import getitem, itemgetter
from typing import Any

from curation.evaluation import confidence, oscr
from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import Column, Data, Drawing, Report, Result, Scored, Table, across, shown

_PAPER = "Palechor et al., WACV 2023"
_OSCR = "Dhamija et al., NeurIPS 2018"

MEASURES = (
    Measure(
        "CCR@{fpr}",
        "correct classification rate at a false positive rate",
        "known samples that are classified right with a score above the threshold / known samples, at the threshold "
        "where the share of unknown samples above it is the rate, as the grid says",
        unit="share",
        better="higher",
        source=f"{_OSCR}; {_PAPER}",
        undefined="the rate is not reached",
        paths=(("rates", "ccr_at_fpr", "{fpr}"),),
        count=("n", "known"),
        ranked=True,
    ),
    Measure(
        "AUROC",
        "area under the ROC curve against unknown samples",
        "highest known score of known samples against that of unknown samples, ties half",
        unit="share",
        better="higher",
        undefined="there are no unknown samples, or no known ones",
        paths=(("auroc", "unknown", "auroc"),),
        count=("n", "unknown"),
        ranked=True,
    ),
    Measure(
        "gamma",
        "confidence against unknown samples",
        "mean of gamma_plus and gamma_minus",
        unit="share",
        better="higher",
        source=_PAPER,
        undefined="there are no unknown samples, or the scores are no probabilities",
        paths=(("confidence", "unknown", "gamma"),),
        ranked=True,
    ),
    Measure(
        "accuracy",
        "closed-set accuracy",
        "known samples whose highest known score is that of their class / known samples (closed set)",
        unit="share",
        better="higher",
        undefined="no sample of a known class",
        count=("n", "known"),
        ranked=True,
    ),
    Measure(
        "macro_accuracy",
        "closed-set accuracy, mean over classes",
        "mean over known classes with samples of the accuracy on each",
        unit="share",
        better="higher",
        undefined="no sample of a known class",
    ),
    Measure(
        "macro_CCR@{fpr}",
        "CCR at FPR, mean over classes",
        "mean over known classes of each class's CCR at the same threshold",
        unit="share",
        better="higher",
        undefined="the rate is not reached",
        paths=(("rates", "macro_ccr_at_fpr", "{fpr}"),),
    ),
    Measure(
        "sum_ccr",
        "sum of CCR at FPR",
        "sum of CCR@FPR over the queries that are defined (openset-imagenet-comparison)",
        unit="ratio",
        better="higher",
        paths=(("rates", "sum_ccr", "value"),),
    ),
    Measure(
        "gamma_plus",
        "confidence of known samples",
        "mean probability of the true class over known samples, also misclassified ones",
        unit="share",
        better="higher",
        source=_PAPER,
        paths=(("confidence", "unknown", "gamma_plus"),),
        count=("n", "known"),
    ),
    Measure(
        "gamma_minus",
        "confidence of unknown samples",
        "mean over the group of 1 - highest known probability + 1/K (without 1/K where there is a background class)",
        unit="share",
        better="higher",
        source=_PAPER,
        paths=(("confidence", "unknown", "gamma_minus"),),
        count=("n", "unknown"),
    ),
    Measure(
        "iosa",
        "best open-set accuracy",
        "highest over all thresholds of (right answers that pass + samples of the group that do not) / both",
        unit="share",
        better="higher",
        paths=(("openset_accuracy", "unknown", "strict", "iosa"),),
    ),
    Measure(
        "oosa",
        "open-set accuracy at the validation threshold",
        "the same at the threshold that is best on validation (known and negative); of equal ones the lowest",
        unit="share",
        better="higher",
        undefined="no validation scores",
        paths=(("openset_accuracy", "unknown", "strict", "oosa"),),
    ),
)
DEFINITIONS: dict[str, str] = {
    **formulas(MEASURES, "accuracy", "macro_accuracy"),
    "auroc": "highest known score of known samples against the group's, ties half; auroc_rest_as_known: samples of the "
    "other group count as known (openset-imagenet)",
    **formulas(MEASURES, "sum_ccr"),
    "confidence": confidence.DEFINITION,
    "openset_accuracy": oscr.ACCURACY_DEFINITION,
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each classifier on each grid, against unknown samples."""
    part = data["manifest"] and data["manifest"]["parts"]["scores"]
    for name, one in data["classifiers"].items():
        file = data["inputs"][name]["scores"]
        for grid, rates in one["oscr"].items():
            yield Scored(
                part=part or "",
                variant=grid,
                numbers={**one, "rates": rates["unknown"]},
                truth={"labels": file["labels_sha256"]},
                predictions={name: file},
                operating_point={"scores": file["kind"], "background": one["background"]},
                method=name,
                pinned=bool(part),
                of_several=True,
            )


_GROUPS = ("negative", "unknown")
_WORST = 5


def _tables(result: Result) -> Iterator[Table]:
    data = result.data
    ones = data["classifiers"]
    yield _inputs(data)
    yield across("Measures", ones, list(_summary_lines(data)))
    for group in _GROUPS:
        if any(one["n"][group] for one in ones.values()):
            yield _rates(data, group)
    for name, one in ones.items():
        if one["classes"]:
            yield _worst_classes(name, one)
    if data["bootstrap"] is not None:
        yield from _bootstrap(data["bootstrap"])
    header = [f"ccr_at_fpr_{group}_{query}" for group in _GROUPS for query in data["queries"]]
    yield Table(
        "classes",
        tuple(map(Column, ("classifier", "class", "n", "accuracy", "mean_score", *header))),
        [
            (name, row["class"], row["n"], row["accuracy"], row["mean_score"], *row["ccr_at_fpr"].values())
            for name, one in ones.items()
            for row in one["classes"]
        ],
        file=True,
    )
    columns = ("classifier", "part", "metric", "value")
    yield Table("metrics", tuple(map(Column, columns)), lambda: _metric_rows(data), file=True)


def _metric_rows(result: Data) -> Iterator[tuple[Any, ...]]:
    """Yield every number of a result under its path, ``oscr.exact.unknown.ccr_at_fpr.0.01``."""
    for name, one in result["classifiers"].items():
        for key, value in one.items():
            if key not in ("classes", "validation"):
                yield from ((name, "test", *row) for row in _leaves(value, key))
        if one["validation"] is not None:
            for key, value in one["validation"].items():
                yield from ((name, "val", *row) for row in _leaves(value, key))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    elif value is None or isinstance(value, int | float):
        yield path, value


def _inputs(data: Data) -> Table:
    rows: list[tuple[str, ...]] = [
        (name, what, f"{file['name']} ({file['rows']})", file["sha256"], file["kind"], file["labels_from"],
         "; ".join(f"{reason}: {count}" for reason, count in file["reported"].items()))
        for name, files in data["inputs"].items()
        for what, file in files.items()
        if file is not None
    ]  # fmt: skip
    manifest = data["manifest"]
    if manifest is not None:
        rows.append(
            ("", "manifest", f"{manifest['name']} {manifest['version']}", manifest["digest"], "", "", "")
        )
    columns = (
        Column("classifier"),
        Column("what", head=""),
        Column("file"),
        Column("digest", "digest"),
        Column("kind"),
        Column("labels_from", head="labels from"),
        Column("reported"),
    )
    return Table("inputs", columns, rows, title="Inputs")


def _summary_lines(data: Data) -> Iterator[tuple[str, str, Callable[[Any], Any]]]:
    ones = data["classifiers"]
    yield "samples known/negative/unknown", "", lambda one: "/".join(str(n) for n in one["n"].values())
    for key in ("accuracy", "macro_accuracy"):
        yield key.replace("_", " "), ".4f", itemgetter(key)
    yield "gamma+", ".4f", lambda one: one["confidence"]["unknown"]["gamma_plus"]
    for group in _GROUPS:
        if not any(one["n"][group] for one in ones.values()):
            continue
        for label, path in (
            (f"gamma-, {group}", ("confidence", group, "gamma_minus")),
            (f"gamma, {group}", ("confidence", group, "gamma")),
            (f"AUROC, {group}", ("auroc", group, "auroc")),
            (f"best OSA, {group}", ("openset_accuracy", group, "strict", "iosa")),
            (f"OSA at validation threshold, {group}", ("openset_accuracy", group, "strict", "oosa")),
        ):
            yield label, ".4f", partial(reduce, getitem, path)
    if any(one["validation"] is not None for one in ones.values()):
        yield (
            "validation gamma, negative",
            ".4f",
            lambda one: one["validation"] and one["validation"]["confidence"]["negative"]["gamma"],
        )
    if data["epochs"]:
        kept = {id(one): (data["epochs"].get(name) or {"kept": None})["kept"] for name, one in ones.items()}
        yield "epoch kept", "", lambda one: kept[id(one)]


def _rates(data: Data, group: str) -> Table:
    queries = data["queries"]
    rows = [
        (
            name,
            grid,
            *(_both(section, query) for query in queries),
            f"{shown(section['sum_ccr']['value'], 'ratio')} of {section['sum_ccr']['of']}",
            section["smallest_fpr"],
        )
        for name, one in data["classifiers"].items()
        for grid, sections in one["oscr"].items()
        for section in (sections[group],)
    ]
    columns = (
        Column("classifier"),
        Column("grid"),
        *(Column(f"CCR@{query}") for query in queries),
        Column("sum"),
        Column("smallest_fpr", "ratio", "smallest FPR above 0"),
    )
    title = f"CCR at FPR on {group} samples (in brackets: mean over classes)"
    return Table("", columns, rows, title=title)


def _both(section: Data, query: str) -> str:
    """Return the rate over all samples, and the mean of the classes' rates."""
    rate, mean = section["ccr_at_fpr"][query], section["macro_ccr_at_fpr"][query]
    return f"{shown(rate, 'ratio')} ({shown(mean, 'ratio')})"


def _worst_classes(name: str, one: Data) -> Table:
    """Return the classes of lowest accuracy."""
    told = [row for row in one["classes"] if row["accuracy"] is not None]
    worst = sorted(told, key=lambda row: (row["accuracy"], row["class"]))[:_WORST]
    columns = (Column("class"), Column("n", "count"), Column("accuracy", "ratio"))
    rows = [(row["class"], row["n"], row["accuracy"]) for row in worst]
    return Table("", columns, rows, title=f"{name}: classes of lowest accuracy, of {len(told)}")


def _bootstrap(bootstrap: Data) -> Iterator[Table]:
    percent = f"{100 * float(bootstrap['confidence']):g} %"
    intervals = bootstrap["intervals"]
    lines = [(measure, "", partial(_interval, measure)) for measure in next(iter(intervals.values()))]
    note = f"{percent} intervals over classes, {bootstrap['replicates']} replicates, seed {bootstrap['seed']}"
    yield across(note, intervals, lines)
    told = {name: found for name, found in bootstrap["differences"].items() if "reason" not in found}
    if told:
        yield across(f"Differences to {bootstrap['differences_to']}, paired", told, lines)


def _interval(measure: str, found: Data) -> str | None:
    cell = found[measure]
    if cell["low"] is None:
        return None
    return f"{cell['estimate']:.4f} [{cell['low']:.4f}, {cell['high']:.4f}]"


def _drawings(result: Result) -> Iterator[Drawing]:
    from curation.evaluation.oscr_figures import confidence_figure, oscr_figure, score_histograms

    data, scores, runs = result.data, result.columns["scores"], result.columns["epochs"]
    drawable = any(
        one["n"]["known"] and any(one["n"][group] for group in _GROUPS)
        for one in data["classifiers"].values()
    )
    missing = "" if drawable else "no curves: they need known and other samples"
    for grid in data["grids"]:
        found = {name: one for name, one in scores.items() if grid in data["classifiers"][name]["oscr"]}
        if found or missing:
            yield Drawing(
                f"oscr_{grid}", partial(oscr_figure, found, grid=grid) if drawable else None, missing
            )
        # Told once for all grids.
        missing = ""
    yield Drawing("scores", partial(score_histograms, scores))
    if runs:
        yield Drawing("confidence", partial(confidence_figure, runs))


REPORT = Report(
    "imagenet",
    MEASURES,
    scored,
    _tables,
    _drawings,
    files=("metrics", "classes"),
    figures=("oscr_*", "scores", "confidence"),
)
