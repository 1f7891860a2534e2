"""Predicates from SQL text, and from Arrow expressions by way of Substrait."""
