"""Errors, ids, digests, files, tables, figures and progress, which all other packages use."""
