"""Post-hoc out-of-distribution scores from logits, features and a last layer."""
