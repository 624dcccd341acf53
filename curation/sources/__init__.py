"""Readers of raw datasets, which return the contents of annotation files as columns."""
