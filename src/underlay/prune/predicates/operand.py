"""Columns and literals: what they are, and how they are written in SQL.

A column is the path of its names from the root of the schema, so a dot inside a name is never mistaken for a
step into a struct. Everything here prints as SQL that `parse_where` reads back.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from uuid import UUID

from underlay.prune.predicates.instant import Instant, has_sub_microseconds, instant_of

ColumnPath = tuple[str, ...]
Operand = int | Decimal | float | str | bytes | bool | date | datetime | time | Instant | UUID | None
"""A literal. None is SQL's NULL: no comparison with it is ever true."""

_NO_NAMES = frozenset(
    [
        "ANALYSE",
        "ASYMMETRIC",
        "AT",
        "AUTHORIZATION",
        "BOTH",
        "BY",
        "CAST",
        "CHECK",
        "COLLATION",
        "CONCURRENTLY",
        "DEFERRABLE",
        "DO",
        "FOREIGN",
        "FREEZE",
        "GROUP",
        "INITIALLY",
        "LAMBDA",
        "LEADING",
        "ORDER",
        "PIVOT_LONGER",
        "PLACING",
        "PRIMARY",
        "SIMILAR",
        "SYMMETRIC",
        "TO",
        "TRAILING",
        "UNPACK",
        "VARIADIC",
        "VERBOSE",
    ]
)
"""Words that DuckDB takes for no name, and that sqlglot does not count among its keywords."""
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def is_nan_literal(value: Operand) -> bool:
    """Whether a number column would read the literal as NaN."""
    if isinstance(value, float | Decimal):
        return value.is_nan() if isinstance(value, Decimal) else math.isnan(value)
    return isinstance(value, str) and value.strip().lower().lstrip("+-") == "nan"


def format_column(column: ColumnPath) -> str:
    """The path as people read it and our parsers do: names joined by dots, quoted where they must be."""
    return ".".join(_quoted(name, '"') if _needs_quotes(name) else name for name in column)


def write_column(column: ColumnPath) -> str:
    """The path as SQL that DuckDB takes too: it has more words that are no names, such as `at`."""
    return ".".join(_quoted(name, '"') if _needs_quotes(name) or name.upper() in _NO_NAMES else name for name in column)


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
        case time():
            return f"TIME '{value.isoformat()}'"
        case _:
            return str(value)


def _needs_quotes(name: str) -> bool:
    return not _BARE_NAME.fullmatch(name) or name.upper() in _keywords()


@cache
def _keywords() -> frozenset[str]:
    from sqlglot.dialects.duckdb import DuckDB  # slow to import, and only text needs it

    return frozenset({*DuckDB.Tokenizer.KEYWORDS, *DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS})


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
