"""Fields that Arrow columns have and a table lacks, nested ones included; and the table extended by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from underlay.errors import SchemaMismatch
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyField, AnyType
from underlay.schema.convert.arrow import from_arrow, is_list
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, StructOf, Type

_HINT = "Names that differ only in case are the same to Spark and others. Rename it in the source."


def lacking(found: pa.Schema, schema: TableSchema) -> pa.Schema:
    """The columns that the table lacks, and known columns reduced to the fields that it lacks."""
    known = {field.name: field for field in schema.fields}
    fields: list[AnyField] = []
    for field in found:
        if field.name not in known:
            fields.append(field)
        elif (type_ := _new_in(field.type, known[field.name].type)) is not None:
            fields.append(field.with_type(type_))
    return pa.schema(fields)


def lacking_names(columns: pa.Schema, schema: TableSchema) -> tuple[tuple[str, ...], ...]:
    """The paths of what `lacking` found."""
    return tuple(path for field in columns for path in _paths(field, schema.fields, ()))


def with_new_fields(schema: TableSchema, columns: pa.Schema) -> TableSchema:
    """The table extended by what it lacks of these columns: each new field after its siblings, null in existing rows.

    Raises SchemaMismatch for invalid names and for names that differ from a sibling's only in case, Unsupported for
    types that tables do not have.
    """
    grown = _grown(schema.fields, lacking(columns, schema), schema.last_id, ())
    return TableSchema(fields=grown[0], last_id=grown[1])


def _new_in(given: AnyType, known: Type) -> AnyType | None:
    match known:
        case StructOf(fields) if isinstance(given, pa.StructType):
            parts = pa.schema([given.field(at) for at in range(given.num_fields)])
            new = lacking(parts, TableSchema(fields=fields, last_id=0))
            return pa.struct(list(new)) if len(new) else None
        case ListOf(element) if is_list(given):
            inner = _new_in(given.value_type, element.type)
            return None if inner is None else pa.list_(pa.field("element", inner))
        case MapOf(value=value) if isinstance(given, pa.MapType):
            inner = _new_in(given.item_type, value.type)
            return None if inner is None else pa.map_(given.key_type, pa.field("value", inner))
    return None


def _paths(field: AnyField, siblings: tuple[Field, ...], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    path = (*above, field.name)
    known = next((one for one in siblings if one.name == field.name), None)
    if known is None:
        yield path
        return
    type_, given = known.type, field.type
    while isinstance(type_, ListOf | MapOf):
        part = type_.element if isinstance(type_, ListOf) else type_.value
        given, type_, path = _inner(given), part.type, (*path, part.name)
    if isinstance(type_, StructOf):
        for at in range(given.num_fields):
            yield from _paths(given.field(at), type_.fields, path)


def _inner(given: AnyType) -> AnyType:
    return given.item_type if isinstance(given, pa.MapType) else given.value_type


def _grown(
    fields: tuple[Field, ...], new: pa.Schema, last_id: int, above: tuple[str, ...]
) -> tuple[tuple[Field, ...], int]:
    """The fields with new parts inside and new ones behind, and the last id that was assigned."""
    found = list(fields)
    places = {field.name: at for at, field in enumerate(fields)}
    taken = {field.name.casefold(): field.name for field in fields}
    for field in new:
        at = places.get(field.name)
        if at is not None:
            type_, last_id = _grown_type(found[at].type, field.type, last_id, (*above, field.name))
            found[at] = replace(found[at], type=type_)
            continue
        other = taken.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            path, beside = format_column((*above, field.name)), format_column((*above, other))
            raise SchemaMismatch(f"the column {path} cannot be added beside {beside}", hint=_HINT)
        numbered = from_arrow(pa.schema([field.with_nullable(True)]), first_id=last_id + 1)
        found += numbered.fields
        last_id = numbered.last_id
    return tuple(found), last_id


def _grown_type(known: Type, given: AnyType, last_id: int, path: tuple[str, ...]) -> tuple[Type, int]:
    match known:
        case StructOf(fields):
            parts = pa.schema([given.field(at) for at in range(given.num_fields)])
            grown, last_id = _grown(fields, parts, last_id, path)
            return StructOf(grown), last_id
        case ListOf(element):
            type_, last_id = _grown_type(element.type, given.value_type, last_id, (*path, element.name))
            return ListOf(replace(element, type=type_)), last_id
        case MapOf(key, value):
            type_, last_id = _grown_type(value.type, given.item_type, last_id, (*path, value.name))
            return MapOf(key, replace(value, type=type_)), last_id
    return known, last_id
