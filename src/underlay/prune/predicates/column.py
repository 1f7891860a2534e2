"""Predicates from Python: `(col("ts") >= datetime(2024, 1, 1)) & col("sym").is_in(["A", "B"])`.

Values are checked when the predicate is built; whether they fit the column's type, when it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import NoReturn
from uuid import UUID

import numpy as np

from underlay.errors import BadPredicate
from underlay.prune.predicates.instant import Instant, instant_of
from underlay.prune.predicates.like import check_like
from underlay.prune.predicates.number import read_number
from underlay.prune.predicates.operand import ColumnPath, Operand, write_column
from underlay.prune.predicates.predicate import (
    Between,
    Compare,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    NotIn,
    Op,
    StartsWith,
)

_QUOTES = '"`'
_STEP = re.compile(r""""(?:[^"]|"")+"|`(?:[^`]|``)+`|[^."`][^.]*""")
_QUOTED_PATH = re.compile(rf"(?=.*[{_QUOTES}])(?:{_STEP.pattern})(?:\.(?:{_STEP.pattern}))*", re.DOTALL)


def col(name: str, *steps: str) -> Column:
    """A column to compare. One name is split at its dots, `col("a.b")`, except in quotes, `col('"a.b"')`; several are
    taken as they are."""
    names = (name, *steps) if steps else _split(name)
    if not all(isinstance(step, str) and step for step in names):
        raise BadPredicate("the name of a column must be text that is not empty", found=repr(names))
    return Column(names)


def _split(name: str) -> ColumnPath:
    """The names of `a`, `a.b`, `"a.b"` or `"a.b".c`. In a name that does not begin with a quote, a quote is part of the
    name."""
    if isinstance(name, str) and _QUOTED_PATH.fullmatch(name):
        return tuple(
            step[1:-1].replace(step[0] * 2, step[0]) if step[0] in _QUOTES else step for step in _STEP.findall(name)
        )
    return tuple(name.split("."))


class Column:
    """A column whose operators build predicates. It is not a value itself: it has no truth, hash or order."""

    __slots__ = ("path",)

    def __init__(self, path: ColumnPath) -> None:
        self.path = path

    def __eq__(self, value: object) -> Compare:  # type: ignore[override]  # builds a predicate, as documented
        return Compare(self.path, Op.EQ, check_value(value))

    def __ne__(self, value: object) -> Compare:  # type: ignore[override]  # builds a predicate, as documented
        return Compare(self.path, Op.NE, check_value(value))

    def __lt__(self, value: object) -> Compare:
        return Compare(self.path, Op.LT, check_value(value))

    def __le__(self, value: object) -> Compare:
        return Compare(self.path, Op.LE, check_value(value))

    def __gt__(self, value: object) -> Compare:
        return Compare(self.path, Op.GT, check_value(value))

    def __ge__(self, value: object) -> Compare:
        return Compare(self.path, Op.GE, check_value(value))

    def is_in(self, values: Iterable[object]) -> In:
        """Equal to one of the values."""
        return In(self.path, _check_values(values))

    def is_not_in(self, values: Iterable[object]) -> NotIn:
        """Unequal to all the values; never true when one of them is None, as in SQL."""
        return NotIn(self.path, _check_values(values))

    def between(self, low: object, high: object) -> Between:
        """From `low` to `high`, both included."""
        return Between(self.path, check_value(low), check_value(high))

    def is_same(self, value: object) -> IsNotDistinct:
        """Equal, where None equals null."""
        return IsNotDistinct(self.path, check_value(value))

    def is_different(self, value: object) -> IsDistinct:
        """Not `is_same`."""
        return IsDistinct(self.path, check_value(value))

    def is_null(self) -> IsNull:
        """Null."""
        return IsNull(self.path)

    def is_not_null(self) -> IsNotNull:
        """Not null."""
        return IsNotNull(self.path)

    def is_nan(self) -> IsNan:
        """NaN."""
        return IsNan(self.path)

    def is_not_nan(self) -> IsNotNan:
        """A value that is not NaN."""
        return IsNotNan(self.path)

    def starts_with(self, prefix: str | bytes) -> StartsWith:
        """Text or bytes that begin with `prefix`."""
        if not isinstance(prefix, str | bytes):
            raise BadPredicate("a prefix must be text or bytes", found=type(prefix).__name__)
        return StartsWith(self.path, prefix)

    def like(self, pattern: str, escape: str | None = None) -> Like:
        """Text that matches an SQL pattern: % is any text, _ one character."""
        if not isinstance(pattern, str):
            raise BadPredicate("a pattern must be text", found=type(pattern).__name__)
        return check_like(Like(self.path, pattern, escape))

    def __bool__(self) -> NoReturn:
        raise TypeError(f"column {self} has no truth value: compare it, and join comparisons by & | ~")

    def __hash__(self) -> NoReturn:
        raise TypeError(f"column {self} cannot be hashed: its == builds a predicate. Use its path.")

    def __str__(self) -> str:
        return write_column(self.path)

    def __repr__(self) -> str:
        return f"col({', '.join(map(repr, self.path))})"


def check_value(value: object) -> Operand:
    """The literal that a Python or numpy value stands for. Raises BadPredicate for any other."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else Instant(_datetime64_ns(value))
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int | float | Decimal) and not isinstance(plain, bool):
        read_number(plain)
    if isinstance(plain, datetime) and (below_microsecond := getattr(plain, "nanosecond", 0)):  # a pandas.Timestamp
        return Instant(instant_of(plain).ns + below_microsecond)
    if plain is None or isinstance(plain, int | float | Decimal | str | bytes | date | time | Instant | UUID):
        return plain
    raise BadPredicate(
        f"a {type(value).__name__} cannot be compared with a column",
        hint="Compare a column with a number, text, bytes, bool, date, datetime, time, Instant, UUID or None.",
    )


def _check_values(values: Iterable[object]) -> tuple[Operand, ...]:
    if isinstance(values, str | bytes):
        raise BadPredicate("is_in takes a list of values, not one text", hint='Write is_in(["a", "b"]).')
    return tuple(check_value(value) for value in values)


def _datetime64_ns(value: np.datetime64) -> int:
    unit, count = np.datetime_data(value.dtype)
    whole = int(value.astype(np.int64)) * count
    size_ns = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    if unit not in size_ns:
        raise BadPredicate(f"a datetime64 in units of {unit} is not supported", hint="Use days to nanoseconds.")
    return whole * size_ns[unit]
