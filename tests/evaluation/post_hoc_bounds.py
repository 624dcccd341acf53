"""How far rounding can move the post-hoc scores that a peer computes in another precision or order.

First-order perturbation theory with the condition numbers of the very arrays: Davis and Kahan for subspaces, Wedin for
the pseudo-inverse, Higham for sums (`tests.rounding`). Each function returns the bound of one computation in precision
`unit`.
"""

from typing import Any

import numpy as np

from curation.evaluation.post_hoc.methods import PostHocInputs
from curation.evaluation.post_hoc.scores import LastLayer
from tests.rounding import gamma, product_error


def energy_error(features: Any, layer: LastLayer, unit: float) -> Any:
    """Of logsumexp of a layer's logits: it moves no more than the logit that moves most. Shape (n,)."""
    sums = np.abs(features) @ np.abs(layer.weight).T + np.abs(layer.bias)
    # Three roundings of the inputs and one addition; then exp, log and their sum, of which torch promises 4 units each.
    steps = gamma(features.shape[1] + 4, unit) * sums.max(axis=1)
    return steps + gamma(len(layer.bias) + 8, unit) * (1 + sums.max(axis=1))


def vim_error(case: PostHocInputs, dimension: int, alpha: float, unit: float) -> Any:
    """Of ViM: origin, subspace (by the gap of eigenvalues), residual norm, alpha and energy. Shape (n,)."""
    assert case.train is not None
    assert case.features is not None
    assert case.layer is not None
    weight, bias = case.layer.weight, case.layer.bias
    n, d = case.train.shape
    inverse = np.linalg.pinv(weight)
    origin = -(inverse @ bias)
    moved = gamma(4 * d, unit) * np.linalg.cond(weight) * np.linalg.norm(inverse, 2) * np.linalg.norm(bias)
    x = case.train - origin
    moment = x.T @ x / n
    values, vectors = np.linalg.eigh(moment)
    size = d - dimension
    gap = values[size] - values[size - 1]
    lengths = np.linalg.norm(x, axis=1)
    moment_error = (
        np.linalg.norm(product_error(x.T, x, unit), 2) / n
        + 2 * (moved + gamma(3, unit) * lengths.max()) * np.linalg.norm(x, 2) / np.sqrt(n)
        + gamma(4 * d, unit) * np.linalg.norm(moment, 2)
    )
    assert moment_error < gap / 2, "the subspace is not determined in this precision"
    turn = moment_error / (gap - moment_error)

    def residual_error(rows: Any) -> Any:
        return np.linalg.norm(rows, axis=1) * (turn + gamma(d + 4, unit)) + moved

    def residual(rows: Any) -> Any:
        return np.linalg.norm(rows @ vectors[:, :size], axis=1)

    top = case.layer.logits(case.train).max(axis=1).mean()
    alpha_error = abs(alpha) * (
        energy_error(case.train, case.layer, unit).mean() / abs(top)
        + residual_error(x).mean() / residual(x).mean()
        + gamma(2 * n, unit)
    )
    rows = case.features - origin
    virtual = abs(alpha) * residual_error(rows) + alpha_error * (residual(rows) + residual_error(rows))
    return energy_error(case.features, case.layer, unit) + virtual + gamma(2, unit) * abs(alpha) * residual(rows)


def mahalanobis_error(case: PostHocInputs, squared: Any, ridge: float, unit: float) -> Any:
    """Of the squared distance by the scatter of class-centred features, `ridge` on its diagonal. Shape (n,)."""
    assert case.train is not None
    assert case.labels is not None
    classes = np.unique(case.labels)
    means = np.stack([case.train[case.labels == one].mean(axis=0) for one in classes])
    z = case.train - means[np.searchsorted(classes, case.labels)]
    n, d = z.shape
    smallest = np.linalg.eigvalsh(z.T @ z)[0]
    shift = gamma(n + 4, unit) * np.sqrt(d) * max(np.abs(case.train).max(), np.abs(case.features).max())  # type: ignore[arg-type]
    of_scatter = (
        np.linalg.norm(product_error(z.T, z, unit), 2)
        + 2 * shift * np.sqrt(n) * np.linalg.norm(z, 2)
        + gamma(8 * d, unit) * np.linalg.norm(z, 2) ** 2
        + ridge
    )
    assert of_scatter < smallest / 2, "the precision matrix is not determined in this precision"
    relative = of_scatter / (smallest - of_scatter) + gamma(4 * d, unit) * np.linalg.cond(z) ** 2
    return relative * squared + 2 * np.sqrt(squared / smallest) * shift + shift**2 / smallest
