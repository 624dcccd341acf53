"""Identify published lists by their content, not by their names."""
