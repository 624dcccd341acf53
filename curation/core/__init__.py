"""Errors, ids, digests, files, tables, figures, progress: what every room stands on."""
