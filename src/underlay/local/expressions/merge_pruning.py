"""Derives from a merge's condition what must hold for the table's rows, so that blocks without a match are not read.

The condition is parsed as DuckDB parses it. Parts that AND joins, and that name only the table's columns, are
predicates; `t.a = expression of the source` means that a is one of the expression's values. A part that is not
understood prunes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from underlay.change.update.find_keys import ColumnValues
from underlay.errors import BadPredicate, InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.local.conditions.condition import split_condition
from underlay.local.conditions.shared_engine import connected
from underlay.local.expressions.merge_statement import SOURCE, TARGET, BoundMerge
from underlay.local.expressions.scope import Scope, field_of, type_of
from underlay.local.expressions.texts import SqlText
from underlay.local.implied.syntax import Node, NotUnderstood, conjuncts_of, nodes_below, read_query, write_exactly
from underlay.local.sql.tables import has_unlike_type
from underlay.prune import Predicate
from underlay.prune.parse.bind import resolve_path
from underlay.prune.parse.parameters import Parameters, key_of
from underlay.prune.predicates.normalise import normalise
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import And
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.cast.exact import cast_exactly, unfit_values
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import LeafColumn


def implied_for_rows(scope: Scope, text: SqlText) -> Predicate:
    """What must hold for a row of the table where the text is true, from its parts about the table alone."""
    found: list[Predicate] = []
    with connected() as connection:
        parts = [written for part, written in _parts(connection, scope, text) if part.is_of_table]
    for part in parts:
        values = scope.given_for([part]) or {}
        given = Parameters(values, key_of(values))
        try:
            predicate, _ = split_condition(part.text, scope.sides[TARGET].schema, BadPredicate(part.text), given)
        except InvalidRequest:  # the text as a whole was checked: this form implies nothing
            continue
        found.append(predicate)
    return normalise(And(tuple(found)))


def key_values(bound: BoundMerge, source: pa.Table) -> list[ColumnValues]:
    """The columns of the table that the condition compares with expressions of the source, and their values."""
    found: list[ColumnValues] = []
    with connected() as connection:
        parts = _parts(connection, bound.pairs, bound.condition)
        keys = [(part.column, written) for part, written in parts if part.column]
    for column, written in keys:
        leaf = bound.schema.leaf_by_path.get(column)
        if leaf is None:
            continue
        named = bound.source.reference(written.tree)
        try:
            if named is not None and has_unlike_type(type_of(named.path, source.schema)):
                values = field_of(source, named.path)
            else:
                (values,) = bound.source.values([written], [f"(\n{written.text}\n)"], [source])
        except InvalidRequest:  # the error may be of a row that the join never reaches
            continue
        fitting = _fitting(values, leaf)
        if fitting is not None:
            found.append(ColumnValues(leaf=leaf, values=fitting))
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a condition: one about the table alone, or the column that equals an expression of the source."""

    is_of_table: bool = False
    column: ColumnPath = ()


def _parts(connection: duckdb.DuckDBPyConnection, scope: Scope, text: SqlText) -> Iterator[tuple[_Part, SqlText]]:
    """The useful parts, with the text of the condition or of the source's expression."""
    try:
        query = read_query(connection, f"SELECT 1 FROM x WHERE (\n{text.text}\n)")
        for part in conjuncts_of(query["node"].get("where_clause")):
            sides = _sides(part, scope)
            if sides == {TARGET}:
                written = write_exactly(connection, query, _without_alias(part, scope))
                yield _Part(is_of_table=True), SqlText(place=text.place, text=written, is_condition=True)
            elif part.get("type") == "COMPARE_EQUAL":
                for one, other in ((part["left"], part["right"]), (part["right"], part["left"])):
                    column = _column(one, scope)
                    if column is not None and _sides(other, scope) == {SOURCE}:
                        written = write_exactly(connection, query, other)
                        yield _Part(column=column), SqlText(place=text.place, text=written)
    except (NotUnderstood, KeyError, TypeError):  # a tree of an unknown form implies nothing
        return


def _sides(node: Node, scope: Scope) -> set[int | None]:
    """The sides whose columns an expression names; None if that is unclear."""
    return {_side(one["column_names"], scope) for one in nodes_below(node) if one.get("class") == "COLUMN_REF"}


def _side(names: list[str], scope: Scope) -> int | None:
    aliases = [(side.alias or "").lower() for side in scope.sides]
    columns = [{name.lower() for name in side.schema.names} for side in scope.sides]
    first = names[0].lower()
    if first in aliases:
        named = [field for side in scope.sides for field in side.schema if field.name.lower() == first]
        is_unclear = len(names) == 1 or any(field.type.num_fields for field in named)  # it may be a field of a struct
        return None if is_unclear else aliases.index(first)
    owners = [at for at, known in enumerate(columns) if first in known]
    return owners[0] if len(owners) == 1 else None


def _column(node: Node, scope: Scope) -> ColumnPath | None:
    """The column of the table that an expression is."""
    if node.get("class") != "COLUMN_REF" or _side(node["column_names"], scope) != TARGET:
        return None
    try:
        return resolve_path(_short(node["column_names"], scope), scope.sides[TARGET].schema)
    except UnknownColumn:
        return None


def _short(names: list[str], scope: Scope) -> tuple[str, ...]:
    is_named = names[0].lower() == (scope.sides[TARGET].alias or "").lower() and len(names) > 1
    return tuple(names[1:] if is_named else names)


def _without_alias(value: Any, scope: Scope) -> Any:  # noqa: ANN401  # JSON
    """The same tree, without the alias before the table's columns."""
    if isinstance(value, list):
        return [_without_alias(one, scope) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("class") == "COLUMN_REF":
        return {**value, "column_names": list(_short(value["column_names"], scope))}
    return {name: _without_alias(one, scope) for name, one in value.items()}


def _fitting(values: AnyChunks, leaf: LeafColumn) -> AnyArray | None:
    """The values that the column may have, in its type; None if DuckDB does not compare the two by value.

    A value that the column's type cannot hold equals none of its values.
    """
    given, types = values.type, pa.types
    column = to_arrow_type(leaf.type)
    same = (
        types.is_integer,
        types.is_floating,
        types.is_string,
        types.is_date32,
        types.is_boolean,
        types.is_time,
        _is_moment,
    )
    if not any(test(given) and test(column) for test in same):
        return None
    zones = [kind.tz is None for kind in (given, column) if isinstance(kind, pa.TimestampType)]
    if len(set(zones)) > 1:
        return None
    distinct: AnyArray = pc.unique(values).drop_null()
    unfit = unfit_values(distinct, leaf.type)
    try:
        return cast_exactly(distinct if unfit is None else distinct.filter(pa.array(~unfit)), leaf.type, leaf.path)
    except SchemaMismatch:
        return None


def _is_moment(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.TimestampType)
