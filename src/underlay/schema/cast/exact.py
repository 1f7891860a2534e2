"""Casts that are exact by value: a value is accepted if the other type has the same value, and refused otherwise.

| from | to |
|---|---|
| integers, floats, decimals | each other, where the number is the same; −0.0 is 0; NaN and infinities are floats only |
| `timestamp` without a zone, `date` | each other, where the time is midnight |
| `timestamp`, `time` | other units, where no digit is lost and nothing overflows |
| `timestamp` with a zone | another zone: the instants stay |
| `binary`, `fixed(n)`, `uuid` | each other, where the length is right |

Text is never parsed, a number is not a boolean, and a zone is neither added nor removed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyType
from underlay.schema.cast.plain import byte_width, is_bytes, plain
from underlay.schema.cast.widen import is_widening
from underlay.schema.convert.arrow import scalar_of, to_arrow_type
from underlay.schema.types import Scalar, TypeKind

Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[Any]
"""Of whatever type the column has."""

UNFIT = "a value does not fit the column's type"
_FLOATS: dict[AnyType, type[np.floating[Any]]] = {
    pa.float16(): np.float16,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
_MOST_DIGITS = 38
_TEN_DIGITS = 22
"""Powers of ten up to this one are doubles."""
_WHOLE = 2.0**53
"""Doubles below this hold every whole number."""
_DAY_TICKS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DAYLIKE = (TypeKind.DATE, TypeKind.TIMESTAMP)


def cast_exactly(array: AnyArray, target: Scalar, path: tuple[str, ...]) -> AnyArray:
    """The same values in the target's Arrow type. Raises SchemaMismatch for one that it does not have."""
    arrow = to_arrow_type(target)
    if array.type == arrow:
        return array
    found = plain(array)
    if found.type == arrow:
        return found
    if pa.types.is_null(found.type):
        return pa.nulls(len(found), arrow)
    if not is_castable(found.type, target):
        raise _other_type(found.type, target, path)
    source = scalar_of(found.type)
    try:
        return found.cast(arrow) if source is not None and is_widening(source, target) else _cast(found, arrow)
    except (pa.ArrowInvalid, _Unfit):
        raise SchemaMismatch(
            UNFIT, place=format_column(path), expected=target, hint="Correct the value, or leave the row out."
        ) from None


def is_castable(given: pa.DataType, target: Scalar) -> bool:
    """Whether values of an Arrow type may be values of the target's."""
    arrow = to_arrow_type(target)
    if _is_number(given) and _is_number(arrow):
        return True
    if is_bytes(given) and is_bytes(arrow):
        return len({byte_width(given), byte_width(arrow)} - {None}) < 2
    source = scalar_of(given)
    if source is None:
        return False
    if source.kind in _DAYLIKE and target.kind in _DAYLIKE:
        return (source.zone is None) == (target.zone is None)
    return source.kind is target.kind


def unfit_values(array: AnyArray, target: Scalar) -> Mask | None:
    """Which values the target does not have; None for types where that cannot be computed for all values at once."""
    found, arrow = plain(array), to_arrow_type(target)
    given, types = found.type, pa.types
    if types.is_integer(arrow) and types.is_integer(given):
        unfit = _outside(_numbers(found), arrow)
    elif types.is_integer(arrow) and types.is_floating(given):
        unfit = _not_whole(_numbers(found), arrow)
    elif arrow in _FLOATS and types.is_integer(given):
        unfit = _rounded(_numbers(found), _FLOATS[arrow])
    elif arrow in _FLOATS and types.is_floating(given):
        unfit = _shortened(_numbers(found), _FLOATS[arrow])
    elif isinstance(given, pa.TimestampType) and types.is_date32(arrow):
        unfit = _numbers(found) % _DAY_TICKS[given.unit] != 0
    else:
        return None
    return unfit & _valid(found)


class _Unfit(Exception):
    """The other type does not have the value."""


def _cast(array: AnyArray, arrow: AnyType) -> AnyArray:
    """Raises ArrowInvalid or _Unfit. Arrow does the casts that it does exactly."""
    given, types = array.type, pa.types
    if types.is_floating(given):
        if types.is_decimal(arrow):
            return _float_to_decimal(array, arrow)
        unfit = _not_whole(_numbers(array), arrow) if types.is_integer(arrow) else None
        if unfit is None and given.bit_width > arrow.bit_width:
            unfit = _shortened(_numbers(array), _FLOATS[arrow])
        _refuse(unfit, array)
        return array.cast(arrow, safe=False)
    if types.is_integer(given) and arrow in _FLOATS:
        _refuse(_rounded(_numbers(array), _FLOATS[arrow]), array)
        return array.cast(arrow, safe=False)
    if types.is_integer(given) and types.is_decimal(arrow):
        return _rescaled(array.cast(pa.decimal128(20, 0)), arrow)  # Arrow wants room for all values of the type
    if types.is_decimal(given):
        if arrow in _FLOATS:
            return _decimal_to_float(array, arrow)
        whole = types.is_integer(arrow)
        scaled = _rescaled(array, pa.decimal128(_MOST_DIGITS, 0) if whole else arrow)
        return scaled.cast(arrow) if whole else scaled
    if isinstance(given, pa.TimestampType) and types.is_date32(arrow):
        _refuse(_numbers(array) % _DAY_TICKS[given.unit] != 0, array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(arrow, pa.UuidType):
        stored = array.cast(arrow.storage_type)
        return pa.ExtensionArray.from_storage(arrow, stored)
    return array.cast(arrow)


def _refuse(unfit: Mask | None, array: AnyArray) -> None:
    if unfit is not None and unfit.any() and (unfit & _valid(array)).any():
        raise _Unfit


def _outside(numbers: Numbers, arrow: AnyType) -> Mask:
    own, other = np.iinfo(numbers.dtype), np.iinfo(arrow.to_pandas_dtype())
    low, high = max(int(own.min), int(other.min)), min(int(own.max), int(other.max))
    return (numbers < low) | (numbers > high)


def _not_whole(floats: Numbers, arrow: AnyType) -> Mask:
    """Both ends of an integer type's range, the upper one not included, are doubles."""
    wide, limits = floats.astype(np.float64), np.iinfo(arrow.to_pandas_dtype())
    inside = (wide >= float(limits.min)) & (wide < float(int(limits.max) + 1))
    unfit: Mask = ~(inside & (np.floor(wide) == wide))
    return unfit


def _rounded(whole: Numbers, kind: type[np.floating[Any]]) -> Mask:
    with np.errstate(over="ignore"):
        wide = whole.astype(kind).astype(np.float64)
    limits = np.iinfo(whole.dtype)
    inside = (wide >= float(limits.min)) & (wide < float(int(limits.max) + 1))
    back = np.where(inside, wide, 0.0).astype(whole.dtype)
    unfit: Mask = ~inside | (back != whole)
    return unfit


def _shortened(floats: Numbers, kind: type[np.floating[Any]]) -> Mask:
    with np.errstate(over="ignore", under="ignore"):
        back = floats.astype(kind).astype(floats.dtype)
    unfit: Mask = (back != floats) & ~np.isnan(floats)
    return unfit


def _rescaled(array: AnyArray, arrow: AnyType) -> AnyArray:
    """Decimals in another type. Arrow does not see that a product with a power of ten overflows 128 bits (26.0)."""
    given = array.type
    if given.scale >= arrow.scale:
        return array.cast(arrow)
    if given.precision > _MOST_DIGITS:
        array = array.cast(pa.decimal256(_MOST_DIGITS, given.scale))
    return array.cast(pa.decimal256(2 * _MOST_DIGITS, arrow.scale)).cast(arrow)


def _float_to_decimal(array: AnyArray, arrow: AnyType) -> AnyArray:
    """A float in lowest terms, m / 2^k, is a decimal with s digits after the point if and only if k is at most s."""
    floats, scale = _numbers(array).astype(np.float64), arrow.scale
    with np.errstate(over="ignore", invalid="ignore"):
        halved = np.ldexp(floats, scale)
        _refuse(~np.isfinite(floats) | (np.floor(halved) != halved), array)
        if scale <= _TEN_DIGITS:
            scaled = floats * 10.0**scale
            if (np.abs(scaled) < _WHOLE).all():
                whole = pa.array(scaled.astype(np.int64), mask=~_valid(array)).cast(pa.decimal128(38, 0))
                return _with_scale(whole, scale).cast(arrow)
    return pa.array([None if one is None else Decimal(one) for one in array.cast(pa.float64()).to_pylist()], arrow)


def _decimal_to_float(array: AnyArray, arrow: AnyType) -> AnyArray:
    found = _quotients(array)
    if found is None:
        exact = [None if one is None else (float(one), one) for one in array.to_pylist()]
        if any(pair is not None and Decimal(pair[0]) != pair[1] for pair in exact):
            raise _Unfit
        floats: AnyArray = pa.array([None if pair is None else pair[0] for pair in exact], pa.float64())
    else:
        floats = pa.array(found, mask=~_valid(array))
    return floats if arrow == floats.type else _cast(floats, arrow)


def _quotients(array: AnyArray) -> NDArray[np.float64] | None:
    """Decimals as doubles, if they have few digits: then a division is right, and so is the product that proves it."""
    given = array.type
    if not isinstance(given, pa.Decimal128Type) or not 0 <= given.scale <= _TEN_DIGITS or not len(array):
        return None
    filled = array.fill_null(Decimal(0)) if array.null_count else array
    halves = np.frombuffer(filled.buffers()[1], np.int64).reshape(-1, 2)[filled.offset : filled.offset + len(array)]
    whole = halves[:, 0]
    if ((whole >> 63) != halves[:, 1]).any() or (np.abs(whole) >= int(_WHOLE)).any():
        return None
    power = 10.0**given.scale
    floats: NDArray[np.float64] = whole / power
    halved = np.ldexp(floats, given.scale)
    _refuse((np.floor(halved) != halved) | (floats * power != whole), array)
    return floats


def _with_scale(whole: AnyArray, scale: int) -> AnyArray:
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(whole), whole.buffers(), offset=whole.offset)


def _numbers(array: AnyArray) -> Numbers:
    """The numbers under the values, 0 for null."""
    if isinstance(array.type, pa.TimestampType):
        array = array.cast(pa.int64())
    zero = pa.scalar(np.float16(0) if pa.types.is_float16(array.type) else 0, array.type)
    found: Numbers = array.fill_null(zero).to_numpy(zero_copy_only=False) if array.null_count else array.to_numpy()
    return found


def _valid(array: AnyArray) -> Mask:
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _is_number(given: pa.DataType) -> bool:
    return pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_decimal(given)


def _other_type(given: pa.DataType, target: Scalar, path: tuple[str, ...]) -> SchemaMismatch:
    source = scalar_of(given)
    hint = "Cast it first: text is not parsed, and no value may change."
    if source is not None and source.kind in _DAYLIKE and target.kind in _DAYLIKE:
        hint = "Convert it first: only you know in which zone times without a zone are."
    return SchemaMismatch(
        "the column has another type",
        place=format_column(path),
        expected=target,
        found=source if source is not None else given,
        hint=hint,
    )
