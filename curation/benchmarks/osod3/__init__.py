"""Rectifying Open-Set Object Detection (2023): super-class splits and unknowns that are defined."""
