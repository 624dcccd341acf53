"""Open-world detection by tasks: unknown recall and precision, wilderness impact, A-OSE, AP of old and new classes."""
