"""Open-set evaluation data you can trust: protocols, manifests, and the scores that belong to them."""

__version__ = "0.1.0"
