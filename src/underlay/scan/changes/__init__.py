"""Finds what was added to a table between two versions."""
