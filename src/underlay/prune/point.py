"""The one value that a literal has when rows are filtered.

Pruning allows for every engine's reading of a literal; a filter has to choose. It chooses DuckDB's where the engines
differ on typed literals, and the exact value for text.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from underlay.prune.coded import Decimals, Times
from underlay.prune.domain import Domain
from underlay.prune.floats import Floats
from underlay.prune.instant import parse_instant
from underlay.prune.number import read_number, to_double
from underlay.prune.octets import Octets
from underlay.prune.operand import Operand
from underlay.prune.time_of_day import TimesOfDay
from underlay.prune.whole import Integers, Whole


def point_of(literal: Operand, domain: Domain) -> int | Fraction | float | bytes | None:
    """The literal in the domain's order, None for NaN. Raises BadPredicate for a literal of another kind."""
    match domain:
        case Octets():
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
