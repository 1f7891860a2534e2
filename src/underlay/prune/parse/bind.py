"""Binds predicates read from text to a table: names as the table writes them, literals that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches

import pyarrow as pa

from underlay.errors import BadPredicate, UnknownColumn
from underlay.prune.parse.parameters import NO_PARAMETERS, Parameters
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.operand import ColumnPath, format_column
from underlay.prune.predicates.predicate import (
    And,
    Between,
    Compare,
    Constant,
    In,
    IsDistinct,
    IsNotDistinct,
    Not,
    NotIn,
    Opaque,
    Or,
    Predicate,
)
from underlay.prune.rows.matches import matches
from underlay.values.no_rows import no_rows

_SHOWN_NAMES = 20
_DAY = r"\d{4}-\d\d-\d\d"
_SECOND_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def bind_where(text: str, schema: pa.Schema, parameters: Parameters = NO_PARAMETERS) -> Predicate:
    """The predicate that `text` states about columns of `schema`.

    Raises BadPredicate for text that is not understood, or compares a column with a value of another kind;
    UnknownColumn.
    """
    predicate = resolve_names(parse_where(text, parameters=parameters), schema)
    check_literals(predicate, schema)
    return predicate


def check_literals(predicate: Predicate, schema: pa.Schema) -> None:
    """Raise BadPredicate or UnknownColumn when rows cannot be filtered by the predicate, or not as SQL would.

    SQL casts text to the column's type and rounds on the way, or ignores an offset: we do not imitate that.
    """
    matches(predicate, no_rows(schema))
    for column, literal in _text_literals(predicate):
        kind: pa.DataType = schema.field(column[0]).type
        for step in column[1:]:
            kind = kind.field(kind.get_field_index(step)).type if isinstance(kind, pa.StructType) else kind
        pattern = _exact_text(kind)
        if pattern and not re.fullmatch(pattern, literal.strip(), re.ASCII):
            raise BadPredicate(f"'{literal}' is not exactly a value of {kind}", place=format_column(column))


def _text_literals(predicate: Predicate) -> Iterator[tuple[ColumnPath, str]]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _text_literals(part)
        case Not(part):
            yield from _text_literals(part)
        case Compare(column=column, value=value) | IsDistinct(column, value) | IsNotDistinct(column, value):
            yield from _texts(column, (value,))
        case In(column, values) | NotIn(column, values):
            yield from _texts(column, values)
        case Between(column, low, high):
            yield from _texts(column, (low, high))


def _texts(column: ColumnPath, values: Iterable[object]) -> Iterator[tuple[ColumnPath, str]]:
    return ((column, value) for value in values if isinstance(value, str))


def _exact_text(kind: pa.DataType) -> str | None:
    """A pattern of the text that is cast to this type without rounding; None for types that need none."""
    if pa.types.is_integer(kind):
        return r"[+-]?\d+"
    if isinstance(kind, pa.Decimal128Type | pa.Decimal256Type):
        return r"[+-]?\d+" + (rf"(\.\d{{0,{kind.scale}}})?" if kind.scale > 0 else "")
    if pa.types.is_date(kind):
        return _DAY
    if isinstance(kind, pa.TimestampType):
        offset = r"(Z|[+-]\d\d(:?\d\d)?)?" if kind.tz is not None else "Z?"
        return rf"{_DAY}([ T]{_time_text(kind.unit)}{offset})?"
    return _time_text(kind.unit) if isinstance(kind, pa.Time32Type | pa.Time64Type) else None


def _time_text(unit: str) -> str:
    digits = _SECOND_DIGITS[unit]
    return r"\d\d:\d\d(:\d\d" + (rf"(\.\d{{1,{digits}}})?" if digits else "") + ")?"


def resolve_names(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """The same with names as the table writes them, as SQL ignores case. Raises UnknownColumn."""
    match predicate:
        case And(parts):
            return And(tuple(resolve_names(part, schema) for part in parts))
        case Or(parts):
            return Or(tuple(resolve_names(part, schema) for part in parts))
        case Not(part):
            return Not(resolve_names(part, schema))
        case Constant() | Opaque():
            return predicate
        case _:
            return replace(predicate, column=resolve_path(predicate.column, schema))


def unknown_column(name: str, names: list[str], *, may_be_text: bool = False) -> UnknownColumn:
    """The error for an unknown column. It hints at similar names, or at quotes around text, which shells remove."""
    by_fold = {one.casefold(): one for one in names}
    near = [by_fold[one] for one in get_close_matches(name.casefold(), by_fold, n=3)]
    more = "" if len(names) <= _SHOWN_NAMES else f" and {len(names) - _SHOWN_NAMES} more"
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Columns: {', '.join(names[:_SHOWN_NAMES])}{more}."
    if may_be_text and not near:
        hint = f"{hint} If {name} is text, write '{name}'; in a shell put the whole condition in double quotes."
    return UnknownColumn(f"there is no column {name}", hint=hint)


def resolve_path(path: ColumnPath, schema: pa.Schema) -> ColumnPath:
    """A column as the table writes it, as SQL ignores case. Raises UnknownColumn."""
    found: ColumnPath = ()
    kind: pa.DataType = pa.struct(list(schema))
    for step in path:
        names = [field.name for field in kind] if isinstance(kind, pa.StructType) else []
        # of bytes: only A to Z, as DuckDB folds them
        alike = [name for name in names if name.encode().lower() == step.encode().lower()]
        name = step if step in names else alike[0] if len(alike) == 1 else None
        if name is None or names.count(name) > 1:
            if len(alike) > 1:
                raise UnknownColumn(f"{format_column(path)} may be any of {', '.join(alike)}", hint="Write it exactly.")
            raise unknown_column(format_column(path), [format_column((*found, one)) for one in names or schema.names])
        found = (*found, name)
        assert isinstance(kind, pa.StructType)
        kind = kind.field(name).type
    return found
