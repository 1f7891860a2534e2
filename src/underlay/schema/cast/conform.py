"""Turns what a user appends into rows of the table, or raises an error that names the column, the row and the value.

Columns and fields of structs are matched by name in any order. Values are cast exactly (see `exact`): nothing is
rounded, cut or parsed. Arrays that fit are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch, UnderlayError, name_hint
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyType
from underlay.schema.cast.adapt import SourceField, adapt_column, source_of
from underlay.schema.cast.exact import UNFIT, unfit_values
from underlay.schema.cast.find_bad import find_bad
from underlay.schema.cast.hidden_nulls import without_hidden_nulls
from underlay.schema.cast.list_items import list_entries, map_entries
from underlay.schema.cast.plain import plain_type
from underlay.schema.convert.arrow import is_list, to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind

_SHOWN_CHARS = 80
_COUNTED = 1000
"""At most this many unfit rows are counted, where each must be searched for."""
_CHECKED = (TypeKind.STRING, TypeKind.DECIMAL)
"""Kinds whose Arrow arrays may hold invalid values: bytes that are not UTF-8, more digits than declared."""


RowName = Callable[[int], str]
"""An error's name for the row at this position."""


def conform(
    data: pa.Table | pa.RecordBatch,
    schema: TableSchema,
    *,
    first_row: int = 0,
    ignore_surplus: bool = False,
    row_name: RowName | None = None,
) -> pa.Table:
    """The rows with exactly the schema of `to_arrow`. Raises SchemaMismatch, which counts rows from `first_row`, or
    has the `row_name` of the first that does not fit.

    `ignore_surplus` leaves out fields inside columns that the table does not have.
    """
    name = row_name or (lambda row: f"row {first_row + row}")
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    names = table.schema.names
    positions = {name: at for at, name in enumerate(names)}
    _refuse_names(names, schema.names, ())
    columns = []
    for field in schema.fields:
        at = positions.get(field.name)
        column = None if at is None else table.column(at)
        columns.append(_conform_column(column, field, table.num_rows, name, ignore_surplus))
    return pa.Table.from_arrays(columns, schema=to_arrow(schema))


def unfit_rows(rows: pa.Table, schema: TableSchema, *, ignore_surplus: bool = False) -> dict[int, str]:
    """Rows with a value that does not fit, by position, and why. Names and types of columns are known to fit."""
    reasons: dict[int, str] = {}
    given = set(rows.schema.names)
    for field in schema.fields:
        if field.name not in given:
            continue
        column = rows.column(field.name)
        source = _match(column.type, field, (field.name,), ignore_surplus)
        try:
            _strict(column, source, field)
        except SchemaMismatch:
            for row in _unfit_in(column, source, field, None).tolist():
                if row not in reasons:
                    reasons[row] = _reason(column.slice(row, 1), source, field)
    return reasons


def _conform_column(
    column: AnyChunks | None, field: Field, row_count: int, row_name: RowName, ignore_surplus: bool
) -> AnyChunks:
    if column is None:
        return _without_hidden_nulls(adapt_column(None, None, field, row_count), field)
    source = _match(column.type, field, (field.name,), ignore_surplus)
    try:
        return _strict(column, source, field)
    except SchemaMismatch as error:
        raise _located(error, column, source, field, row_name) from None


def _strict(column: AnyChunks, source: SourceField, field: Field) -> AnyChunks:
    found = adapt_column(column, source, field, len(column))
    for chunk in found.chunks:
        _check(chunk, field, (field.name,), 0)
    return _without_hidden_nulls(found, field)


def _without_hidden_nulls(column: AnyChunks, field: Field) -> AnyChunks:
    if isinstance(field.type, Scalar):
        return column
    return pa.chunked_array([without_hidden_nulls(chunk, field) for chunk in column.chunks], column.type)


def _match(type_: AnyType, field: Field, path: tuple[str, ...], ignore_surplus: bool) -> SourceField:
    """The parts of an Arrow type as the table's fields, by name. A type of another shape is left to `adapt`."""
    type_ = plain_type(type_)
    match field.type:
        case StructOf(fields) if isinstance(type_, pa.StructType):
            parts = [type_.field(at) for at in range(type_.num_fields)]
            by_name = {inner.name: inner for inner in fields}
            names = [part.name for part in parts if not ignore_surplus or part.name in by_name]
            _refuse_names(names, tuple(by_name), path)
            children = [
                _match(part.type, by_name[part.name], (*path, part.name), ignore_surplus)
                if part.name in by_name
                else SourceField(id=None)
                for part in parts
            ]
            return SourceField(id=field.id, children=tuple(children))
        case ListOf(element) if is_list(type_):
            item = _match(type_.value_type, element, (*path, "element"), ignore_surplus)
            return SourceField(id=field.id, children=(item,))
        case MapOf(key, value) if isinstance(type_, pa.MapType):
            sides = (
                _match(type_.key_type, key, (*path, "key"), ignore_surplus),
                _match(type_.item_type, value, (*path, "value"), ignore_surplus),
            )
            return SourceField(id=field.id, children=sides)
    return source_of(field)


def _refuse_names(names: list[str], known: tuple[str, ...], above: tuple[str, ...]) -> None:
    allowed = set(known)
    for name in names:
        if name not in allowed:
            alike = [other for other in known if other.lower() == name.lower()]
            raise SchemaMismatch(
                f"the table has no column {format_column((*above, name))}",
                hint=f"Did you mean {', '.join(alike)}?"
                if alike
                else f'Leave it out, or ingest the rows with new_columns="add". {name_hint(name, known)}',
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaMismatch(f"the column {format_column((*above, twice))} is given twice", hint="Leave one out.")


def _check(array: AnyArray, field: Field, path: tuple[str, ...], nulls_above: int) -> None:
    """Raises SchemaMismatch for nulls that are not allowed and for bytes that are not a valid value.

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


def _located(
    error: SchemaMismatch, column: AnyChunks, source: SourceField, field: Field, row_name: RowName
) -> UnderlayError:
    """The error with the first row that causes it and the number of others; unchanged when no row causes it."""
    try:
        _strict(column.slice(0, 0), source, field)
    except SchemaMismatch:
        return error
    bad = _unfit_in(column, source, field, _COUNTED)
    first, others = int(bad[0]), len(bad) - 1
    try:
        _strict(column.slice(first, 1), source, field)
    except SchemaMismatch as own:
        error = own
    also = f", and in {'at least ' if others + 1 == _COUNTED else ''}{others} more" if others else ""
    return SchemaMismatch(
        f"{error.problem} in {row_name(first)}{also}",
        place=error.place,
        expected=error.expected,
        found=_show(column.slice(first, 1)),
        hint=error.hint,
    )


def _unfit_in(column: AnyChunks, source: SourceField, field: Field, most: int | None) -> NDArray[np.int64]:
    """The rows of a column that do not fit; only the first `most` where each must be searched for."""
    if isinstance(field.type, Scalar):
        masks = [_unfit_mask(chunk, field.type, is_required=field.is_required) for chunk in column.chunks]
        if all(mask is not None for mask in masks):
            return np.flatnonzero(np.concatenate([mask for mask in masks if mask is not None]))
    count = len(column)

    def convert(part: slice) -> object:
        return _strict(column.slice(part.start, part.stop - part.start), source, field)

    return find_bad(count, convert, SchemaMismatch, most)


def _unfit_mask(chunk: AnyArray, type_: Scalar, *, is_required: bool) -> NDArray[np.bool_] | None:
    mask = unfit_values(chunk, type_)
    if mask is None or not (is_required and chunk.null_count):
        return mask
    return mask | np.asarray(chunk.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _reason(value: AnyChunks, source: SourceField, field: Field) -> str:
    if isinstance(field.type, Scalar) and field.type.kind not in _CHECKED and not value.null_count:
        return f"column {format_column((field.name,))}: {UNFIT}: {_show(value)}"  # there may be many such rows
    try:
        _strict(value, source, field)
    except SchemaMismatch as error:
        return f"column {error.place}: {error.problem}: {_show(value)}"
    return f"column {field.name}: the value does not fit: {_show(value)}"


def _show(value: AnyChunks) -> str:
    """One value, cut short. Arrow prints what Python cannot hold: instants far from now, bytes that are not text."""
    try:
        text = repr(value[0].as_py())
    except (ValueError, OverflowError):
        text = " ".join(value.chunk(0).to_string().split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
