"""Converts rows from Spark for columns whose types Spark lacks: it holds them as the type that stands in when it reads.

Unsigned integers come as wider signed ones or decimals, seconds and milliseconds as microseconds, uuids as text, values
of fixed length as bytes. Each is converted when that loses nothing, and refused when it does.
"""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import SchemaMismatch
from underlay.schema.arrow_aliases import AnyChunks
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind

_STAND_INS: dict[TypeKind, pa.DataType] = {
    TypeKind.UINT8: pa.int16(),
    TypeKind.UINT16: pa.int32(),
    TypeKind.UINT32: pa.int64(),
    TypeKind.UINT64: pa.decimal128(20, 0),
    TypeKind.FIXED: pa.binary(),
    TypeKind.UUID: pa.string(),
}


def table_rows(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The rows, with the table's own types where Spark's stood in for them. Raises SchemaMismatch for a value that is
    none of the table's type. Columns within structs, lists and maps stay as they are."""
    for at, name in enumerate(rows.column_names):
        field = next((field for field in schema.fields if field.name == name), None)
        if field is not None and _stands_in(rows.schema.field(at).type, field):
            column = _converted(rows.column(at), field)
            rows = rows.set_column(at, pa.field(name, column.type), column)
    return rows


def _stands_in(given: pa.DataType, field: Field) -> bool:
    wanted = field.type
    if not isinstance(wanted, Scalar):
        return False
    if wanted.kind is TypeKind.TIMESTAMP and wanted.unit in ("s", "ms"):
        # an instant comes with the zone of the session
        return isinstance(given, pa.TimestampType) and given.unit == "us" and (given.tz is None) == (not wanted.zone)
    return given == _STAND_INS.get(wanted.kind)


def _converted(column: AnyChunks, field: Field) -> AnyChunks:
    wanted = to_arrow_type(field.type)
    try:
        if isinstance(wanted, pa.UuidType):
            stored = [None if text is None else UUID(text).bytes for text in column.to_pylist()]
            return pa.chunked_array([pa.ExtensionArray.from_storage(wanted, pa.array(stored, pa.binary(16)))])
        return pc.cast(column, wanted)
    except (pa.ArrowInvalid, ValueError) as error:
        raise SchemaMismatch(
            "a value does not fit the column", place=field.name, expected=field.type, found=str(error).strip()
        ) from None
