"""Parses predicates from SQL text and from Arrow expressions."""
