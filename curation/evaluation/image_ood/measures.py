"""Image-level OOD numbers of one ID set against one OOD set, under the rules of a variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from curation.errors import PredictionError
from curation.evaluation.image_ood.images import ScoredSet
from curation.evaluation.ood.separability import (
    ScoreSteps,
    aupr_trapezoid,
    auroc,
    fpr95_at_vertices,
    fpr95_first,
    fpr95_quantile,
    fpr95_rank,
)
from curation.evaluation.problem import Floats

FprRule = Literal[
    "FPR95_ood_positive", "FPR95_ood_positive_openood_vertices", "FPR95_first", "FPR95_quantile_ninco", "FPR95_rank_ssb"
]
FPR_RULES: Mapping[str, str] = {
    "FPR95_ood_positive": "OOD positive: share of ID scores <= tau, tau the smallest score with "
    "20 * (OOD scores <= tau) >= 19 * n_ood",
    "FPR95_ood_positive_openood_vertices": "the same at the first vertex of scikit-learn's ROC, which leaves "
    "out points between equal steps (OpenOOD 1.5)",
    "FPR95_first": "ID positive: share of OOD scores >= tau, tau the largest score with "
    "20 * (ID scores >= tau) >= 19 * n_id",
    "FPR95_quantile_ninco": "ID positive: share of OOD scores >= the quantile of the ID scores at 1 - 0.95 in floating "
    "point, a hair above 0.05, linearly interpolated; scores that are not finite as they are (NINCO)",
    "FPR95_rank_ssb": "ID positive: share of OOD scores > the ID score of ascending rank round(0.05 n), from 0, a half "
    "to the even rank (SSB)",
}
_OF_STEPS: Mapping[str, Callable[[ScoreSteps], float]] = {
    "FPR95_ood_positive": lambda steps: fpr95_first(steps.mirrored),
    "FPR95_ood_positive_openood_vertices": fpr95_at_vertices,
    "FPR95_first": fpr95_first,
}
_OF_SCORES: Mapping[str, Callable[[Floats, Floats], float]] = {
    "FPR95_quantile_ninco": fpr95_quantile,
    "FPR95_rank_ssb": fpr95_rank,
}
NUMBERS = ("AUROC", "AUPR_IN", "AUPR_OUT", "FPR95")


class OodRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one variant reads image-level scores: a row that a benchmark declares.

    Attributes
    ----------
    name, meaning : str
    fpr : str
        Key of `FPR_RULES`.
    not_finite : {"refuse", "repair"}
        Whether NaN and infinities are an error, or count as 0 and as the largest and smallest float, in all numbers
        but FPR95.
    nothing_found : float
        Precision where nothing is accepted: where the curves of AUPR begin.
    """

    name: str
    meaning: str
    fpr: FprRule = "FPR95_ood_positive"
    not_finite: Literal["refuse", "repair"] = "refuse"
    nothing_found: float = 1.0


def numbers_of(ids: Floats, oods: Floats, rules: Sequence[OodRules]) -> list[dict[str, float | None]]:
    """Return `NUMBERS` under each of some rules; both sets must hold scores.

    Examples
    --------
    >>> exact = OodRules(name="exact", meaning="")
    >>> ids, oods = np.array([0.9, 0.8, 0.8, 0.7, 0.4]), np.array([0.8, 0.6, 0.4, 0.3])
    >>> {name: round(value, 6) for name, value in numbers_of(ids, oods, [exact])[0].items()}
    {'AUROC': 0.775, 'AUPR_IN': 0.834167, 'AUPR_OUT': 0.772917, 'FPR95': 0.8}
    """
    # What several variants share is computed once.
    steps = ScoreSteps.of(np.nan_to_num(ids), np.nan_to_num(oods))
    area = auroc(steps)
    precision = {
        start: (aupr_trapezoid(steps, start=start), aupr_trapezoid(steps.mirrored, start=start))
        for start in {one.nothing_found for one in rules}
    }
    return [
        {
            "AUROC": area,
            **dict(zip(("AUPR_IN", "AUPR_OUT"), precision[one.nothing_found], strict=True)),
            "FPR95": _OF_STEPS[one.fpr](steps) if one.fpr in _OF_STEPS else _OF_SCORES[one.fpr](ids, oods),
        }
        for one in rules
    ]


def require_usable(one: ScoredSet, rules: Sequence[OodRules]) -> str:
    """Refuse scores that are not finite under a variant that does not repair them; return what to tell of repairs."""
    usable = np.isfinite(one.scores)
    if usable.all():
        return ""
    row = int(np.argmin(usable))
    name = f"row {row + 1}" if one.images is None else one.images.paths[row][:120]
    if strict := [rule.name for rule in rules if rule.not_finite == "refuse"]:
        raise PredictionError(
            "A score is not finite",
            where=f"{one.file['name']}: set {one.name}, {name}",
            expected=f"numbers that can be ranked, for the variant {strict[0]}",
            found=f"{float(one.scores[row])}; such images: {int((~usable).sum()):,}",
        )
    told = "are not finite: NaN counts as 0, infinities as the largest float"
    return f"{int((~usable).sum()):,} scores of {one.name} {told}"


def mean_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the plain mean of some sets' numbers, whatever their sizes; None where one of them is undefined."""
    values = {name: [row[name] for row in rows] for name in NUMBERS}
    return {
        name: None if None in of_sets or not of_sets else float(np.mean(of_sets)) for name, of_sets in values.items()
    }
