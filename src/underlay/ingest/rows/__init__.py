"""Converts values of a source, rejects rows that do not fit, and handles columns that drifted."""
