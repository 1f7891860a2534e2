"""Evaluates predicates on Arrow rows, by the same rules as on blocks."""
