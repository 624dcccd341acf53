"""Image-level OOD measures of an ID set against an OOD set, by variant, and the tables of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np

from curation.core.errors import PredictionError
from curation.evaluation.measures import Measure, definitions
from curation.evaluation.problem import Floats
from curation.evaluation.result import Column, Data, Report, Result, Table, input_rows
from curation.evaluation.separability import (
    RankedScores,
    ScoreSteps,
    aupr_trapezoid,
    auroc,
    fpr95_at_vertices,
    fpr95_first,
    fpr95_nearest,
    fpr95_quantile,
    fpr95_rank,
)
from curation.extensions.image_ood.images import ScoredSet

FprRule = Literal[
    "FPR95_ood_positive", "FPR95_ood_positive_vertices", "FPR95_first", "FPR95_nearest", "FPR95_quantile", "FPR95_rank"
]  # fmt: skip
FPR_RULES: Mapping[str, str] = {
    "FPR95_ood_positive": "OOD positive: share of ID scores <= tau, tau the smallest score with "
    "20 * (OOD scores <= tau) >= 19 * n_ood",
    "FPR95_ood_positive_vertices": "the same at the first vertex of scikit-learn's ROC, which leaves "
    "out points between equal steps",
    "FPR95_first": "ID positive: share of OOD scores >= tau, tau the largest score with "
    "20 * (ID scores >= tau) >= 19 * n_id",
    "FPR95_nearest": "ID positive: share of OOD scores >= tau, tau the score where the share of ID scores >= tau is "
    "nearest to 0.95; of equally near shares the higher one, of equal shares the lowest score",
    "FPR95_quantile": "ID positive: share of OOD scores >= the quantile of the ID scores at 1 - 0.95 in floating "
    "point, a hair above 0.05, linearly interpolated; scores that are not finite as they are",
    "FPR95_rank": "ID positive: share of OOD scores > the ID score of ascending rank round(0.05 n), from 0, a half "
    "to the even rank",
}
_FPR95: Mapping[str, Callable[[ScoreSteps, Floats, Floats], float]] = {
    "FPR95_ood_positive": lambda steps, ids, oods: fpr95_first(steps.mirrored),
    "FPR95_ood_positive_vertices": lambda steps, ids, oods: fpr95_at_vertices(steps),
    "FPR95_first": lambda steps, ids, oods: fpr95_first(steps),
    "FPR95_nearest": lambda steps, ids, oods: fpr95_nearest(RankedScores.from_scores(ids, oods)),
    "FPR95_quantile": lambda steps, ids, oods: fpr95_quantile(ids, oods),
    "FPR95_rank": lambda steps, ids, oods: fpr95_rank(ids, oods),
}
COMPARED = ("AUROC", "FPR95", "AUPR_IN", "AUPR_OUT")
"""Numbers of an ID set against an OOD set."""
NUMBERS = (*COMPARED, "ACC")
"""All numbers of a row, in the order of `MEASURES`."""


class OodRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a variant of the image-level measures, as a benchmark declares them.

    Attributes
    ----------
    name, meaning : str
    fpr : str
        Key of `FPR_RULES`.
    not_finite : {"refuse", "repair"}
        Whether NaN and infinities are an error; or count as 0 and as the largest and smallest float, except in FPR95.
    nothing_found : float
        Precision above the highest score: the start of the precision-recall curves.
    """

    name: str
    meaning: str
    fpr: FprRule = "FPR95_ood_positive"
    not_finite: Literal["refuse", "repair"] = "refuse"
    nothing_found: float = 1.0


def numbers_of(ids: Floats, oods: Floats, rules: Sequence[OodRules]) -> list[dict[str, float | None]]:
    """Return the numbers of `COMPARED` under each of the rules; both sets must have scores.

    Examples
    --------
    >>> exact = OodRules(name="exact", meaning="")
    >>> ids, oods = np.array([0.9, 0.8, 0.8, 0.7, 0.4]), np.array([0.8, 0.6, 0.4, 0.3])
    >>> {name: round(value, 6) for name, value in numbers_of(ids, oods, [exact])[0].items()}
    {'AUROC': 0.775, 'AUPR_IN': 0.834167, 'AUPR_OUT': 0.772917, 'FPR95': 0.8}
    """
    # Values shared by several variants are computed once.
    steps = ScoreSteps.from_scores(np.nan_to_num(ids), np.nan_to_num(oods))
    area = auroc(steps)
    precision = {
        start: (aupr_trapezoid(steps, start=start), aupr_trapezoid(steps.mirrored, start=start))
        for start in {rule.nothing_found for rule in rules}
    }
    return [
        {
            "AUROC": area,
            **dict(zip(("AUPR_IN", "AUPR_OUT"), precision[rule.nothing_found], strict=True)),
            "FPR95": _FPR95[rule.fpr](steps, ids, oods),
        }
        for rule in rules
    ]


def require_usable(scored: ScoredSet, rules: Sequence[OodRules]) -> str:
    """Raise an error for scores that are not finite, if a variant does not repair them; return a note on repairs."""
    usable = np.isfinite(scored.scores)
    if usable.all():
        return ""
    row = int(np.argmin(usable))
    name = f"row {row + 1}" if scored.images is None else scored.images.paths[row][:120]
    if strict := [rule.name for rule in rules if rule.not_finite == "refuse"]:
        raise PredictionError(
            "A score is not finite",
            where=f"{scored.file['name']}: set {scored.name}, {name}",
            expected=f"numbers that can be ranked, for the variant {strict[0]}",
            found=f"{float(scored.scores[row])}; such images: {int((~usable).sum()):,}",
        )
    count = f"{int((~usable).sum()):,} scores of {scored.name}"
    return f"{count} are not finite: NaN counts as 0, infinities as the largest float"


def mean_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the unweighted mean of the numbers of several sets; None where a number is undefined."""
    values = {name: [row[name] for row in rows] for name in COMPARED}
    return {
        name: None if None in of_sets or not of_sets else float(np.mean(of_sets)) for name, of_sets in values.items()
    }


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
        better="higher",
    ),
    _of_sets(
        "FPR95",
        "false positive rate at 95 % true positives",
        "as the variant says: which class is positive, and which threshold counts (`FPR95_ood_positive`, "
        "`FPR95_ood_positive_vertices`, `FPR95_first`, `FPR95_nearest`, `FPR95_quantile`, `FPR95_rank`)",
        better="lower",
    ),
    _of_sets(
        "AUPR_IN",
        "area under precision over recall, ID positive",
        "trapezoids between all distinct scores, from recall 0 with precision 1; depends on the ratio of ID to OOD",
        better="higher",
    ),
    _of_sets(
        "AUPR_OUT",
        "area under precision over recall, OOD positive",
        "the same of negated scores with ID and OOD exchanged",
        better="higher",
    ),
)  # fmt: skip
_ACCURACY = _share(
    "ACC",
    "accuracy on ID images",
    "ID images whose prediction is their label / ID images; with covariate-shifted sets as ID, over all pooled",
    better="higher", source="OpenOOD 1.5, openood/evaluation_api/evaluator.py",
    undefined="predictions or labels are not given",
)  # fmt: skip
_SPREADS = tuple(
    Measure(
        f"{key}_std",
        f"spread of {key} over runs",
        _STD,
        unit="share",
        source="OpenOOD 1.5, scripts/eval_ood.py",
        undefined="undefined for one of the runs",
    )
    for key in NUMBERS
)
MEASURES = (*_COMPARED, _ACCURACY, *_SPREADS)
DEFINITIONS = definitions(MEASURES[: len(NUMBERS)])

_MOST_SHOWN = 20
"""Largest number of sets in a group whose rows a terminal shows."""


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
    variants = [(name, *(row[key] for key in ("meaning", "FPR95", "rule"))) for name, row in data["variants"].items()]
    heads = (Column("variant"), Column("meaning"), Column("FPR95"), Column("rule", text=False))
    yield Table("variants", heads, variants, title="Variants")
    if len(data["lists"]) > 1:
        yield _lists(data)
    yield _numbers(result)


def _lists(data: Data) -> Table:
    """Return the number of images that each list leaves out of each set."""
    rows = [
        (which, name, n, record["left_out"].get(name, 0), record["judged"].get(name))
        for which, record in data["lists"].items()
        for name, n in record["images"].items()
    ]
    columns = (Column("list"), Column("set"), Column("images", "count"), Column("left_out", "count", "left out"),
               Column("judged", "count"))  # fmt: skip
    title = "Images left out; unjudged is not clean" if any(row[4] for row in rows) else "Images left out"
    return Table("lists", columns, rows, title=title, printed=[row for row in rows if row[3] or row[4]], file=True)


def _is_shown(data: Data, row: str) -> bool:
    members = [name for names in data["groups"].values() for name in names]
    return len(members) <= _MOST_SHOWN or row not in members


def _numbers(result: Result) -> Table:
    """Return a table with one row per set and group, and one column per measure."""
    rows: list[tuple[Any, ...]] = []
    for scored in result.scored:
        by_measure = {} if scored.found is None else {value.measure: value for value in scored.found.values}
        numbers = [by_measure[measure.key].value if measure.key in by_measure else None for measure in MEASURES]
        sizes = by_measure["AUPR_IN"].n, by_measure["AUROC"].n
        which = scored.method, scored.split or "published", scored.task, scored.variant, scored.part
        rows.append((*which, *sizes, *numbers))
    several = len(result.data["inputs"]) > 1
    columns = (Column("run", text=several), Column("list"), Column("id", head="ID"), Column("variant"), Column("set"),
               Column("n_id", "count", "n ID"), Column("n_ood", "count", "n OOD"),
               *(Column(key, "share") for key in NUMBERS),
               *(Column(f"{key}_std", "share", f"± {key}", text=several) for key in NUMBERS))  # fmt: skip
    printed = [row for row in rows if _is_shown(result.data, row[4])]
    title = "Numbers; of several runs mean and population standard deviation" if several else "Numbers"
    return Table("ood", columns, rows, title=title, printed=printed, file=True)


def report_as(protocol: str, *, algorithm: int = 1) -> Report:
    """Return the report of image-level OOD results, under the name of a benchmark."""
    return Report(
        protocol,
        MEASURES,
        tables=_tables,
        algorithm=algorithm,
        files=("ood", "lists"),
        places=("method", "split", "task", "variant", "case"),
    )
