"""Append, overwrite, and files staged by many processes: what changes the rows of a table."""
