"""Diff: two manifests, or two results of one evaluation."""
