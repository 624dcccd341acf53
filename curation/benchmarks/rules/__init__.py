"""Rules: how the parts of a benchmark are selected. Each serves any benchmark file (`benchmark_file`)."""
