"""Results of several methods, ranked where they are comparable."""
