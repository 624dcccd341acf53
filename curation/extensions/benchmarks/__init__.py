"""Further benchmarks."""
