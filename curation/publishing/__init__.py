"""Exports of manifests in the formats of detectors, and publications on a hub."""
