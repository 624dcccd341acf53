"""Diff: two manifests, or two results of an evaluation."""
