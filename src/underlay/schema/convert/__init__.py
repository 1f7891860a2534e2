"""Columns, types and values to and from Arrow, SQL and the form in which they are stored."""
