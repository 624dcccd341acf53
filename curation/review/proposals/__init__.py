"""Proposals for a reviewer: which images may hold an in-distribution class, and how far the rest is from it."""
