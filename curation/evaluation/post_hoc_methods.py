"""The post-hoc scores by name: what each needs, and how to compute it; higher is more ID in every one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.columns import Floats
from curation.evaluation.post_hoc import (
    GaussianDensity,
    Mahalanobis,
    NearestNeighbour,
    energy,
    generalized_entropy,
    max_softmax,
)
from curation.evaluation.post_hoc_files import PostHocInputs
from curation.evaluation.post_hoc_layers import Dice, DiceReAct, ReAct, ViM, ash_s

ENGINES: dict[str, str] = {
    "code": "the formulas of FMIYC's code, in NumPy",
    "pytorch-ood": "the detectors of the package pytorch-ood, their outlier scores negated",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the methods may be told; the defaults are those of FMIYC's code.

    Attributes
    ----------
    percentile : float
        ASH, DICE, ReAct.
    k : int
        kNN: 10 for Faster R-CNN, 12 for RT-DETR.
    squared : bool
        kNN: squared distances (the code) or distances (the paper).
    gamma : float
        GEN.
    top : int or None
        GEN: M, all classes by default.
    dimension : int or None
        ViM: of the principal subspace; by the code's rule by default.
    weighted : bool
        DDU: with the class weights of the paper's eq. 22-23, which the code lacks.
    """

    percentile: float = 90.0
    k: int = 10
    squared: bool = True
    gamma: float = 0.1
    top: int | None = None
    dimension: int | None = None
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """One post-hoc score.

    Attributes
    ----------
    meaning : str
    needs : tuple of str
        Fields of `PostHocInputs`.
    score : callable
        Arrays of all needs as attributes, and settings, to scores of shape (n,).
    """

    meaning: str
    needs: tuple[str, ...]
    score: Callable[[Any, Settings], Floats]


_FITTED = ("features", "train")
_LAYERED = ("features", "train", "layer")
METHODS: dict[str, Method] = {
    "msp": Method("highest softmax probability", ("logits",), lambda x, _: max_softmax(x.logits)),
    "energy": Method("logsumexp of the logits, T = 1", ("logits",), lambda x, _: energy(x.logits)),
    "gen": Method(
        "minus the generalized entropy",
        ("logits",),
        lambda x, s: generalized_entropy(x.logits, gamma=s.gamma, top=s.top),
    ),
    "knn": Method(
        "minus the distance to the k-th nearest training feature, unit rows",
        _FITTED,
        lambda x, s: NearestNeighbour.fit(x.train, k=s.k, squared=s.squared).score(x.features),
    ),
    "mahalanobis": Method(
        "minus the squared Mahalanobis distance to the nearest class mean",
        (*_FITTED, "labels"),
        lambda x, _: Mahalanobis.fit(x.train, x.labels).score(x.features),
    ),
    "ddu": Method(
        "log-density of class-wise Gaussians",
        (*_FITTED, "labels"),
        lambda x, s: GaussianDensity.fit(x.train, x.labels, weighted=s.weighted).score(x.features),
    ),
    "ash": Method(
        "energy after ASH-S, per sample",
        ("features", "layer"),
        lambda x, s: ash_s(x.features, x.layer, percentile=s.percentile),
    ),
    "dice": Method(
        "energy of the sparse last layer",
        _LAYERED,
        lambda x, s: Dice.fit(x.train, x.layer, percentile=s.percentile).score(x.features),
    ),
    "react": Method(
        "energy of clipped activations",
        _LAYERED,
        lambda x, s: ReAct.fit(x.train, x.layer, percentile=s.percentile).score(x.features),
    ),
    "dice_react": Method(
        "energy of clipped activations in the sparse last layer",
        _LAYERED,
        lambda x, s: DiceReAct.fit(x.train, x.layer, percentile=s.percentile).score(x.features),
    ),
    "vim": Method(
        "energy minus the virtual logit",
        _LAYERED,
        lambda x, s: ViM.fit(x.train, x.layer, dimension=s.dimension).score(x.features),
    ),
}


def possible(inputs: PostHocInputs) -> tuple[str, ...]:
    """Return the methods for which everything is at hand, in the order of `METHODS`."""
    return tuple(
        name
        for name, method in METHODS.items()
        if all(getattr(inputs, one) is not None for one in method.needs)
    )


def compute(
    inputs: PostHocInputs, name: str, settings: Settings | None = None, *, engine: str = "code"
) -> Floats:
    """Return one post-hoc score of every row, shape (n,); higher is more ID.

    Parameters
    ----------
    name : str
        A key of `METHODS`.
    settings : Settings, optional
    engine : {"code", "pytorch-ood"}

    Raises
    ------
    UsageError
        There is no such method or engine, or a setting is out of range.
    EvaluationError
        Something that the method needs is missing, it cannot be fitted, or a score is not finite.
    MissingExtraError
        The engine is not installed.
    """
    settings = settings or Settings()
    _check(name, settings, engine)
    missing = [one for one in METHODS[name].needs if getattr(inputs, one) is None]
    if missing:
        raise EvaluationError(
            f"{name} needs more than is at hand",
            expected=", ".join(METHODS[name].needs),
            found="missing: " + ", ".join(missing),
            hint="--test FILE has logits and features, --train FILE features and labels, --layer FILE weight and bias",
        )
    try:
        # Features that overflow show in the result, which is checked.
        with np.errstate(all="ignore"):
            scores = _computed(inputs, name, settings, engine)
    except np.linalg.LinAlgError as error:
        raise EvaluationError(f"{name} cannot be fitted to these features", found=str(error)[:200]) from None
    if not np.isfinite(scores).all():
        raise EvaluationError(
            f"{name} gives a score that is not finite",
            where=f"row {int(np.argmin(np.isfinite(scores)))}",
            hint="features of very different scale overflow: standardise them",
        )
    return scores


def _computed(inputs: PostHocInputs, name: str, settings: Settings, engine: str) -> Floats:
    if engine == "code":
        return METHODS[name].score(inputs, settings)
    from curation.evaluation.post_hoc_pytorch_ood import compute_with_pytorch_ood

    return compute_with_pytorch_ood(inputs, name, settings)


def _check(name: str, settings: Settings, engine: str) -> None:
    for what, value, known in (("method", name, METHODS), ("engine", engine, ENGINES)):
        if value not in known:
            raise UsageError(f"Unknown {what}", expected=", ".join(known), found=repr(value)[:80])
    ranges = {
        "percentile": 0 <= settings.percentile < 100,
        "k": settings.k >= 1,
        "gamma": 0 < settings.gamma < np.inf,
        "top": settings.top is None or settings.top >= 1,
        "dimension": settings.dimension is None or settings.dimension >= 0,
    }
    for setting, usable in ranges.items():
        if not usable:
            raise UsageError(f"--{setting} is out of range", found=str(getattr(settings, setting))[:40])
