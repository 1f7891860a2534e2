"""Translates filters that Spark pushes into Python sources. Spark drops those that we accept, so they must be exact."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import datasource as pushed

from underlay.prune import Predicate
from underlay.prune.predicates.operand import Operand
from underlay.prune.predicates.predicate import Compare, In, IsNotDistinct, IsNotNull, IsNull, Not, Op, StartsWith
from underlay.schema.table_schema import TableSchema
from underlay.spark.filters.applicable import can_apply

_MOST_DIGITS = 28
"""PySpark creates decimals in Python's arithmetic, which rounds to this many digits."""
_LITERALS = (bool, int, float, Decimal, str, bytes, date, datetime)


class _Unknown(Exception):
    """This filter is left to Spark."""


def read_pushed(given: pushed.Filter, schema: TableSchema) -> Predicate | None:
    """The same condition as a predicate on columns of this table; None when Spark must apply it."""
    try:
        found = _translate(given)
    except _Unknown:
        return None
    return found if can_apply(found, schema) else None


def _translate(given: pushed.Filter) -> Predicate:
    match given:
        case pushed.Not(child):
            return Not(_translate(child))
        case pushed.IsNull(column):
            return IsNull(column)
        case pushed.IsNotNull(column):
            return IsNotNull(column)
        case pushed.EqualNullSafe(column, value):
            return IsNotDistinct(column, _literal(value))
        case pushed.In(column, values):
            return In(column, tuple(map(_literal, values)))
        case pushed.StringStartsWith(column, prefix):
            return StartsWith(column, prefix)
        case pushed.EqualTo(column, value):
            return Compare(column, Op.EQ, _literal(value))
        case pushed.LessThan(column, value):
            return Compare(column, Op.LT, _literal(value))
        case pushed.LessThanOrEqual(column, value):
            return Compare(column, Op.LE, _literal(value))
        case pushed.GreaterThan(column, value):
            return Compare(column, Op.GT, _literal(value))
        case pushed.GreaterThanOrEqual(column, value):
            return Compare(column, Op.GE, _literal(value))
    raise _Unknown


def _literal(value: object) -> Operand:
    if value is not None and not isinstance(value, _LITERALS):
        raise _Unknown
    if isinstance(value, Decimal) and len(value.as_tuple().digits) >= _MOST_DIGITS:
        raise _Unknown
    return value
