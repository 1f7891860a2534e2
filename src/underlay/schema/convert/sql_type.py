"""Names of scalar types in Spark SQL, DuckDB and Underlay."""

from __future__ import annotations

from underlay.errors import InvalidRequest, Unsupported
from underlay.schema.types import Scalar, TypeKind, parse_scalar

_NAMES: dict[str, str] = {
    **dict.fromkeys(("bool", "logical"), "boolean"),
    **dict.fromkeys(("tinyint", "int1", "byte"), "int8"),
    **dict.fromkeys(("smallint", "int2", "short"), "int16"),
    **dict.fromkeys(("int", "integer", "int4", "signed"), "int32"),
    **dict.fromkeys(("bigint", "long"), "int64"),
    "utinyint": "uint8",
    "usmallint": "uint16",
    "uinteger": "uint32",
    "uint": "uint32",
    "ubigint": "uint64",
    **dict.fromkeys(("real", "float", "float4"), "float32"),
    **dict.fromkeys(("double", "float8", "double precision"), "float64"),
    **dict.fromkeys(("text", "varchar", "char", "bpchar", "nvarchar"), "string"),
    **dict.fromkeys(("blob", "bytea", "varbinary"), "binary"),
    **dict.fromkeys(("time", "time without time zone"), "time(us)"),
    "time_ns": "time(ns)",
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_us", "datetime"), "timestamp(us)"),
    "timestamp without time zone": "timestamp(us)",
    **dict.fromkeys(("timestamptz", "timestamp_ltz", "timestamp with time zone"), "timestamp(us, UTC)"),
    "timestamp_ns": "timestamp(ns)",
    "timestamp_ms": "timestamp(ms)",
    "timestamp_s": "timestamp(s)",
    **dict.fromkeys(("decimal", "numeric", "dec"), "decimal(18, 3)"),
}
"""What a name without parameters means; other names are our own. A bare decimal is DuckDB's."""

_TEXT = ("varchar", "char", "string", "text", "nvarchar", "bpchar")
_DECIMALS = ("decimal", "numeric", "dec")
_HINTS = {
    "hugeint": "Use decimal(38, 0).",
    "uhugeint": "Use decimal(38, 0).",
    "int128": "Use decimal(38, 0).",
    "interval": "Use bigint and put the unit in the name.",
    "json": "Use string.",
    "variant": "Use string or a struct.",
    "timetz": "Use time.",
    "time with time zone": "Use time.",
}


def read_type_name(name: str, inside: str | None) -> Scalar:
    """The type of a name and the text of its parameters, if it has any. Raises InvalidRequest or Unsupported."""
    lower = name.lower()
    if lower in _HINTS:
        raise Unsupported("tables have no columns of this type", found=name, hint=_HINTS[lower])
    if inside is None:
        return parse_scalar(_NAMES.get(lower, lower))
    return _with_parameters(lower, [part.strip() for part in inside.split(",")], f"{name}({inside})")


def _with_parameters(name: str, given: list[str], written: str) -> Scalar:
    match name, given:
        case _, [digits] if name in _TEXT and digits.isdecimal():
            raise Unsupported("text has no maximum length here", found=written, hint="Write varchar without a number.")
        case (("binary" | "fixed" | "varbinary"), [digits]):
            return parse_scalar(f"fixed({digits})")
        case _, [precision] if name in _DECIMALS:
            return parse_scalar(f"decimal({precision}, 0)")
        case _, _ if name in _DECIMALS:
            return parse_scalar(f"decimal({', '.join(given)})")
        case (("timestamp" | "timestamptz" | "time"), [digits]) if digits.isdecimal():
            return _with_digits(name, digits, written)
    return parse_scalar(f"{name}({', '.join(given)})")


def _with_digits(name: str, digits: str, written: str) -> Scalar:
    """`timestamp(3)`: how many digits follow the second."""
    unit = {"0": "s", "3": "ms", "6": "us", "9": "ns"}.get(digits)
    if unit is None:
        raise InvalidRequest("no such precision", expected="0, 3, 6 or 9 digits", found=written)
    kind = TypeKind.TIME if name == "time" else TypeKind.TIMESTAMP
    return Scalar(kind, unit=unit, zone="UTC" if name == "timestamptz" else None)
