"""Predicates: columns, literals and operators, how they are built, and NOT pushed down to the leaves."""
