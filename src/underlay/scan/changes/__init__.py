"""Finds what was added to a table, or changed in it, between two versions."""
