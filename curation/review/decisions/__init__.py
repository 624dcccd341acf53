"""Human verdicts on images: recorded one a line, resolved between reviewers, and replayed."""
