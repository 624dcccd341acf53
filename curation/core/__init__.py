"""Errors, ids, digests, files, tables, figures, progress: what all other packages use."""
