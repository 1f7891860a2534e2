"""What a user appends, as rows of the table, or an error that names the column, the row and the value.

Columns and fields of structs are matched by name in any order. Types must be equal or widen exactly; nothing is
rounded, cut or parsed. Arrays that fit are passed on as they are.
"""

from __future__ import annotations

import pyarrow as pa

from underlay.errors import SchemaMismatch, UnderlayError
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyType
from underlay.schema.cast.adapt import SourceField, adapt_column, source_of
from underlay.schema.cast.hidden_nulls import without_hidden_nulls
from underlay.schema.cast.list_items import list_entries, map_entries
from underlay.schema.convert.arrow import is_list, to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind

_SHOWN_CHARS = 80
_CHECKED = (TypeKind.STRING, TypeKind.DECIMAL)
"""Kinds of which an Arrow array may hold what is no value: bytes that are no UTF-8, more digits than declared."""


def conform(data: pa.Table | pa.RecordBatch, schema: TableSchema) -> pa.Table:
    """The rows with exactly the schema of `to_arrow`. Raises SchemaMismatch."""
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    names = table.schema.names
    positions = {name: at for at, name in enumerate(names)}
    _refuse_names(names, schema.names, ())
    columns = []
    for field in schema.fields:
        at = positions.get(field.name)
        columns.append(_conform_column(None if at is None else table.column(at), field, table.num_rows))
    return pa.Table.from_arrays(columns, schema=to_arrow(schema))


def _conform_column(column: AnyChunks | None, field: Field, row_count: int) -> AnyChunks:
    if column is None:
        return _without_hidden_nulls(adapt_column(None, None, field, row_count), field)
    source = _match(column.type, field, (field.name,))
    try:
        return _strict(column, source, field)
    except SchemaMismatch as error:
        raise _located(error, column, source, field) from None


def _strict(column: AnyChunks, source: SourceField, field: Field) -> AnyChunks:
    found = adapt_column(column, source, field, len(column))
    for chunk in found.chunks:
        _check(chunk, field, (field.name,), 0)
    return _without_hidden_nulls(found, field)


def _without_hidden_nulls(column: AnyChunks, field: Field) -> AnyChunks:
    if isinstance(field.type, Scalar):
        return column
    return pa.chunked_array([without_hidden_nulls(chunk, field) for chunk in column.chunks], column.type)


def _match(type_: AnyType, field: Field, path: tuple[str, ...]) -> SourceField:
    """The parts of an Arrow type as the table's fields, by name. A type of another shape is left to `adapt`."""
    match field.type:
        case StructOf(fields) if isinstance(type_, pa.StructType):
            parts = [type_.field(at) for at in range(type_.num_fields)]
            by_name = {inner.name: inner for inner in fields}
            _refuse_names([part.name for part in parts], tuple(by_name), path)
            children = [_match(part.type, by_name[part.name], (*path, part.name)) for part in parts]
            return SourceField(id=field.id, children=tuple(children))
        case ListOf(element) if is_list(type_):
            return SourceField(id=field.id, children=(_match(type_.value_type, element, (*path, "element")),))
        case MapOf(key, value) if isinstance(type_, pa.MapType):
            sides = (_match(type_.key_type, key, (*path, "key")), _match(type_.item_type, value, (*path, "value")))
            return SourceField(id=field.id, children=sides)
    return source_of(field)


def _refuse_names(names: list[str], known: tuple[str, ...], above: tuple[str, ...]) -> None:
    allowed = set(known)
    for name in names:
        if name not in allowed:
            alike = [other for other in known if other.lower() == name.lower()]
            listed = ", ".join(alike or known[:20])
            raise SchemaMismatch(
                f"the table has no column {format_column((*above, name))}",
                hint=f"Did you mean {listed}?"
                if alike
                else f"Leave it out, or add it to the table. Columns: {listed}.",
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaMismatch(f"the column {format_column((*above, twice))} is given twice", hint="Leave one out.")


def _check(array: AnyArray, field: Field, path: tuple[str, ...], nulls_above: int) -> None:
    """Raises SchemaMismatch for nulls that are not allowed and bytes that are no value.

    `array` is null wherever something above it is, in `nulls_above` places.
    """
    if field.is_required and array.null_count > nulls_above:
        raise SchemaMismatch(
            "a required column holds null", place=format_column(path), hint="Fill it, or leave the row out."
        )
    match field.type:
        case Scalar(kind=kind) if kind in _CHECKED:
            _check_values(array, field.type, path)
        case StructOf(fields):
            for inner, part in zip(fields, array.flatten(), strict=True):
                _check(part, inner, (*path, inner.name), array.null_count)
        case ListOf(element):
            items, _ = list_entries(array)
            _check(items, element, (*path, element.name), 0)
        case MapOf(key, value):
            keys, items, _ = map_entries(array)
            _check(keys, key, (*path, key.name), 0)
            _check(items, value, (*path, value.name), 0)


def _check_values(array: AnyArray, type_: Scalar, path: tuple[str, ...]) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        problem = "text is not valid UTF-8" if type_.kind is TypeKind.STRING else "a decimal has too many digits"
        raise SchemaMismatch(problem, place=format_column(path), expected=type_, hint="Correct the value.") from None


def _located(error: SchemaMismatch, column: AnyChunks, source: SourceField, field: Field) -> UnderlayError:
    """The error with the first row that causes it; as it is when no row does."""
    good, bad = -1, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _strict(column.slice(0, middle), source, field)
            good = middle
        except SchemaMismatch:
            bad = middle
    if bad == 0:
        return error
    shown = _show(column.slice(bad - 1, 1))
    return SchemaMismatch(
        f"{error.problem} in row {bad - 1}",
        place=error.place,
        expected=error.expected,
        found=shown,
        hint=error.hint or "Correct the value, or widen the column's type.",
    )


def _show(value: AnyChunks) -> str:
    """One value, cut short. Arrow prints what Python cannot hold: instants far from now, bytes that are not text."""
    try:
        text = repr(value[0].as_py())
    except (ValueError, OverflowError):
        text = " ".join(value.chunk(0).to_string().split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
