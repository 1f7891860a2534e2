"""Converts rows from Spark for types that need more than an exact cast: UUIDs, and times without a zone.

Spark holds a UUID as text. Its `timestamp` (TIMESTAMP_LTZ) is an instant. A column without a zone accepts it only when
the user says which local time is meant: the session zone's, or UTC. Everything else is cast by value
(`schema.cast.conform`), such as unsigned integers that arrive as wider integers or decimals.
"""

from __future__ import annotations

from typing import Literal, get_args
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyType
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

NaiveTimestamps = Literal["session", "utc"]
"""The time zone whose local times a column without a zone stores for instants: the session's, or UTC."""
SESSION_ZONE = "spark.sql.session.timeZone"
_UUID: AnyType = pa.uuid()
_HINT = (
    'Give naive_timestamps="session" (local times of the session\'s zone) or "utc", as an argument or as an option of '
    'format("underlay"); or cast the column to timestamp_ntz.'
)


def read_naive_timestamps(given: str | None) -> NaiveTimestamps | None:
    """What the user chose. Raises InvalidRequest."""
    for known in get_args(NaiveTimestamps):
        if given is not None and given.lower() == known:
            return "session" if known == "session" else "utc"
    if given is None:
        return None
    expected = ", ".join(get_args(NaiveTimestamps))
    raise InvalidRequest("unknown choice for naive_timestamps", found=repr(given), expected=expected)


def table_rows(
    rows: pa.Table, schema: TableSchema, naive: NaiveTimestamps | None = None, *, session_zone: str | None = None
) -> pa.Table:
    """The rows, ready for `conform`. Raises SchemaMismatch for text that is not a UUID, and for instants in a column
    without a zone unless `naive` says what is meant.

    Instants in batches of tasks have the session's zone; those that `toArrow` collects have UTC, and need
    `session_zone`.
    """
    fields = {field.name: field for field in schema.fields}
    for at, name in enumerate(rows.column_names):
        field = fields.get(name)
        if field is None:
            continue
        column, given = rows.column(at), rows.schema.field(at).type
        if isinstance(field.type, Scalar) and field.type.kind is TypeKind.UUID and pa.types.is_string(given):
            column = pa.chunked_array([_uuids(chunk, field) for chunk in column.chunks], _UUID)
        elif path := _instant_path(given, field.type, (name,)):
            if naive is None:
                raise SchemaMismatch(
                    "the column has no zone, but Spark sends instants (TIMESTAMP_LTZ)",
                    place=format_column(path),
                    hint=_HINT,
                )
            zone = "UTC" if naive == "utc" else session_zone
            chunks = [_local(chunk, field.type, zone) for chunk in column.chunks]
            column = pa.chunked_array(chunks, _local_type(given, field.type))
        else:
            continue
        rows = rows.set_column(at, pa.field(name, column.type), column)
    return rows


def _uuids(chunk: AnyArray, field: Field) -> AnyArray:
    try:
        stored = [None if text is None else UUID(text).bytes for text in chunk.to_pylist()]
    except ValueError as error:
        raise SchemaMismatch(
            "a value does not fit the column", place=field.name, expected=field.type, found=str(error)
        ) from None
    return pa.ExtensionArray.from_storage(_UUID, pa.array(stored, pa.binary(16)))


def _is_instant(given: AnyType, wanted: Type) -> bool:
    is_naive = isinstance(wanted, Scalar) and wanted.kind is TypeKind.TIMESTAMP and wanted.zone is None
    return is_naive and isinstance(given, pa.TimestampType) and given.tz is not None


def _parts(given: AnyType, wanted: Type) -> list[tuple[int, str, AnyType, Type]]:
    """The parts of a nested type that the table has: index, name, type and the table's type."""
    match wanted:
        case StructOf(fields) if isinstance(given, pa.StructType):
            types = {field.name: field.type for field in fields}
            own = ((at, given.field(at)) for at in range(given.num_fields))
            return [(at, one.name, one.type, types[one.name]) for at, one in own if one.name in types]
        case ListOf(element) if isinstance(given, pa.ListType):
            return [(0, element.name, given.value_type, element.type)]
        case MapOf(key, value) if isinstance(given, pa.MapType):
            return [(0, key.name, given.key_type, key.type), (1, value.name, given.item_type, value.type)]
    return []


def _instant_path(given: AnyType, wanted: Type, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path where an instant would lose its zone; None when none would."""
    if _is_instant(given, wanted):
        return path
    for _, name, type_, inner in _parts(given, wanted):
        if found := _instant_path(type_, inner, (*path, name)):
            return found
    return None


def _local_type(given: AnyType, wanted: Type) -> AnyType:
    if _is_instant(given, wanted):
        return pa.timestamp(given.unit)
    types = {at: _local_type(type_, inner) for at, _, type_, inner in _parts(given, wanted)}
    if isinstance(given, pa.StructType):
        parts = [given.field(at) for at in range(given.num_fields)]
        return pa.struct([part.with_type(types.get(at, part.type)) for at, part in enumerate(parts)])
    if isinstance(given, pa.MapType) and types:
        return pa.map_(given.key_field.with_type(types[0]), given.item_field.with_type(types[1]))
    return pa.list_(given.value_field.with_type(types[0])) if types else given


def _local(array: AnyArray, wanted: Type, zone: str | None) -> AnyArray:
    """The array with local times where the table has no zone: of the given zone, or of the array's own."""
    given = array.type
    if _is_instant(given, wanted):
        return pc.call_function(
            "local_timestamp", [array if zone is None else array.cast(pa.timestamp(given.unit, zone))]
        )
    if _instant_path(given, wanted, ("",)) is None:
        return array
    types = {at: inner for at, _, _, inner in _parts(given, wanted)}
    new_type = _local_type(given, wanted)
    if isinstance(given, pa.StructType):
        parts = [array.field(at) for at in range(given.num_fields)]
        changed = [_local(part, types[at], zone) if at in types else part for at, part in enumerate(parts)]
        return pa.StructArray.from_arrays(changed, fields=list(new_type), mask=array.is_null())
    if isinstance(given, pa.MapType):
        sides = [_local(array.keys, types[0], zone), _local(array.items, types[1], zone)]
        child: AnyArray = pa.StructArray.from_arrays(sides, fields=[new_type.key_field, new_type.item_field])
    else:
        child = _local(array.values, types[0], zone)
    return pa.Array.from_buffers(new_type, len(array), array.buffers()[:2], offset=array.offset, children=[child])
