"""Reference methods of the papers, as plain functions."""
