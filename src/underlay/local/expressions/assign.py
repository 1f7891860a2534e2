"""Computes new values for columns, from SQL expressions and Python values, in exactly the table's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
from sqlglot import exp

from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.local.expressions.scope import Reference, Scope, field_of
from underlay.local.expressions.texts import VALUE_HINT, SqlText
from underlay.prune.parse.bind import resolve_path
from underlay.prune.predicates.operand import ColumnPath, format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.cast.conform import RowName, conform
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.default import parse_text
from underlay.schema.names import parse_path
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, StructOf, TypeKind
from underlay.values.literal import Literal

Value = SqlText | Literal
_NO_VALUE = "Give values as {column: SQL expression}, Python values as ul.lit(value)."
_CAST_HINT = "Round or cast it in the expression: no value changes on its way into a column."


@dataclass(frozen=True, slots=True)
class _Computed:
    """An expression that DuckDB evaluates, and the text for it."""

    text: SqlText
    expression: str


@dataclass(frozen=True, slots=True)
class _Assignment:
    """Where the value of one column comes from: one value for all rows, a column as it is, or DuckDB."""

    path: ColumnPath
    origin: AnyArray | Reference | _Computed


class Assignments:
    """Values for some columns of a table's rows. Its constructor raises UnknownColumn, InvalidRequest.

    `alias` may precede a column's name.
    """

    def __init__(
        self, values: Mapping[str, Value], schema: TableSchema, scope: Scope, *, alias: str | None = None
    ) -> None:
        self._schema = schema
        self._scope = scope
        arrow = to_arrow(schema)
        by_path: dict[ColumnPath, Value] = {}
        for name, value in values.items():
            path = column_path(name, arrow, alias)
            _check_once(path, by_path)
            by_path[path] = value
        self._assignments = [_Assignment(path, self._origin(path, value)) for path, value in by_path.items()]
        self._computed = [one.origin for one in self._assignments if isinstance(one.origin, _Computed)]

    def columns(self, side: int) -> tuple[str, ...]:
        """The columns of a side that the values depend on."""
        origins = [one.origin for one in self._assignments]
        named = [one.path[0] for one in origins if isinstance(one, Reference) and one.side == side]
        read = self._scope.read_columns([one.text for one in self._computed])[side] if self._computed else ()
        return tuple(dict.fromkeys((*named, *read)))

    def needed(self) -> tuple[str, ...]:
        """The columns of the changed rows (the first side) that are needed to compute their new values."""
        replaced = {one.path[0] for one in self._assignments if len(one.path) == 1}
        used = self.columns(0)
        return tuple(name for name in self._schema.names if name not in replaced or name in used)

    def apply(self, rows: Sequence[pa.Table], onto: pa.Table | None, row_count: int, row_name: RowName) -> pa.Table:
        """Rows of the table with these values; other columns from `onto` if it has them, else defaults.

        `rows` are those of each side. Raises SchemaMismatch, naming the first row whose value does not fit the column's
        type; InvalidRequest when an expression fails for a row.
        """
        computed = iter(self._evaluate(rows))
        found = {} if onto is None else dict(zip(onto.schema.names, onto.columns, strict=True))
        for one in self._assignments:
            match one.origin:
                case Reference(side, path):
                    values = field_of(rows[side], path)
                case _Computed():
                    values = _untyped_nulls(next(computed))
                case _:
                    values = pa.chunked_array([one.origin.take(pa.array(np.zeros(row_count, np.int64)))])
            found[one.path[0]] = with_field(found.get(one.path[0]), one.path[1:], values)
        try:
            return conform(pa.table(found), self._schema, row_name=row_name)
        except SchemaMismatch as error:
            error.hint = _CAST_HINT if error.expected is not None else error.hint
            raise

    def _evaluate(self, rows: Sequence[pa.Table]) -> list[AnyChunks]:
        if not self._computed:
            return []
        return self._scope.values(
            [one.text for one in self._computed], [one.expression for one in self._computed], rows
        )

    def _origin(self, path: ColumnPath, value: Value) -> AnyArray | Reference | _Computed:
        if isinstance(value, Literal):
            return self._constant(path, value.value)
        tree = value.tree
        if isinstance(tree, exp.Placeholder) and tree.name.lower() in self._scope.parameters.values:
            return self._constant(path, self._scope.parameters.values[tree.name.lower()])
        if isinstance(tree, exp.Null):
            return pa.nulls(1)
        kind = _type_at(self._schema, path)
        if isinstance(tree, exp.Literal) and tree.is_string and isinstance(kind, Scalar):
            return _read_text(tree.name, kind, value.place)
        reference = self._scope.reference(tree)
        if reference is not None:
            return reference
        kind_of_answer = self._scope.check(value)
        value = self._scope.exact(value)
        expression = f"(\n{value.text}\n)"
        if kind_of_answer == "UUID":  # DuckDB returns these as text
            expression = f"unhex(replace(CAST({expression} AS VARCHAR), '-', ''))"
        return _Computed(value, expression)

    def _constant(self, path: ColumnPath, value: object) -> AnyArray:
        """A Python value in Arrow, with its own type: whether it fits the column is checked as for any other value."""
        if isinstance(value, pa.Scalar):
            return pa.array([value], value.type)
        arrow = to_arrow(self._schema).field(path[0]).type
        for step in path[1:]:
            arrow = arrow.field(step).type
        try:
            if isinstance(value, UUID):
                return pa.array([value.bytes])
            return pa.array([value], arrow if pa.types.is_map(arrow) else None)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            problem = "the value does not fit the column's type"
            raise SchemaMismatch(problem, place=format_column(path), expected=arrow, found=repr(value)) from error


def column_path(name: object, schema: pa.Schema, alias: str | None = None) -> ColumnPath:
    """The column that a user names: literally, or by a path that may begin with the table's alias.

    Raises UnknownColumn, InvalidRequest.
    """
    if not isinstance(name, str):
        raise InvalidRequest("the name of a column must be text", found=repr(name), hint=_NO_VALUE)
    if name in schema.names:
        return (name,)
    path = parse_path(name)
    try:
        return resolve_path(path, schema)
    except UnknownColumn:
        if alias is not None and len(path) > 1 and path[0].lower() == alias.lower():
            return resolve_path(path[1:], schema)
        raise


def check_values(values: object, place: str) -> Mapping[str, str | Literal]:
    """Values as a user gives them. Raises InvalidRequest."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidRequest("there are no values", place=place, found=repr(values)[:80], hint=_NO_VALUE)
    for name, value in values.items():
        if not isinstance(value, str | Literal):
            raise InvalidRequest("not an SQL expression", place=str(name), found=f"{value!r}"[:80], hint=VALUE_HINT)
    return values


def _check_once(path: ColumnPath, known: Mapping[ColumnPath, object]) -> None:
    """Raise InvalidRequest for a column that has a value already, itself or as part of another."""
    for other in known:
        shorter = min(len(path), len(other))
        if path[:shorter] == other[:shorter]:
            names = format_column(path) if path == other else f"{format_column(other)} and {format_column(path)}"
            raise InvalidRequest("the column is assigned twice", place=names, hint="Leave one out.")


def _type_at(schema: TableSchema, path: ColumnPath) -> object:
    kind: object = StructOf(schema.fields)
    for step in path:
        kind = next(field.type for field in kind.fields if field.name == step) if isinstance(kind, StructOf) else None
    return kind


def _read_text(text: str, kind: Scalar, place: str) -> AnyArray:
    """Text as a value of the column's type, as SQL reads '2024-01-31' for a date. Raises SchemaMismatch."""
    if kind.kind in (TypeKind.STRING, TypeKind.BINARY, TypeKind.FIXED):
        return pa.array([text] if kind.kind is TypeKind.STRING else [text.encode()])
    found = parse_text(text, kind)
    if found is None:
        problem = "the text is not exactly a value of the column's type"
        raise SchemaMismatch(problem, place=place, expected=kind, found=repr(text), hint="Correct the value.")
    return pa.array([found], found.type)


def _untyped_nulls(values: AnyChunks) -> AnyChunks:
    """Restore untyped nulls: DuckDB returns NULL as an integer, also in fields of structs."""
    if values.null_count == len(values):
        return pa.chunked_array([pa.nulls(len(values))])
    if not isinstance(values.type, pa.StructType):
        return values
    return pa.chunked_array([_struct_with_untyped_nulls(chunk) for chunk in values.chunks])


def _struct_with_untyped_nulls(chunk: AnyArray) -> AnyArray:
    names = [field.name for field in chunk.type]
    parts = [_untyped_nulls(pa.chunked_array([part])).combine_chunks() for part in chunk.flatten()]
    return pa.StructArray.from_arrays(parts, names, mask=chunk.is_null())


def with_field(struct: AnyChunks | None, path: ColumnPath, values: AnyChunks) -> AnyChunks:
    """A struct with a new value in one of its fields, or the value alone without a path. A null struct becomes
    non-null."""
    if not path:
        return values
    parts: dict[str, AnyChunks] = {}
    if struct is not None:
        names = [field.name for field in struct.type]
        inner = struct.combine_chunks().flatten()
        parts = {name: pa.chunked_array([part]) for name, part in zip(names, inner, strict=True)}
    name = path[0]
    parts[name] = with_field(parts.get(name), path[1:], values)
    whole = [part.combine_chunks() for part in parts.values()]
    return pa.chunked_array([pa.StructArray.from_arrays(whole, list(parts))])
