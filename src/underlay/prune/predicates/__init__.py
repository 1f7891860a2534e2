"""Predicates: columns, literals, operators, builders, and negation normal form."""
