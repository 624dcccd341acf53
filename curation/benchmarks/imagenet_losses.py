"""Training losses of the ImageNet protocols for torch: SoftMax (S), background class (BG), entropic open-set (EOS).

All are categorical cross entropies ``J = -(1/N) sum_n sum_c w_c t_nc log y_nc`` with y the softmax of the logits
(Palechor et al., WACV 2023, section 3.2, eq. 1 to 5). Labels are those of the protocols' files: 0 to K-1 for a known
class, -1 for a negative. Unknown samples (-2) are never used in training and raise an error.

The reductions, by name: ``mean`` divides by the number N of samples that take part, as the paper does;
``weighted_mean`` by the sum of their weights, as torch does; the two differ in BG alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from curation.core.errors import MissingExtraError, UsageError, install_command

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

Reduction = Literal["mean", "weighted_mean", "sum", "none"]
NEGATIVE = -1


def softmax_loss(logits: Tensor, labels: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Return S: the cross entropy of known samples; negatives are left out and do not count in N.

    Parameters
    ----------
    logits : Tensor of float, shape (n, K)
    labels : Tensor of int64, shape (n,)
        0 to K-1, or -1.
    reduction : {"mean", "weighted_mean", "sum", "none"}
        ``none`` keeps a value for each sample, 0 for a negative.

    Returns
    -------
    Tensor
        Scalar, or shape (n,). 0 without a known sample, with a gradient of zeros.

    Raises
    ------
    UsageError
        Shapes do not fit, or a label is out of range.
    MissingExtraError
        torch is not installed.

    Examples
    --------
    >>> import curation, torch
    >>> logits, labels = torch.zeros(2, 2), torch.tensor([0, -1])
    >>> round(float(curation.methods.softmax_loss(logits, labels)), 4)
    0.6931
    """
    torch = _torch()
    _check(logits, labels, logits.shape[-1])
    values = torch.nn.functional.cross_entropy(logits, labels, ignore_index=NEGATIVE, reduction="none")
    return _reduced(values, (labels >= 0).to(logits.dtype), reduction)


def background_loss(
    logits: Tensor, labels: Tensor, weights: Tensor | None = None, *, reduction: Reduction = "mean"
) -> Tensor:
    """Return BG: the weighted cross entropy of K + 1 classes, in which negatives are class K.

    Parameters
    ----------
    logits : Tensor of float, shape (n, K + 1)
        The last column is the background class.
    labels : Tensor of int64, shape (n,)
        0 to K-1, or -1; K means -1, as in the official code.
    weights : Tensor of float, shape (K + 1,), optional
        Weights of the classes, see `background_weights`; by default 1.
    reduction : {"mean", "weighted_mean", "sum", "none"}
        ``weighted_mean`` equals ``torch.nn.functional.cross_entropy(..., weight=weights)``.

    Returns
    -------
    Tensor
        Scalar, or shape (n,). 0 for an empty batch.

    Raises
    ------
    UsageError, MissingExtraError
        See `softmax_loss`.

    Examples
    --------
    >>> import curation, torch
    >>> logits, labels = torch.zeros(2, 2), torch.tensor([0, -1])
    >>> round(float(curation.methods.background_loss(logits, labels)), 4)
    0.6931
    """
    torch = _torch()
    n_classes = logits.shape[-1]
    _check(logits, labels, n_classes)
    targets = torch.where(labels == NEGATIVE, n_classes - 1, labels)
    if weights is None:
        each = torch.ones_like(targets, dtype=logits.dtype)
    elif weights.shape != (n_classes,):
        raise UsageError(
            "The weights do not fit the classes",
            expected=f"shape ({n_classes},)",
            found=f"shape {tuple(weights.shape)}",
        )
    else:
        each = weights.to(logits)[targets]
    return _reduced(each * torch.nn.functional.cross_entropy(logits, targets, reduction="none"), each, reduction)


def entropic_openset_loss(logits: Tensor, labels: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Return EOS: the cross entropy of known samples, and for negatives the cross entropy with 1/C in every class.

    The value of a negative has its minimum, log C with a gradient of zeros, at a uniform softmax (Dhamija et al.,
    NeurIPS 2018). Parameters as in `softmax_loss`; every sample counts in N.

    Examples
    --------
    >>> import curation, torch
    >>> logits, labels = torch.zeros(2, 2), torch.tensor([0, -1])
    >>> round(float(curation.methods.entropic_openset_loss(logits, labels)), 4)
    0.6931
    """
    torch = _torch()
    _check(logits, labels, logits.shape[-1])
    known = torch.nn.functional.cross_entropy(logits, labels, ignore_index=NEGATIVE, reduction="none")
    values = torch.where(labels >= 0, known, -logits.log_softmax(dim=1).mean(dim=1))
    return _reduced(values, torch.ones_like(values), reduction)


def background_weights(labels: Tensor, n_known: int) -> Tensor:
    """Return the class weights of BG over a training set, ``w_c = N / (C N_c)`` with C = K + 1, shape (C,).

    Parameters
    ----------
    labels : Tensor of int64, shape (N,)
        Labels of the complete training set: 0 to K-1, and -1 (or K) for the negatives.
    n_known : int
        K.

    Raises
    ------
    UsageError
        A label is out of range, or a class has no sample, so that its weight is undefined.

    Examples
    --------
    >>> import curation, torch
    >>> curation.methods.background_weights(torch.tensor([0, 0, 0, 0, -1]), n_known=1).tolist()
    [0.625, 2.5]
    """
    torch = _torch()
    _check_labels(labels, n_known + 1)
    counts = torch.bincount(torch.where(labels == NEGATIVE, n_known, labels), minlength=n_known + 1)
    if bool((counts == 0).any()):
        raise UsageError(
            "A class has no training sample, so that its weight is undefined",
            expected=f"samples of classes 0 to {n_known - 1} and negatives",
            found=f"none of class {int((counts == 0).nonzero()[0])}",
        )
    weights: Tensor = len(labels) / ((n_known + 1) * counts.to(torch.get_default_dtype()))
    return weights


def _reduced(values: Tensor, weights: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "none":
        return values
    total = values.sum()
    if reduction == "sum":
        return total
    if reduction == "weighted_mean":
        count = weights.sum()
    elif reduction == "mean":
        count = (weights > 0).to(values.dtype).sum()
    else:
        raise UsageError("Unknown reduction", expected="mean, weighted_mean, sum, none", found=str(reduction)[:40])
    # Without a known sample the sum is 0 and attached to the graph: a batch of only negatives has zero gradients.
    return total / count.where(count > 0, values.new_ones(()))


def _check(logits: Tensor, labels: Tensor, n_classes: int) -> None:
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not n_classes:
        raise UsageError(
            "Logits and labels do not fit together",
            expected="shapes (n, C) and (n,)",
            found=f"{tuple(logits.shape)} and {tuple(labels.shape)}",
        )
    _check_labels(labels, n_classes)


def _check_labels(labels: Tensor, n_classes: int) -> None:
    if labels.dtype != _torch().int64:
        raise UsageError("Labels must be whole numbers", expected="int64", found=str(labels.dtype))
    if labels.numel() and not (int(labels.min()) >= NEGATIVE and int(labels.max()) < n_classes):
        raise UsageError(
            "Label out of range",
            expected=f"0 to {n_classes - 1}, or -1 for a negative",
            found=f"{int(labels.min())} to {int(labels.max())}",
        )


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("The losses need torch, which is not installed", hint=install_command("clip")) from None
    return torch
