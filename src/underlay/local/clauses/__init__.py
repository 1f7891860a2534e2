"""Parses the clauses of SQL statements that change tables."""
