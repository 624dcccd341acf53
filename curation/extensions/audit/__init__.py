"""Audit: is this split sound? Rules a sound benchmark obeys, judged on any lists and the sources behind them."""
