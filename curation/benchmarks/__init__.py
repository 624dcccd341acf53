"""One module a paper: pure functions from sources to a manifest."""
