"""Times that DuckDB does not compare exactly, as whole numbers of nanoseconds.

DuckDB cuts instants with a time zone to microseconds, and compares nanoseconds of a day with no other time. Where a
text compares such a column with another column of times or with text in quotes, their numbers are compared instead;
what is written stays as it is otherwise. Any other use of an instant must find whole microseconds in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from underlay.local.expressions.texts import SqlText
from underlay.local.sql.tables import has_unlike_type
from underlay.local.text.time_travel import quoted
from underlay.prune.domains.time_of_day import parse_clock
from underlay.prune.parse.sql import tokens_of
from underlay.prune.predicates.instant import parse_instant
from underlay.prune.predicates.operand import ColumnPath, format_column
from underlay.schema.arrow_aliases import AnyChunks, AnyType
from underlay.schema.convert.default import UNIT_NS

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)

Place: TypeAlias = "tuple[int, ColumnPath]"
"""A column of a side."""
FindColumn: TypeAlias = "Callable[[exp.Expr], tuple[Place, AnyType] | None]"
"""Returns the column that an expression refers to, and its type; None if it is not a column."""
_Cut: TypeAlias = "tuple[int, int, str]"
"""A replacement in a text: begin, end and the new text."""


def number_name(place: Place) -> str:
    """What a text calls the number of a time."""
    return f"underlay nanoseconds\x1f {place[0]} {format_column(place[1])}"  # no column of a table has this name


def with_numbers(text: SqlText, find_column: FindColumn) -> SqlText:
    """The text with numbers for times that DuckDB would not compare exactly; `numbers` says of which columns."""
    cuts: set[_Cut] = set()
    numbers: dict[Place, None] = {}
    for node in text.tree.find_all(*_COMPARISONS):
        sides = [_bare(node.this), _bare(node.expression)]
        found = [find_column(side) for side in sides]
        if not any(one is not None and has_unlike_type(one[1]) for one in found):
            continue
        written = [_cut_of(text, sides, found, at) for at in range(2)]
        if None not in written and _are_comparable(found):
            cuts.update(one for one in written if one is not None)
            numbers |= {one[0]: None for one in found if one is not None}
    parts, at = [], 0
    for begin, end, word in sorted(cuts):
        parts += [text.text[at:begin], word]
        at = end
    return replace(text, text="".join([*parts, text.text[at:]]), numbers=tuple(numbers)) if cuts else text


def nanoseconds(column: AnyChunks) -> AnyChunks:
    """Times as numbers that are equal, and in order, as the times are, whichever units these have."""
    kind = column.type
    count = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    if UNIT_NS[kind.unit] == 1:
        return count
    factor = pa.scalar(Decimal(UNIT_NS[kind.unit]), pa.decimal128(10, 0))  # seconds reach further than 64 bits of those
    return pc.multiply(count.cast(pa.decimal128(19, 0)), factor)


def _are_comparable(found: list[tuple[Place, AnyType] | None]) -> bool:
    kinds = [one[1] for one in found if one is not None]
    return all(map(pa.types.is_time, kinds)) or all(map(_is_instant, kinds))


def _is_instant(kind: AnyType) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.tz is not None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _cut_of(text: SqlText, sides: list[exp.Expr], found: list[tuple[Place, AnyType] | None], at: int) -> _Cut | None:
    """Where one side of a comparison stands, and its number; None when it has none."""
    column, other = found[at], found[1 - at]
    if column is not None:
        begin, end = _place_of(sides[at])
        return begin, end, quoted(number_name(column[0]))
    side = sides[at]
    if other is None or not isinstance(side, exp.Literal) or not side.is_string:
        return None
    begin, end = _place_of(sides[1 - at])
    number = _number_of(side.name, other[1])
    texts = [one for one in tokens_of(text.text) if one.token_type is TokenType.STRING]
    beside = [one for one in texts if one.start >= end][:1] if at else [one for one in texts if one.end < begin][-1:]
    if number is None or not beside or beside[0].text != side.name:
        return None
    return beside[0].start, beside[0].end + 1, str(number)


def _place_of(column: exp.Expr) -> tuple[int, int]:
    parts = [part.meta for part in column.find_all(exp.Identifier)]
    return min(part["start"] for part in parts), max(part["end"] for part in parts) + 1


def _number_of(text: str, kind: AnyType) -> int | None:
    """The nanoseconds that a text says: without a zone, those of UTC, as in DuckDB here."""
    if pa.types.is_time(kind):
        return parse_clock(text)
    instant = parse_instant(text)
    return None if instant is None else instant.ns
