"""What a predicate names: columns, so that a caller can check and fetch them, and parts that only an engine knows."""

from __future__ import annotations

from collections.abc import Iterator

from underlay.prune.operand import ColumnPath
from underlay.prune.predicate import And, Constant, Not, Opaque, Or, Predicate


def columns_of(predicate: Predicate) -> frozenset[ColumnPath]:
    """Every column that a predicate names."""
    return frozenset(_walk_columns(predicate))


def has_opaque(predicate: Predicate) -> bool:
    """Whether a part of a predicate is Opaque: only its engine can apply that."""
    match predicate:
        case And(parts) | Or(parts):
            return any(map(has_opaque, parts))
        case Not(part):
            return has_opaque(part)
    return isinstance(predicate, Opaque)


def _walk_columns(predicate: Predicate) -> Iterator[ColumnPath]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _walk_columns(part)
        case Not(part):
            yield from _walk_columns(part)
        case Opaque(_, columns):
            yield from columns
        case Constant():
            return
        case _:
            yield predicate.column
