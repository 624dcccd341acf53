"""Manifests written out in the formats that detectors read."""
