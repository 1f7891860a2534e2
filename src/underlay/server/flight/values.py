"""Parameters of a prepared statement, from the Arrow rows that a client binds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.text.words import words_of
from underlay.server.formats.text import texts_of

_PLAIN = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)


def count_parameters(sql: str) -> int:
    """The question marks of a statement that are placeholders."""
    return sum(word.text == "?" for word in words_of(sql))


def parameters_of(rows: pa.RecordBatch | pa.Table) -> list[list[object]]:
    """The parameters of each row, as requests have them. Raises InvalidRequest."""
    columns = [_values(rows.column(at), rows.schema.field(at)) for at in range(rows.num_columns)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(rows.num_rows)]


def _values(column: Any, field: pa.Field[pa.DataType]) -> Sequence[object]:  # noqa: ANN401  # an array or chunks
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if isinstance(array, pa.UnionArray):  # as drivers bind values whose type they do not know
        return [_value(one.as_py()) for one in array]
    kind = array.type
    if any(is_plain(kind) for is_plain in _PLAIN):
        return list(array.to_pylist())
    name = _type_name(kind, field.name)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        texts = [None if one is None else "".join(f"\\x{byte:02X}" for byte in one) for one in array.to_pylist()]
    else:
        texts = list(texts_of(array, integers_as_text=True).values)
    return [None if text is None else {"value": text, "type": name} for text in texts]


def _value(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    (found,) = _values(pa.array([value]), pa.field("", pa.null()))
    return found


def _type_name(kind: pa.DataType, column: str) -> str:
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return "float"
    if pa.types.is_float64(kind):
        return "double"
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp_ns" if kind.unit == "ns" else "timestamp"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "blob"
    raise InvalidRequest("a parameter cannot have this type", place=column or None, found=str(kind))
