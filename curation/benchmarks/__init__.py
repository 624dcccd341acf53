"""One room a benchmark: its rule, its facts, its evaluation. The registry finds them by name."""
