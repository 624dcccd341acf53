"""Identify: which published list is this? By what it holds, never by its name."""
