"""Arrow values in the form that bounds and partition values are stored in (`Storage`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.prune import BoundArray
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, storage_of
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.types import Scalar, TypeKind


def one_array(array: AnyArray | AnyChunks) -> AnyArray:
    """The chunks as one array."""
    if isinstance(array, pa.ChunkedArray):
        return array.combine_chunks() if array.num_chunks else pa.nulls(0, array.type)
    return array


def stored_array(array: AnyArray | AnyChunks, type_: Scalar) -> BoundArray:
    """The values of a column of this type as bounds are stored: numpy numbers, or a pyarrow binary array.

    Nulls are null in a binary array and zero among numbers. Types without a storage have no values here.
    """
    plain = one_array(array)
    match storage_of(type_):
        case Storage.BYTES if type_.kind is TypeKind.DECIMAL:
            values: BoundArray = _wide_decimals(plain)
            return values
        case Storage.BYTES:
            octets: BoundArray = (plain.storage if isinstance(plain, pa.ExtensionArray) else plain).cast(pa.binary())
            return octets
        case Storage.INT if type_.kind is TypeKind.DECIMAL:
            return _decimal_words(plain)[:, 0].copy()
        case Storage.NONE:
            raise TypeError(f"{type_} is not stored")
        case storage:
            return _numbers(plain, np.dtype(storage.value))


def from_stored(values: NDArray[Any], type_: Scalar, is_null: NDArray[np.bool_] | None) -> AnyArray:
    """Integers and floats in storage as an Arrow array; not for bytes and decimals."""
    arrow = to_arrow_type(type_)
    if type_.kind is TypeKind.BOOLEAN or pa.types.is_integer(arrow) or pa.types.is_floating(arrow):
        return pa.array(values.astype(arrow.to_pandas_dtype()), mask=is_null)
    integer = np.int32 if arrow.bit_width == 32 else np.int64
    return pa.array(values.astype(integer), mask=is_null).cast(arrow)


def null_mask(array: AnyArray) -> NDArray[np.bool_] | None:
    """Where the array is null; None when it has no nulls."""
    found: NDArray[np.bool_] | None = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return found


def _numbers(array: AnyArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        width = 8 if pa.types.is_boolean(array.type) else array.type.bit_width
        array = array.cast({8: pa.int8(), 32: pa.int32(), 64: pa.int64()}[width])
    filled = array.fill_null(0) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return values


def _decimal_words(array: AnyArray) -> NDArray[np.int64]:
    """Two little-endian words for each decimal, the low one first; zero for nulls."""
    filled = array.fill_null(0) if array.null_count else array
    buffer = filled.buffers()[1]
    if buffer is None or not len(filled):
        return np.zeros((len(filled), 2), dtype=np.int64)
    words = np.frombuffer(buffer, dtype="<i8", count=2 * (filled.offset + len(filled)))
    return words.reshape(-1, 2)[filled.offset :]


def _wide_decimals(array: AnyArray) -> AnyArray:
    octets = _decimal_words(array).view(np.uint8).reshape(-1, WIDE_DECIMAL_BYTES)[:, ::-1]
    packed = pa.py_buffer(octets.tobytes())
    fixed = pa.Array.from_buffers(pa.binary(WIDE_DECIMAL_BYTES), len(array), [None, packed])
    plain: AnyArray = fixed.cast(pa.binary())
    return pc.if_else(array.is_valid(), plain, None) if array.null_count else plain
