"""Predicates over bare columns: what a caller asks, before it is bound to any column's type.

Every predicate prints as SQL that `parse_where` reads back. A column is the path of its names from the root
of the schema, so a dot inside a name is never mistaken for a step into a struct.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

from sqlglot.dialects.duckdb import DuckDB

from underlay.prune.instant import Instant, has_sub_microseconds, instant_of

ColumnPath = tuple[str, ...]
Operand = int | Decimal | float | str | bytes | bool | date | datetime | Instant | UUID | None
"""A literal. None is SQL's NULL: no comparison with it is ever true."""

_KEYWORDS = {*DuckDB.Tokenizer.KEYWORDS, *DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS}
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Op(Enum):
    """How a column is compared with one literal."""

    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`."""

    column: ColumnPath
    op: Op
    value: Operand

    def __str__(self) -> str:
        """The predicate as SQL."""
        return f"{format_column(self.column)} {self.op.value} {format_operand(self.value)}"


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`. With no values it is never true."""

    column: ColumnPath
    values: tuple[Operand, ...]

    def __str__(self) -> str:
        """The predicate as SQL."""
        return f"{format_column(self.column)} IN ({', '.join(map(format_operand, self.values))})"


@dataclass(frozen=True, slots=True)
class Between:
    """`column >= low AND column <= high`: never true when low is above high, as in SQL and unlike QuestDB."""

    column: ColumnPath
    low: Operand
    high: Operand

    def __str__(self) -> str:
        """The predicate as SQL."""
        low, high = format_operand(self.low), format_operand(self.high)
        return f"{format_column(self.column)} BETWEEN {low} AND {high}"


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`."""

    column: ColumnPath

    def __str__(self) -> str:
        """The predicate as SQL."""
        return f"{format_column(self.column)} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """`column IS NOT NULL`."""

    column: ColumnPath

    def __str__(self) -> str:
        """The predicate as SQL."""
        return f"{format_column(self.column)} IS NOT NULL"


Predicate = Compare | In | Between | IsNull | IsNotNull


@dataclass(frozen=True, slots=True)
class And:
    """All of `parts`. With no parts it is always true."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        """The predicate as SQL."""
        return " AND ".join(map(str, self.parts)) or "TRUE"


def format_column(column: ColumnPath) -> str:
    """The path as SQL: names joined by dots, quoted where they must be."""
    return ".".join(_quoted(name, '"') if _needs_quotes(name) else name for name in column)


def format_operand(value: Operand) -> str:
    """The literal as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return _format_float(value)
        case Decimal():
            return f"{value:f}" if value.is_finite() else f"CAST('{value}' AS DOUBLE)"
        case str():
            return _quoted(value, "'")
        case bytes():
            return f"X'{value.hex().upper()}'"
        case UUID():
            return f"UUID '{value}'"
        case Instant():
            return _format_instant(value)
        case datetime():
            return _format_instant(instant_of(value))
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return str(value)


def _needs_quotes(name: str) -> bool:
    return not _BARE_NAME.fullmatch(name) or name.upper() in _KEYWORDS


def _format_float(value: float) -> str:
    if not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _format_instant(instant: Instant) -> str:
    keyword = "TIMESTAMP_NS" if has_sub_microseconds(instant) and not instant.coarse else "TIMESTAMP"
    return f"{keyword} '{instant}'"


def _quoted(text: str, quote: str) -> str:
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"
