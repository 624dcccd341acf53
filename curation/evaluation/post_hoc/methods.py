"""Post-hoc scores by name: what each method needs and computes, by the formulas of FMIYC's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.errors import CurationError, EvaluationError, UsageError
from curation.evaluation.post_hoc.files import PostHocInputs
from curation.evaluation.post_hoc.scores import (
    Dice,
    DiceReAct,
    GaussianDensity,
    Mahalanobis,
    NearestNeighbour,
    ReAct,
    ViM,
    ash_s,
    energy,
    generalized_entropy,
    max_softmax,
)
from curation.evaluation.problem import Floats, Int64s


@dataclass(frozen=True, slots=True)
class Method:
    """One post-hoc score.

    Attributes
    ----------
    meaning : str
    needs : tuple of str
        Fields of `PostHocInputs`.
    score : callable
        Arrays of all needs as attributes, and k of kNN, to scores of shape (n,).
    doubt : callable
        Arrays of all needs as attributes, to what makes the score doubtful, None for nothing.
    """

    meaning: str
    needs: tuple[str, ...]
    score: Callable[[Any, int], Floats]
    doubt: Callable[[Any], str | None] = lambda _: None


def _singular_classes(train: Floats, labels: Int64s) -> str | None:
    """Return which classes have too few samples for a covariance of full rank: n - 1 below the dimension."""
    classes, counts = np.unique(labels, return_counts=True)
    few = counts <= train.shape[1]
    if not few.any():
        return None
    shown = ", ".join(f"{label}: {n}" for label, n in zip(classes[few][:5], counts[few][:5], strict=True))
    more = ", …" if few.sum() > 5 else ""
    return (
        f"{int(few.sum())} of {len(classes)} classes have too few training features for a covariance of full rank: "
        f"{train.shape[1] + 1} are needed for {train.shape[1]} dimensions (label: number: {shown}{more}); what is "
        "added to the diagonal to invert them decides the scores"
    )


NEIGHBOURS = 10
_FITTED = ("features", "train")
_LAYERED = ("features", "train", "layer")
METHODS: dict[str, Method] = {
    "msp": Method("highest softmax probability", ("logits",), lambda x, _: max_softmax(x.logits)),
    "energy": Method("logsumexp of the logits, T = 1", ("logits",), lambda x, _: energy(x.logits)),
    "gen": Method("minus the generalized entropy", ("logits",), lambda x, _: generalized_entropy(x.logits)),
    "knn": Method(
        "minus the distance to the k-th nearest training feature, unit rows",
        _FITTED,
        lambda x, k: NearestNeighbour.fit(x.train, k=k).score(x.features),
    ),
    "mahalanobis": Method(
        "minus the squared Mahalanobis distance to the nearest class mean",
        (*_FITTED, "labels"),
        lambda x, _: Mahalanobis.fit(x.train, x.labels).score(x.features),
    ),
    "ddu": Method(
        "log-density of class-wise Gaussians",
        (*_FITTED, "labels"),
        lambda x, _: GaussianDensity.fit(x.train, x.labels).score(x.features),
        lambda x: _singular_classes(x.train, x.labels),
    ),
    "ash": Method(
        "energy after ASH-S, per sample",
        ("features", "layer"),
        lambda x, _: ash_s(x.features, x.layer),
    ),
    "dice": Method(
        "energy of the sparse last layer",
        _LAYERED,
        lambda x, _: Dice.fit(x.train, x.layer).score(x.features),
    ),
    "react": Method(
        "energy of clipped activations",
        _LAYERED,
        lambda x, _: ReAct.fit(x.train, x.layer).score(x.features),
    ),
    "dice_react": Method(
        "energy of clipped activations in the sparse last layer",
        _LAYERED,
        lambda x, _: DiceReAct.fit(x.train, x.layer).score(x.features),
    ),
    "vim": Method(
        "energy minus the virtual logit",
        _LAYERED,
        lambda x, _: ViM.fit(x.train, x.layer).score(x.features),
    ),
}


def possible(inputs: PostHocInputs) -> tuple[str, ...]:
    """Return the methods for which everything is available, in the order of `METHODS`."""
    return tuple(
        name for name, method in METHODS.items() if all(getattr(inputs, one) is not None for one in method.needs)
    )


@dataclass(frozen=True, slots=True)
class Scores:
    """What several methods gave.

    Attributes
    ----------
    values : dict of str to ndarray of float64, shape (n,)
        Higher is more ID.
    impossible : dict of str to CurationError
        Methods that could not be computed, and why.
    doubts : dict of str to str
        What makes a score that was computed doubtful.
    """

    values: dict[str, Floats]
    impossible: dict[str, CurationError]
    doubts: dict[str, str]


def compute_all(inputs: PostHocInputs, names: Iterable[str], *, k: int = NEIGHBOURS) -> Scores:
    """Return the scores of several methods; one that cannot be computed leaves the others standing.

    Raises
    ------
    UsageError
        There is no such method.
    """
    found = Scores({}, {}, {})
    for name in dict.fromkeys(names):
        try:
            found.values[name] = compute(inputs, name, k=k)
        except UsageError:
            raise
        except CurationError as error:
            found.impossible[name] = error
            continue
        if doubt := METHODS[name].doubt(inputs):
            found.doubts[name] = doubt
    return found


def compute(inputs: PostHocInputs, name: str, *, k: int = NEIGHBOURS) -> Floats:
    """Return one post-hoc score of every row, shape (n,); higher is more ID.

    Parameters
    ----------
    name : str
        A key of `METHODS`.
    k : int
        kNN: 10 for Faster R-CNN, 12 for RT-DETR.

    Raises
    ------
    UsageError
        There is no such method.
    EvaluationError
        Something that the method needs is missing, it cannot be fitted, or a score is not finite.
    """
    if name not in METHODS:
        raise UsageError("Unknown method", expected=", ".join(METHODS), found=repr(name)[:80])
    missing = [one for one in METHODS[name].needs if getattr(inputs, one) is None]
    if missing:
        raise EvaluationError(
            f"{name} needs more than is available",
            expected=", ".join(METHODS[name].needs),
            found="missing: " + ", ".join(missing),
            hint="--test FILE has logits and features, --train FILE features and labels, --layer FILE weight and bias",
        )
    try:
        # Features that overflow show in the result, which is checked.
        with np.errstate(all="ignore"):
            scores = METHODS[name].score(inputs, k)
    except np.linalg.LinAlgError as error:
        raise EvaluationError(f"{name} cannot be fitted to these features", found=str(error)[:200]) from None
    if not np.isfinite(scores).all():
        raise EvaluationError(
            f"{name} gives a score that is not finite",
            where=f"row {int(np.argmin(np.isfinite(scores)))}",
            hint="features of very different scale overflow: standardise them",
        )
    return scores
