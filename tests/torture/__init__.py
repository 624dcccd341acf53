"""Torture: faults injected into every writing verb, hostile files for every reader, and what they may not do."""
