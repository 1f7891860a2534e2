"""One column of Arrow data compared with literals, as Spark SQL and DuckDB do it.

NaN equals itself and is above every number, the zeros are one, decimals and points in time are exact, and text is
compared as bytes. Masks are null where the column is.

Pruning allows for every engine's reading of a literal; a filter has to choose one. It chooses DuckDB's where engines
differ on typed literals, and the exact value for text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.prune.domains.arrow_values import AnyArray, stored_values
from underlay.prune.domains.byte_strings import ByteStrings
from underlay.prune.domains.domain import Domain
from underlay.prune.domains.encoded_integers import Decimals, Times
from underlay.prune.domains.floats import Floats
from underlay.prune.domains.integers import Integers, Whole
from underlay.prune.domains.selection import Key, Span, prefix_span, span_of, whole_span
from underlay.prune.domains.time_of_day import TimesOfDay
from underlay.prune.predicates.instant import parse_instant
from underlay.prune.predicates.number import as_doubles, read_number, to_double
from underlay.prune.predicates.operand import Operand
from underlay.prune.predicates.predicate import Op


def point_of(literal: Operand, domain: Domain) -> int | Fraction | float | bytes | None:
    """The literal in the domain's order, None for NaN. Raises BadPredicate for a literal of another kind."""
    match domain:
        case ByteStrings():
            return domain.encode(literal)
        case Floats():
            return _float_point(literal, domain)
        case Times():
            return _time_point(literal, domain)
        case TimesOfDay():
            return domain.point(literal)
        case Whole():
            return _whole_point(literal, domain)
        case _:
            raise domain.mismatch(literal, "Values of this type are not compared.")


def _whole_point(literal: Operand, domain: Whole) -> int | Fraction | None:
    readings = domain.read(literal)
    if readings is None or readings[0] == readings[1]:
        return None if readings is None else readings[0]
    number = read_number(literal)
    if not isinstance(domain, Integers | Decimals) or number is None or number.value is None:
        raise domain.mismatch(literal, "Write a number.")
    return number.value * Fraction(10) ** domain.scale if isinstance(domain, Decimals) else number.value


def _float_point(literal: Operand, domain: Floats) -> float | None:
    """A Python float is a DOUBLE and stays one; every other number is rounded to the column's type."""
    number = read_number(literal)
    if number is None:
        raise domain.mismatch(literal, "Write a number, or CAST('NaN' AS DOUBLE).")
    if number.value is None:
        return None
    value = to_double(number.value)
    if domain.bits == 64 or isinstance(literal, float):
        return value
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value))


def _time_point(literal: Operand, domain: Times) -> int | Fraction:
    """A literal with more digits than its SQL type is cut to microseconds; text is taken exactly."""
    low, _ = domain.read(literal)
    instant = parse_instant(literal) if isinstance(literal, str) else None
    return low if instant is None else Fraction(instant.ns, domain.unit.value)


Mask: TypeAlias = "pa.BooleanArray"


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """The values of a column as its domain's keys."""

    domain: Domain
    values: AnyArray

    @staticmethod
    def of(array: AnyArray) -> StoredColumn:
        """The column of any Arrow array. One without an order is compared with nothing."""
        return StoredColumn(*stored_values(array))

    def compare(self, op: Op, literal: Operand) -> Mask:
        """`column op literal`, null where the column or the literal is."""
        if literal is None:
            return pa.nulls(len(self.values), pa.bool_())
        if isinstance(literal, float) and isinstance(self.domain, Integers | Decimals):
            doubles = self.values.cast(pa.float64(), safe=False)
            return StoredColumn(Floats(64), doubles).compare(op, literal)
        point = point_of(literal, self.domain)
        if isinstance(self.domain, Floats):
            return self._compare_float(op, point)
        if op is Op.NE:
            return pc.invert(self.within(self._span(Op.EQ, point)))
        return self.within(self._span(op, point))

    def is_in(self, literals: Sequence[Operand]) -> Mask:
        """Whether any literal is equal; null where none is but one is NULL."""
        given = as_doubles(tuple(literal for literal in literals if literal is not None))
        if isinstance(self.domain, Floats) or any(isinstance(literal, float) for literal in given):
            found = self._constant(False)
            for literal in given:
                found = pc.or_kleene(found, self.compare(Op.EQ, literal))
        else:
            found = self._is_among(given)
        return pc.if_else(found, True, None) if len(given) < len(literals) else found

    def starts_with(self, prefix: str | bytes) -> Mask:
        """Whether the bytes begin with the prefix."""
        encoded = self.domain.prefix_key(prefix)
        if encoded is None:
            raise self.domain.mismatch(prefix, "Only text and binary columns have prefixes.")
        return self.within(prefix_span(encoded))

    def is_nan(self) -> Mask:
        """Whether a number is NaN."""
        if isinstance(self.domain, Floats):
            return pc.is_nan(self.values)
        return self.compare(Op.EQ, math.nan)

    def within(self, span: Span | None) -> Mask:
        """Whether keys lie in a span; None is the span without keys."""
        if span is None:
            return self._constant(False)
        found: Mask | None = None
        if span.low is not None:
            low = self._scalar(span.low)
            found = pc.greater(self.values, low) if span.low_open else pc.greater_equal(self.values, low)
        if span.high is not None:
            high = self._scalar(span.high)
            below = pc.less(self.values, high) if span.high_open else pc.less_equal(self.values, high)
            found = below if found is None else pc.and_(found, below)
        return self._constant(True) if found is None else found

    def _is_among(self, literals: Sequence[Operand]) -> Mask:
        spans = [self._span(Op.EQ, point_of(literal, self.domain)) for literal in literals]
        keys = [self._scalar(span.low).as_py() for span in spans if span is not None and span.low is not None]
        found = pc.is_in(self.values, value_set=pa.array(keys, self.values.type))
        masked: Mask = pc.if_else(self.values.is_valid(), found, None)
        return masked

    def _span(self, op: Op, point: Key | None) -> Span | None:
        """The keys that satisfy a comparison. Against NaN only ordering ones reach a column without NaN."""
        if point is None:
            return Span() if op in (Op.LT, Op.LE) else None
        if not isinstance(self.domain, Whole):
            return span_of(op, point, point)
        first, last = self.domain.first, self.domain.last
        if isinstance(self.domain, Decimals):
            last = 10**self.domain.precision - 1
            first = -last
        elif isinstance(self.domain, Integers):
            first, last = _integer_limits(self.values.type)
        return whole_span(span_of(op, point, point), first, last)

    def _compare_float(self, op: Op, point: object) -> Mask:
        is_nan = pc.is_nan(self.values)
        if point is None:
            match op:
                case Op.EQ | Op.GE:
                    return is_nan
                case Op.NE | Op.LT:
                    return pc.invert(is_nan)
                case Op.LE | Op.GT:
                    return self._constant(op is Op.LE)
        found: Mask = pc.call_function(_FUNCTIONS[op], [self.values, pa.scalar(point, pa.float64())])
        return pc.or_(found, is_nan) if op in (Op.GT, Op.GE) else found

    def _constant(self, value: bool) -> Mask:
        """The value where the column is not null."""
        mask: Mask = pc.if_else(self.values.is_valid(), value, None)
        return mask

    def _scalar(self, key: Key) -> pa.Scalar[Any]:  # Any: of the type of the values
        if isinstance(self.domain, Decimals) and not isinstance(key, bytes):
            key_value: object = Decimal(f"{key}e{-self.domain.scale}")
        else:
            key_value = key
        scalar: pa.Scalar[Any] = pa.scalar(key_value, self.values.type)
        return scalar


_FUNCTIONS = {
    Op.EQ: "equal",
    Op.NE: "not_equal",
    Op.LT: "less",
    Op.LE: "less_equal",
    Op.GT: "greater",
    Op.GE: "greater_equal",
}


def _integer_limits(type_: pa.DataType) -> tuple[int, int]:
    bits, is_signed = type_.bit_width, pa.types.is_signed_integer(type_)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
