"""Filters of Catalyst and of data sources as predicates, and those that must not be applied."""
