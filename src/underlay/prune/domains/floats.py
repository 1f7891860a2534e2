"""FLOAT and DOUBLE columns: NaN equals itself and is the greatest value, and the two zeros are one.

Arrow finds no NaN equal or greater; what it matches is a subset, so a Selection that is safe for Spark SQL
and DuckDB is safe for it.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from underlay.prune.domains.domain import BoolArray, BoundArray, Domain, KeyArray, filled_values
from underlay.prune.domains.selection import Key, Selection, select_nan, span_of
from underlay.prune.predicates.number import INFINITY, Number, read_number, to_double
from underlay.prune.predicates.operand import Operand
from underlay.prune.predicates.predicate import Op


@dataclass(frozen=True, slots=True)
class Floats(Domain):
    """IEEE numbers of 32 or 64 bits. Keys are doubles: every float is one."""

    holds_nan: ClassVar[bool] = True
    bits: int

    def __post_init__(self) -> None:
        """Refuses FLOAT16, whose order Parquet leaves open."""
        if self.bits not in (32, 64):
            raise ValueError(f"floats have 32 or 64 bits, not {self.bits}")

    @property
    def name(self) -> str:
        """`float` or `double`."""
        return "float" if self.bits == 32 else "double"

    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """The bounds as doubles; a NaN is not a bound."""
        with np.errstate(invalid="ignore"):  # a signalling NaN is not a bound either
            keys = filled_values(bounds, 0).astype(np.float64)
        return keys, ~np.isnan(keys)

    def select(self, op: Op, literal: Operand) -> Selection:
        """`>`, `>=` and `<>` select NaN as well."""
        number = self._read(literal)
        if number.value is None:
            return select_nan(op)
        low, high = self._readings(number.value, number.scale)
        return Selection((span_of(op, low, high),), nan=op in (Op.GT, Op.GE, Op.NE))

    def exact_key(self, literal: Operand) -> float | None:
        """The number of a literal that no engine rounds."""
        number = self._read(literal)
        if number.value is None:
            return None
        low, high = self._readings(number.value, number.scale)
        return low if low == high else None

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """Both zeros for a zero; unknown for NaN, which has many encodings, and for a rounded literal."""
        number = self._read(literal)
        if number.value is None:
            return None
        low, high = self._readings(number.value, number.scale)
        if low != high:
            return None
        form = "<f" if self.bits == 32 else "<d"
        candidates = (0.0, -0.0) if low == 0 else (low,)
        return tuple(struct.pack(form, candidate) for candidate in candidates)

    def show(self, key: Key) -> str:
        """The shortest digits that give the number back in its own type."""
        if isinstance(key, bytes):
            raise TypeError(f"a column of floats has the key {key!r}")
        return str(np.float32(float(key)) if self.bits == 32 else float(key))

    def _read(self, literal: Operand) -> Number:
        number = read_number(literal)
        if number is None:
            raise self.mismatch(literal, "Write a number, or CAST('NaN' AS DOUBLE).")
        return number

    def _readings(self, value: Fraction, scale: int) -> tuple[float, float]:
        """The literal as a double, and unless every cast of it is exact, one step of each type around it."""
        double = to_double(value)
        if self._is_exact(value, double, scale):
            return double, double
        low, high = math.nextafter(double, -math.inf), math.nextafter(double, math.inf)
        if self.bits == 32:
            with np.errstate(over="ignore", under="ignore"):
                single = np.float32(double)
                low = min(low, float(np.nextafter(single, np.float32(-np.inf))))
                high = max(high, float(np.nextafter(single, np.float32(np.inf))))
        return low, high

    def _is_exact(self, value: Fraction, double: float, scale: int) -> bool:
        """Whether the value is one of this type, also when computed as its digits over a power of ten."""
        if math.isinf(double):
            return abs(value) >= INFINITY
        digits_bits, power = (24, 10) if self.bits == 32 else (53, 22)
        if scale and (scale > power or abs(value) * 10**scale > 2**digits_bits):
            return False
        if self.bits == 32:
            with np.errstate(over="ignore", under="ignore"):
                return float(np.float32(double)) == value
        return double == value
