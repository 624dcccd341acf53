"""Out-of-distribution scores of detections: records, curves, thresholds."""
