"""Post-hoc scores through the detectors of the package pytorch-ood, negated: there a higher score is more OOD."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.errors import EvaluationError, MissingExtraError, UsageError
from curation.evaluation.columns import Floats
from curation.evaluation.post_hoc.files import PostHocInputs
from curation.evaluation.post_hoc.layers import kept_activations, principal_dimension
from curation.evaluation.post_hoc.methods import Settings
from curation.torchvision_operators import import_torchvision

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
        return torch.from_numpy(np.ascontiguousarray(values))

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
    return (
        detectors.ViM(None, d=size, w=weight, b=bias).fit_features(train, labels).predict_features(features)
    )


def _of_maps(
    detectors: Any, tensor: Any, inputs: PostHocInputs, features: Any, name: str, settings: Settings
) -> Any:
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
