"""Predicates that were read from text, bound to a table: names as the table writes them, literals that fit."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

import pyarrow as pa

from underlay.errors import UnknownColumn
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.operand import ColumnPath, format_column
from underlay.prune.predicates.predicate import And, Constant, Not, Opaque, Or, Predicate
from underlay.prune.rows.matches import matches

_SHOWN_NAMES = 20


def bind_where(text: str, schema: pa.Schema) -> Predicate:
    """The predicate that `text` states about columns of `schema`.

    Raises BadPredicate for text that is not understood, or compares a column with a value of another kind;
    UnknownColumn.
    """
    predicate = resolve_names(parse_where(text), schema)
    check_literals(predicate, schema)
    return predicate


def check_literals(predicate: Predicate, schema: pa.Schema) -> None:
    """Raise BadPredicate or UnknownColumn when rows cannot be filtered by the predicate."""
    matches(predicate, schema.empty_table())


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
            return replace(predicate, column=_resolve(predicate.column, schema))


def unknown_column(name: str, names: list[str]) -> UnknownColumn:
    """There is no such column; the names most like it are the hint."""
    by_fold = {one.casefold(): one for one in names}
    near = [by_fold[one] for one in get_close_matches(name.casefold(), by_fold, n=3)]
    more = "" if len(names) <= _SHOWN_NAMES else f" and {len(names) - _SHOWN_NAMES} more"
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Columns: {', '.join(names[:_SHOWN_NAMES])}{more}."
    return UnknownColumn(f"there is no column {name}", hint=hint)


def _resolve(path: ColumnPath, schema: pa.Schema) -> ColumnPath:
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
