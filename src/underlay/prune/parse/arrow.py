"""Arrow expressions, as DuckDB, Polars and Arrow push them down, to predicates.

Arrow hands out no tree, so an expression is read from its Substrait form, bound to no more fields than it may name:
uuid and duration fields, nanosecond literals, casts and LIKE have no such form. An expression that cannot be read
is one Opaque part, never an error.

On floats the predicate follows Spark SQL and DuckDB, where NaN is greatest, not Arrow; the pruner is safe for both.
DuckDB 1.5 pushes every comparison of floats and does not apply it again, so whoever scans for it must not filter by
Arrow's rules. DuckDB 2.0 pushes only those that no NaN matches. `c <= NaN` is pushed by 1.5 as a bare `true`: the
column is lost, and with it that nulls do not match.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import Malformed
from underlay.prune.parse.substrait import NotTranslated, read_extended
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import Opaque, Predicate

_MATCHING = "null_matching_behavior="
_MATCH = f"{_MATCHING}MATCH"
_BY_NUMBER = "FieldPath("

AnyField: TypeAlias = "pa.Field[Any]"  # Any: of every type


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """The predicate of an expression over columns of `schema`; Opaque for one that has no counterpart."""
    text = str(expression)
    fields = [field for field in schema if _is_named(field.name, text)]
    bound = pa.schema([field for field in fields if _has_substrait_type(field)])
    if not _is_ambiguous(text, fields):
        try:
            return read_extended(bytes(expression.to_substrait(bound)), bound)
        except (pa.ArrowException, NotTranslated, Malformed, UnicodeDecodeError):
            pass
    return Opaque(text, _paths(fields))


def _is_named(name: str, text: str) -> bool:
    """Whether the name occurs in the expression's text, where it stands unquoted, and not inside a longer word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _is_ambiguous(text: str, fields: list[AnyField]) -> bool:
    """Whether the Substrait form says less than the expression.

    It loses how is_in treats nulls, and a field by number would mean another field in fewer of them.
    """
    names = {field.name for field in fields}
    return text.count(_MATCHING) != text.count(_MATCH) or _BY_NUMBER in text or len(names) < len(fields)


def _has_substrait_type(field: AnyField) -> bool:
    try:
        pc.field(field.name).is_null().to_substrait(pa.schema([field]))
    except pa.ArrowException:
        return False
    return True


def _paths(fields: list[AnyField]) -> tuple[ColumnPath, ...]:
    """The columns that an expression may name: those whose names occur in its text."""
    return tuple((field.name,) for field in fields)
