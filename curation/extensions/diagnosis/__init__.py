"""Why a score is near zero: mistakes in files of detections, and their mends."""
