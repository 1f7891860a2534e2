"""Defaults of columns that files lack, as Iceberg's format 3 has them: X6 of docs/interop.md."""

from __future__ import annotations

import math
from decimal import Decimal

from underlay.interop.iceberg.columns.types import Json
from underlay.schema.convert.default import default_scalar
from underlay.schema.types import Field, Scalar, TypeKind

_FRACTION_DIGITS = {"s": 6, "ms": 6, "us": 6, "ns": 9}


def default_json(field: Field) -> Json | None:
    """The default as JSON; None when it is null. Raises ValueError for NaN and infinities, which JSON lacks."""
    scalar = default_scalar(field)
    if scalar is None or not isinstance(field.type, Scalar) or field.default is None:
        return None
    type_ = field.type
    match type_.kind:
        case TypeKind.BOOLEAN | TypeKind.STRING:
            return scalar.as_py()
        case TypeKind.FLOAT32 | TypeKind.FLOAT64:
            number = float(scalar.as_py())
            if not math.isfinite(number):
                raise ValueError(f"the default {field.default} is not in JSON")
            return number
        case TypeKind.DECIMAL:
            return f"{Decimal(field.default):.{type_.scale}f}"
        case TypeKind.TIME:
            return _with_fraction(field.default, type_)
        case TypeKind.TIMESTAMP:
            zone = "+00:00" if type_.zone else ""
            return f"{_with_fraction(_with_time(field.default).replace(' ', 'T'), type_)}{zone}"
        case TypeKind.UUID | TypeKind.BINARY | TypeKind.FIXED | TypeKind.DATE:
            return field.default
    return int(scalar.as_py())


def _with_time(text: str) -> str:
    return text if " " in text else f"{text} 00:00:00"


def _with_fraction(text: str, type_: Scalar) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(_FRACTION_DIGITS[type_.unit or 'us'], '0')}"
