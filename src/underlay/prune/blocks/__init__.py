"""Evaluates predicates on the statistics of many blocks at once: which may match, which must, and why."""
