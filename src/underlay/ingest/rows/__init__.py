"""Rows from a source: values that convert, rows that do not fit, and columns that drifted."""
