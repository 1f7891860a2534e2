"""The names of types in answers, and which columns a format cannot take as they are."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

AnyType: TypeAlias = "pa.DataType"

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "utinyint",
    pa.uint16(): "usmallint",
    pa.uint32(): "uint",
    pa.uint64(): "ubigint",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.month_day_nano_interval(): "interval",
    pa.null(): "null",
}


def type_name(kind: AnyType) -> str:
    """A type's name in answers, such as decimal(9,2), timestamp(us), list<int> and struct<a int>."""
    if isinstance(kind, pa.BaseExtensionType):
        return str(getattr(kind, "type_name", kind.extension_name))
    if isinstance(kind, pa.DictionaryType):
        return type_name(kind.value_type)
    if isinstance(kind, pa.Decimal128Type | pa.Decimal256Type):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, pa.TimestampType):
        return f"timestamp{'' if kind.tz is None else 'tz'}({kind.unit})"
    if isinstance(kind, pa.Time32Type | pa.Time64Type):
        return f"time({kind.unit})"
    if isinstance(kind, pa.MapType):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if isinstance(kind, pa.StructType | pa.UnionType):
        fields = ",".join(f"{field.name} {type_name(field.type)}" for field in _fields(kind))
        return f"{'struct' if isinstance(kind, pa.StructType) else 'union'}<{fields}>"
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return f"list<{type_name(kind.value_type)}>"
    return _NAMES.get(kind, str(kind))


def columns_of(schema: pa.Schema) -> list[dict[str, object]]:
    """The columns as answers describe them."""
    return [_column(field) for field in schema]


def _column(field: pa.Field[Any]) -> dict[str, object]:  # Any: of every type
    name = type_name(field.type)
    encoded = {"encoding": "base64"} if name == "binary" else {}
    return {"name": field.name, "type": name, "nullable": field.nullable, **encoded}


def has_only_text_in_parquet(kind: AnyType) -> bool:
    """Whether Parquet lacks the type, so that values become text."""
    if isinstance(kind, pa.UnionType | pa.BaseExtensionType) or kind == pa.month_day_nano_interval():
        return True
    if isinstance(kind, pa.DictionaryType):
        return has_only_text_in_parquet(kind.value_type)
    if isinstance(kind, pa.StructType) and not kind.num_fields:
        return True
    return any(has_only_text_in_parquet(field.type) for field in _fields(kind))


def _fields(kind: AnyType) -> list[pa.Field[Any]]:  # Any: of every type
    return [kind.field(at) for at in range(kind.num_fields)]
