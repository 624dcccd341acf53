"""Features of three classes with a last layer, drawn once, for the post-hoc scores."""

import numpy as np

from curation.extensions.image_ood.post_hoc import LastLayer, PostHocInputs

D, K = 8, 3


def drawn(n: int = 40, n_train: int = 150, seed: int = 2) -> PostHocInputs:
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.5, 3, (K, D))
    labels = np.arange(n_train) % K
    train = np.maximum(means[labels] + rng.normal(0, 0.5, (n_train, D)), 0)
    features = np.maximum(means[rng.integers(0, K, n)] + rng.normal(0, 1.2, (n, D)), 0) + 0.01
    layer = LastLayer(rng.normal(0, 1, (K, D)), rng.normal(0, 1, K))
    return PostHocInputs(layer.logits(features), features, None, train, labels, layer)
