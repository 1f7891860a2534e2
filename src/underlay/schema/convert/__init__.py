"""Converts columns, types and values to and from Arrow, SQL and the stored form."""
