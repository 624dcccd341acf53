"""Post-hoc scores by name: what each method needs and computes, by the code of its authors or by pytorch-ood."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.errors import CurationError, EvaluationError, MissingExtraError, UsageError
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
    kept_activations,
    max_softmax,
    principal_dimension,
)
from curation.evaluation.problem import Floats, Int64s
from curation.torchvision_operators import import_torchvision

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
    doubt : callable
        Arrays of all needs as attributes, to what makes the score doubtful, None for nothing.
    """

    meaning: str
    needs: tuple[str, ...]
    score: Callable[[Any, Settings], Floats]
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
        lambda x: _singular_classes(x.train, x.labels),
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


def compute_all(
    inputs: PostHocInputs, names: Iterable[str], settings: Settings | None = None, *, engine: str = "code"
) -> Scores:
    """Return the scores of several methods; one that cannot be computed leaves the others standing.

    Raises
    ------
    UsageError
        There is no such method or engine, or a setting is out of range.
    MissingExtraError
        The engine is not installed.
    """
    found = Scores({}, {}, {})
    for name in dict.fromkeys(names):
        _check(name, settings or Settings(), engine)
        try:
            found.values[name] = compute(inputs, name, settings, engine=engine)
        except MissingExtraError:
            raise
        except CurationError as error:
            found.impossible[name] = error
            continue
        if doubt := METHODS[name].doubt(inputs):
            found.doubts[name] = doubt
    return found


def compute(inputs: PostHocInputs, name: str, settings: Settings | None = None, *, engine: str = "code") -> Floats:
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
            f"{name} needs more than is available",
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


ABSENT: dict[str, str] = {"dice_react": "pytorch-ood has no detector that combines DICE and ReAct"}
"""Methods of `curation.evaluation.post_hoc.methods` that the package does not have, and why."""


def compute_with_pytorch_ood(inputs: PostHocInputs, name: str, settings: Settings) -> Floats:
    """Return the negated outlier score of a pytorch-ood detector, shape (n,), float64.

    Features are given as float64, and the last layer to DICE and ViM, which compute in float32 there.

    Raises
    ------
    UsageError
        The package has no such method.
    EvaluationError
        It refuses the arrays (k above the number of training features, say).
    MissingExtraError
        It is not installed.
    """
    if name in ABSENT:
        raise UsageError(f"The engine has no {name}", found=ABSENT[name], hint="--engine code")
    detectors, torch = _packages()
    try:
        with torch.no_grad():
            outlier = _outlier_scores(detectors, torch, inputs, name, settings)
    except (ValueError, AssertionError, RuntimeError) as error:
        raise EvaluationError(
            f"pytorch-ood cannot compute {name} from these arrays", found=str(error)[:200] or None
        ) from None
    return -np.asarray(outlier.cpu().numpy(), np.float64)


def _packages() -> tuple[Any, Any]:
    try:
        import torch

        # pytorch-ood imports torchvision at its top, which fails beside a torch of another build.
        import_torchvision()
        from pytorch_ood import detector
    except ImportError as error:
        raise MissingExtraError(
            "pytorch-ood is not installed", found=str(error)[:200], hint="pip install 'curation[ood]'"
        ) from None
    except RuntimeError as error:
        raise MissingExtraError(
            "pytorch-ood cannot be loaded: torch and torchvision do not fit together",
            found=str(error)[:200],
            hint="install the torchvision that belongs to your torch, or take --engine code",
        ) from None
    return detector, torch


def _outlier_scores(detectors: Any, torch: Any, inputs: PostHocInputs, name: str, settings: Settings) -> Any:
    def tensor(values: Any) -> Any:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))

    if name in ("msp", "energy", "gen"):
        found = {
            "msp": lambda: detectors.MaxSoftmax(None),
            "energy": lambda: detectors.EnergyBased(None),
            "gen": lambda: detectors.GEN(None, gamma=settings.gamma, M=settings.top),
        }[name]()
        return found.predict_logits(tensor(inputs.logits))
    features = tensor(inputs.features)
    if name in ("ash", "react"):
        return _of_maps(detectors, tensor, inputs, features, name, settings)
    train = tensor(inputs.train)
    labels = torch.zeros(len(train), dtype=torch.long) if inputs.labels is None else tensor(inputs.labels)
    if name == "knn":
        return detectors.KNN(None, k=settings.k).fit_features(train, labels).predict_features(features)
    if name == "ddu":
        return detectors.GMM(None).fit_features(train, labels).predict_features(features)
    if name == "mahalanobis":
        return (
            detectors.Mahalanobis(None)
            .fit_features(train.float(), torch.unique(labels, return_inverse=True)[1])
            .predict_features(features.float())
        )
    weight, bias = tensor(inputs.layer.weight).float(), tensor(inputs.layer.bias).float()  # type: ignore[union-attr]
    if name == "dice":
        fitted = detectors.DICE(None, w=weight, b=bias, p=settings.percentile / 100)
        return fitted.fit_features(train.float(), labels).predict_features(features.float())
    d = features.shape[1]
    size = principal_dimension(d) if settings.dimension is None else settings.dimension
    return detectors.ViM(None, d=size, w=weight, b=bias).fit_features(train, labels).predict_features(features)


def _of_maps(detectors: Any, tensor: Any, inputs: PostHocInputs, features: Any, name: str, settings: Settings) -> Any:
    """Return the scores of the detectors that take feature maps: pooled features are maps of one place."""
    weight, bias = tensor(inputs.layer.weight), tensor(inputs.layer.bias)  # type: ignore[union-attr]

    def head(maps: Any) -> Any:
        return maps.flatten(1) @ weight.T + bias

    share = settings.percentile / 100
    if name == "ash":
        kept_activations(features.shape[1], settings.percentile)
        shaped = detectors.ASH(None, head, variant="ash-s", percentile=share)
        return shaped.predict_feature_maps(features[:, :, None, None])
    ceiling = float(np.percentile(np.asarray(inputs.train), settings.percentile))
    return detectors.ReAct(None, head, threshold=ceiling).predict_feature_maps(features[:, :, None, None])
