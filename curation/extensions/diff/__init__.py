"""Diff: two manifests, two results of one evaluation, or two files of OOD scores."""
