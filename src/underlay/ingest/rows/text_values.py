"""Converts texts to a column's values strictly: a text that does not convert is an error, and nothing is guessed.

It covers what CSV and JSON have no own form for: bytes (hexadecimal digits here), UUIDs, dates and times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from underlay.schema.arrow_aliases import AnyArray

_DAY = "1970-01-01T"


def is_csv_type(kind: pa.DataType) -> bool:
    """Whether Arrow's CSV reader makes values of this type by our rules."""
    return _is_number(kind) or pa.types.is_string(kind) or _is_dated(kind) or pa.types.is_time(kind)


def is_text_type(kind: pa.DataType) -> bool:
    """Whether `converter` knows the type."""
    return not pa.types.is_nested(kind)


def converter(kind: pa.DataType) -> Callable[[AnyArray], AnyArray]:
    """A function that converts a column of texts. It raises ArrowInvalid or ValueError when a text is not a value."""
    if isinstance(kind, pa.UuidType):
        return lambda column: _each(column, lambda text: UUID(text).bytes, kind.storage_type).cast(kind)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda column: _each(column, bytes.fromhex, kind)
    if pa.types.is_time(kind):
        return lambda column: _times(column, kind)
    return lambda column: column.cast(kind)


def _each(column: AnyArray, convert: Callable[[str], bytes], kind: pa.DataType) -> AnyArray:
    return pa.array([None if text is None else convert(text) for text in column.to_pylist()], kind)


def _times(column: AnyArray, kind: Any) -> AnyArray:  # noqa: ANN401  # one of two types that only Arrow tells apart
    """Arrow parses times of day only as part of a timestamp."""
    texts: AnyArray = pc.call_function("binary_join_element_wise", [pa.scalar(_DAY), column, pa.scalar("")])
    return texts.cast(pa.timestamp(kind.unit)).cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    is_float = types.is_float32(kind) or types.is_float64(kind)
    return types.is_integer(kind) or is_float or types.is_boolean(kind) or types.is_decimal(kind)


def _is_dated(kind: pa.DataType) -> bool:
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
