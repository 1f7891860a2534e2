"""Converts Catalyst and data source filters to predicates, and refuses those that must not be applied."""
