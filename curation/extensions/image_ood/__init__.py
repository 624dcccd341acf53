"""Image-level out-of-distribution scores: one ID set against several OOD sets, whole or with images left out."""
