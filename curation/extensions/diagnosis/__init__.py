"""Diagnosis of scores near zero: mistakes in files of detections, and their mends."""
