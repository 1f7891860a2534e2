"""Which types widen to which: a type widens to one that has all of its values.

| from | to |
|---|---|
| integers | wider integers that hold all of them; floats that hold all of them |
| floats | wider floats |
| `decimal(p, s)` | decimals with no fewer digits before and after the point |
| `fixed(16)` | `uuid` |
| `fixed(n)` | `binary` |
| `time`, `timestamp` | finer units; milliseconds to seconds, which Parquet does not have, when they are whole |
| `timestamp` with a zone | another zone: the instants stay |
"""

from __future__ import annotations

from underlay.schema.types import UNITS, Scalar, TypeKind

_SIGNED = {TypeKind.INT8: 8, TypeKind.INT16: 16, TypeKind.INT32: 32, TypeKind.INT64: 64}
_UNSIGNED = {TypeKind.UINT8: 8, TypeKind.UINT16: 16, TypeKind.UINT32: 32, TypeKind.UINT64: 64}
_FLOAT_DIGITS = {TypeKind.FLOAT16: 11, TypeKind.FLOAT32: 24, TypeKind.FLOAT64: 53}


def is_widening(source: Scalar, target: Scalar) -> bool:
    """Whether `target` has every value of `source`. Finer units count, although a value may overflow them."""
    if source == target:
        return True
    match source.kind, target.kind:
        case TypeKind.DECIMAL, TypeKind.DECIMAL:
            whole, target_whole = source.precision - source.scale, target.precision - target.scale
            return whole <= target_whole and source.scale <= target.scale
        case TypeKind.FIXED, TypeKind.UUID:
            return source.length == 16
        case TypeKind.FIXED, TypeKind.BINARY:
            return True
        case (TypeKind.TIME, TypeKind.TIME) | (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP):
            is_finer = UNITS.index(source.unit or "us") <= UNITS.index(target.unit or "us")
            is_stored_seconds = (source.unit, target.unit) == ("ms", "s")
            return (is_finer or is_stored_seconds) and (source.zone is None) == (target.zone is None)
    return _is_wider_number(source.kind, target.kind)


def is_widening_column(source: Scalar, target: Scalar) -> bool:
    """Whether a column of a table may change to this type: it has each value, and files stay as they are."""
    if (source.kind, target.kind) == (TypeKind.DATE, TypeKind.TIMESTAMP):
        return target.zone is None
    if source.unit is not None and (source.zone != target.zone or source.unit == target.unit):
        return False
    is_coarser = (source.unit, target.unit) == ("ms", "s")
    return source != target and not is_coarser and is_widening(source, target)


def _is_wider_number(source: TypeKind, target: TypeKind) -> bool:
    value_bits = _SIGNED[source] - 1 if source in _SIGNED else _UNSIGNED.get(source)
    if target in _FLOAT_DIGITS:
        if value_bits is None:
            return source in _FLOAT_DIGITS and _FLOAT_DIGITS[source] <= _FLOAT_DIGITS[target]
        return value_bits <= _FLOAT_DIGITS[target]
    if value_bits is None:
        return False
    if target in _SIGNED:
        return value_bits <= _SIGNED[target] - 1
    return source in _UNSIGNED and target in _UNSIGNED and value_bits <= _UNSIGNED[target]
