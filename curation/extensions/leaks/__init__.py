"""Leaks: whether an image of a benchmark is in a corpus that models are trained on."""
