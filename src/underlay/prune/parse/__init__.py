"""Predicates from SQL text and from Arrow expressions."""
