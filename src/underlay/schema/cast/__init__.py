"""Casts appended rows, and rows of older files, to the table's current columns."""
