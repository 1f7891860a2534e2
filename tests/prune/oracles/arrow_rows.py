"""Rows of the kinds under test as Arrow tables, for the filter and for DuckDB."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
    "day32": pa.date32(),
    "second64": pa.timestamp("s"),
    "millisecond64": pa.timestamp("ms"),
    "microsecond64": pa.timestamp("us"),
    "nanosecond64": pa.timestamp("ns"),
    "decimal_int32": pa.decimal128(12, 2),
    "decimal_int64": pa.decimal128(19, 2),
    "decimal_flba": pa.decimal128(24, 2),
    "decimal_bytes": pa.decimal128(38, 2),
}
"""The Arrow type of each kind that has one. Decimals are as wide as the kind's bytes, not its digits."""

OTHER_FORMS = {
    "text": [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    "binary": [pa.large_binary(), pa.binary_view()],
    "microsecond64": [pa.timestamp("us", "Asia/Kolkata")],
    "decimal_int32": [pa.decimal256(50, 2)],
    "int32": [pa.int64()],
    "uint32": [pa.uint64()],
}


def arrow_array(kind, values, type_=None):
    """The values of a kind, None among them, in its Arrow type or another."""
    type_ = type_ or TYPES[kind.name]
    if kind.name.startswith("decimal"):
        values = [None if v is None else Decimal(f"{v}e-2") for v in values]
        return pa.array(values, type_)
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.array(values, type_.storage_type).cast(type_)
    if pa.types.is_dictionary(type_) or pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        plain = pa.string() if kind.name == "text" else pa.binary()
        array = pa.array(values, plain)
        return array.dictionary_encode() if pa.types.is_dictionary(type_) else array.cast(type_)
    return pa.array(values, type_)
