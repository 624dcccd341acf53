"""What the evaluation of image-level OOD scores measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from curation.evaluation.measures import Measure, definitions
from curation.evaluation.result import Column, Data, Report, Result, Scored, Table, input_rows

_PUBLISHED = "published"
_EMPTY = "a set has no images or no scores"
_STD = "population standard deviation over the runs, of the finished table"
_METRICS = "OpenOOD 1.5, openood/evaluators/metrics.py"
_share = partial(Measure, unit="share", ranked=True)
_of_sets = partial(_share, source=_METRICS, undefined=_EMPTY)
_COMPARED = (
    _of_sets(
        "AUROC",
        "area under the ROC curve",
        "P(s_id > s_ood) + P(s_id = s_ood) / 2 over all pairs of an ID and an OOD image; of a group the plain mean of "
        "its sets, whatever their sizes",
        better="higher", count=("n", "ood"),
    ),
    _of_sets(
        "FPR95",
        "false positive rate at 95 % true positives",
        "as the variant says: which class is positive, and which threshold counts (`FPR95_ood_positive`, "
        "`FPR95_ood_positive_openood_vertices`, `FPR95_first`, `FPR95_quantile_ninco`, `FPR95_rank_ssb`)",
        better="lower", count=("n", "ood"),
    ),
    _of_sets(
        "AUPR_IN",
        "area under precision over recall, ID positive",
        "trapezoids between all distinct scores, from recall 0 with precision 1; depends on the ratio of ID to OOD",
        better="higher", count=("n", "id"),
    ),
    _of_sets(
        "AUPR_OUT",
        "area under precision over recall, OOD positive",
        "the same of negated scores with ID and OOD exchanged",
        better="higher", count=("n", "ood"),
    ),
)  # fmt: skip
_ACCURACY = _share(
    "ACC",
    "accuracy on ID images",
    "ID images whose prediction is their label / ID images; with covariate-shifted sets as ID, over all pooled",
    better="higher", source="OpenOOD 1.5, openood/evaluation_api/evaluator.py",
    undefined="predictions or labels are not told", count=("n", "id"),
)  # fmt: skip
_NUMBERS = tuple(one.key for one in (*_COMPARED, _ACCURACY))
_SPREADS = tuple(
    Measure(
        f"{key}_std",
        f"spread of {key} over runs",
        _STD,
        unit="share",
        source="OpenOOD 1.5, scripts/eval_ood.py",
        undefined="undefined for one of the runs",
        paths=(("std", key),),
        count=("n", "runs"),
    )
    for key in _NUMBERS
)
MEASURES = (*_COMPARED, _ACCURACY, *_SPREADS)
DEFINITIONS = definitions(MEASURES[: len(_NUMBERS)])


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each run, and the mean over several, by list, setting, variant and row."""
    runs = dict(data["runs"]) | ({} if data["summary"] is None else {"mean": data["summary"]})
    for method, lists in runs.items():
        own = method if method in data["inputs"] else next(iter(data["inputs"]))
        for which, settings in lists.items():
            told = data["lists"][which]
            for setting, variants in settings.items():
                for variant, rows in variants.items():
                    for row, numbers in rows.items():
                        yield Scored(
                            part=row,
                            case=row,
                            task=setting,
                            split="" if which == _PUBLISHED else which,
                            variant=variant,
                            numbers=numbers,
                            truth={"images": told["images"], "left_out": told.get("file", {}).get("sha256", "")},
                            predictions=data["inputs"][own],
                            settings={
                                "FPR95": data["variants"][variant]["FPR95"],
                                "sets": ", ".join(data["groups"].get(row, (row,)))[:200],
                                "shifted": ", ".join(data["shifted"]) if setting == "fsood" else "",
                                "without": "" if which == _PUBLISHED else which,
                            },
                            method=method,
                            pinned=data["manifest"] is not None and which == _PUBLISHED,
                            of_several=len(runs) > 1,
                        )


def _tables(result: Result) -> Iterator[Table]:
    data = result.data
    inputs = [
        (run, name, *row[2:])
        for run, files in data["inputs"].items()
        for name, file in files.items()
        for row in input_rows({run: {name: file}}, None)
    ]
    inputs += [("", *row[1:]) for row in input_rows({}, data["manifest"])]
    columns = (Column("run"), Column("set"), Column("file"), Column("digest", "digest"), Column("reported"))
    yield Table("inputs", columns, inputs, title="Inputs")
    yield _variants(data)
    if len(data["lists"]) > 1:
        yield _lists(data)
    runs = dict(data["runs"])
    for name, lists in runs.items():
        yield _rows(data, lists, f"{name}: numbers in %", {"run": name})
    if data["summary"] is not None:
        yield _summary(data)
    if data["bootstrap"] is not None:
        for name, found in data["bootstrap"]["runs"].items():
            yield _intervals(data, name, found)


def _variants(data: Data) -> Table:
    rows = [(name, one["meaning"], one["FPR95"], one["rule"]) for name, one in data["variants"].items()]
    return Table("variants", (Column("variant"), Column("meaning"), Column("FPR95"), Column("rule", text=False)), rows,
                 title="Variants")  # fmt: skip


def _lists(data: Data) -> Table:
    """Return what each list leaves out of each set."""
    rows = [
        (which, name, n, told["left_out"].get(name, 0), told["judged"].get(name))
        for which, told in data["lists"].items()
        for name, n in told["images"].items()
    ]
    columns = (Column("list"), Column("set"), Column("images", "count"), Column("left_out", "count", "left out"),
               Column("judged", "count"))  # fmt: skip
    printed = [row for row in rows if row[3] or row[4]]
    return Table("lists", columns, rows, title="Images left out; unjudged is not clean" if any(
        row[4] for row in rows) else "Images left out", printed=printed, file=True)  # fmt: skip


_HEAD = (Column("list"), Column("id", head="ID"), Column("variant"), Column("set"), Column("n_id", "count", "n ID"),
         Column("n_ood", "count", "n OOD"))  # fmt: skip


def _walk(data: Data, lists: Data) -> Iterator[tuple[tuple[Any, ...], Data]]:
    for which, settings in lists.items():
        for setting, variants in settings.items():
            for variant, rows in variants.items():
                for name, row in rows.items():
                    yield (which, setting, variant, name, row["n"]["id"], row["n"]["ood"]), row


def _shown(data: Data, name: str) -> bool:
    """Return whether a terminal shows a row: of many classes, it does not show each."""
    members = [one for names in data["groups"].values() for one in names]
    return len(members) <= 20 or name not in members


def _rows(data: Data, lists: Data, title: str, where: dict[str, str]) -> Table:
    rows = [(*head, *(row[key] for key in _NUMBERS)) for head, row in _walk(data, lists)]
    columns = (*_HEAD, *(Column(key, "share", show=".2%") for key in _NUMBERS))
    printed = [row for row in rows if _shown(data, row[3])]
    return Table("ood", columns, rows, title=title, printed=printed, where=where, file=len(data["runs"]) == 1)


def _summary(data: Data) -> Table:
    rows = [
        (*head, *(value for key in _NUMBERS for value in (row[key], row["std"][key])))
        for head, row in _walk(data, data["summary"])
    ]
    columns = (*_HEAD, *(column for key in _NUMBERS for column in (
        Column(key, "share", show=".2%"), Column(f"{key}_std", "share", "±", show=".2%"))))  # fmt: skip
    printed = [row for row in rows if _shown(data, row[3])]
    title = f"Mean and population standard deviation over {len(data['runs'])} runs, in %"
    return Table("summary", columns, rows, title=title, printed=printed, file=True)


def _intervals(data: Data, name: str, found: Data) -> Table:
    rows = [
        (kind, which, setting, variant, row, key, cell["estimate"], cell["low"], cell["high"], cell["undefined"])
        for kind in ("intervals", "differences")
        for which, settings in found[kind].items()
        for setting, variants in settings.items()
        for variant, table in variants.items()
        for row, numbers in table.items()
        for key, cell in numbers.items()
    ]
    columns = (Column("what"), Column("list"), Column("id", head="ID"), Column("variant"), Column("set"),
               Column("measure"), *(Column(one, "share", show=".2%") for one in ("estimate", "low", "high")),
               Column("undefined", "count", text=False))  # fmt: skip
    bootstrap = data["bootstrap"]
    percent = f"{100 * float(bootstrap['confidence']):g} %"
    title = f"{name}: {percent} intervals over images, {bootstrap['replicates']} replicates, seed {bootstrap['seed']}"
    printed = [row for row in rows if _shown(data, row[4]) and row[5] in ("AUROC", "FPR95")]
    return Table("intervals", columns, rows, title=title, printed=printed, where={"run": name})


def report_as(protocol: str, *, algorithm: int = 1) -> Report:
    """Return how the results of image-level OOD detection show themselves, under the name of a benchmark."""
    return Report(protocol, MEASURES, scored, _tables, algorithm=algorithm, files=("ood", "lists", "summary"))
