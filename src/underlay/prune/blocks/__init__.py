"""Predicates on the statistics of many blocks at once: which blocks may match, which must, and why."""
