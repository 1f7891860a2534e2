"""Finds equality with literals in a predicate, which buckets and bloom filters can answer."""

from __future__ import annotations

from underlay.prune.predicates.normalise import conjuncts
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import Compare, In, IsNotDistinct, Op, Predicate


def equalities(predicate: Predicate) -> list[tuple[Predicate, ColumnPath, tuple[Operand, ...]]]:
    """Each part of the conjunction that a row matches only by equalling one of the literals, none of them NULL."""
    found: list[tuple[Predicate, ColumnPath, tuple[Operand, ...]]] = []
    for part in conjuncts(predicate):
        match part:
            case Compare(column, Op.EQ, value) | IsNotDistinct(column, value) if value is not None:
                found.append((part, column, (value,)))
            case In(column, values):
                found.append((part, column, tuple(value for value in values if value is not None)))
    return found
