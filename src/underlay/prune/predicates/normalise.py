"""NOT pushed down to the leaves, under SQL's three-valued logic.

The result answers every row as the predicate does, nulls and NaN included, in Spark SQL and DuckDB. NOT stays above
an ordering comparison, BETWEEN and a pattern. `NOT c > 5` is `c <= 5` there, but Arrow, where no comparison with
NaN is true, finds the first true of NaN and not the second; the pruner serves both and must know which was asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from underlay.prune.predicates.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Between,
    Compare,
    Constant,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)

NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}
"""The comparison that is true of every number and text where the other is false."""


def normalise(predicate: Predicate) -> Predicate:
    """The same question with NOT only above leaves, AND and OR flat."""
    match predicate:
        case And(parts):
            return _all(map(normalise, parts))
        case Or(parts):
            return _any(map(normalise, parts))
        case Not(part):
            return _negate(part)
        case In(_, ()):
            return FALSE
        case NotIn(_, ()):
            return TRUE
        case _:
            return predicate


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts, in order, all of which a row must match. `predicate` is normalised first."""
    normal = normalise(predicate)
    if isinstance(normal, And):
        return normal.parts
    return () if normal == TRUE else (normal,)


def weaken(predicate: Predicate) -> Predicate:
    """What holds wherever the predicate is true, without its Opaque parts: TRUE when nothing is known."""
    return _weakened(normalise(predicate))


def _weakened(normal: Predicate) -> Predicate:
    match normal:
        case And(parts):
            return _all(map(_weakened, parts))
        case Or(parts):
            weak = [_weakened(part) for part in parts]
            return TRUE if TRUE in weak else _any(weak)
        case Opaque():
            return TRUE
        case _:
            return normal


def _negate(predicate: Predicate) -> Predicate:
    """`NOT predicate`, normalised."""
    match predicate:
        case And(parts):
            return _any(map(_negate, parts))
        case Or(parts):
            return _all(map(_negate, parts))
        case Not(part):
            return normalise(part)
        case Between(column, low, high) if low is None or high is None:
            return _any([Not(Compare(column, Op.GE, low)), Not(Compare(column, Op.LE, high))])
        case Constant(value):
            return NULL if value is None else FALSE if value else TRUE
        case Opaque(text, columns):
            return Opaque(f"NOT ({text})", columns)
        case Compare(_, Op.LT | Op.LE | Op.GT | Op.GE, _) | Between() | StartsWith() | Like():
            return Not(predicate)
        case _:
            return _opposite(predicate)


def _opposite(
    leaf: Compare | In | NotIn | IsNull | IsNotNull | IsNan | IsNotNan | IsDistinct | IsNotDistinct,
) -> Predicate:
    """The leaf that is the negation of another in every engine."""
    match leaf:
        case Compare(column, op, value):
            return Compare(column, NEGATED[op], value)
        case In(column, values):
            return NotIn(column, values) if values else TRUE
        case NotIn(column, values):
            return In(column, values) if values else FALSE
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
        case IsNan(column):
            return IsNotNan(column)
        case IsNotNan(column):
            return IsNan(column)
        case IsDistinct(column, value):
            return IsNotDistinct(column, value)
        case IsNotDistinct(column, value):
            return IsDistinct(column, value)


def _all(parts: Iterable[Predicate]) -> Predicate:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)) if inner != TRUE]
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else TRUE


def _any(parts: Iterable[Predicate]) -> Predicate:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)) if inner != FALSE]
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else FALSE
