"""Scores of predictions on exactly the images a manifest lists."""
