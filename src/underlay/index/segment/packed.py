"""Packed arrays of an entry as numpy and Arrow arrays without a copy, and back; and bounds cut to a bounded length.

Numbers are 8 bytes each. Values of bytes are N + 1 offsets of 4 bytes, the first 0, then the values one after another.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import Malformed, Truncated
from underlay.schema.bound_storage import Storage

MAX_BOUND_BYTES = 64
"""Longer bounds are cut."""

BytesArray: TypeAlias = "pa.Array[Any]"  # Any: bytes, which the stubs have by several names
BoundColumn: TypeAlias = "NDArray[Any] | BytesArray"  # Any: int64, uint64 or float64, by storage

_LAST_CHARACTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"
_MAX_CONTINUATION_BYTES = 3
_OFFSET_BYTES = 4


def shorten_low(value: bytes) -> bytes:
    """A lower bound of `value` of at most 64 bytes: itself or a prefix, which ends no UTF-8 character half-way."""
    return value if len(value) <= MAX_BOUND_BYTES else value[: _boundary(value)]


def shorten_high(value: bytes, is_text: bool) -> bytes | None:
    """An upper bound of `value` of at most 64 bytes: itself, or a prefix rounded up; None when none exists.

    Text stays text; if it is not UTF-8 it is rounded up as bytes are.
    """
    if len(value) <= MAX_BOUND_BYTES:
        return value
    if is_text:
        try:
            return _text_above(value[: _boundary(value)].decode())
        except UnicodeDecodeError:
            pass
    kept = value[:MAX_BOUND_BYTES].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _boundary(value: bytes) -> int:
    """The end of the last character that fits."""
    end = MAX_BOUND_BYTES
    while end > MAX_BOUND_BYTES - _MAX_CONTINUATION_BYTES and value[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _text_above(prefix: str) -> bytes | None:
    """The least text of at most 64 bytes found by incrementing the last character that allows it; the rest is
    dropped."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    while kept:
        last = kept[-1]
        above = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1)
        found = (kept[:-1] + above).encode()
        if len(found) <= MAX_BOUND_BYTES:
            return found
        kept = kept[:-1].rstrip(_LAST_CHARACTER)  # the next character takes a byte more than fits
    return None


def pack_bytes(values: Sequence[bytes]) -> bytes:
    """Values as offsets and bytes."""
    offsets = struct.pack(f"<{len(values) + 1}i", 0, *accumulate(map(len, values)))
    return offsets + b"".join(values)


def byte_offsets(data: bytes, count: int) -> NDArray[np.int32]:
    """The offsets of packed values, checked: ascending from 0, and the last at the end of `data`."""
    head = (count + 1) * _OFFSET_BYTES
    if len(data) < head:
        raise Truncated("packed values are shorter than their offsets", expected=f"{head} bytes", found=len(data))
    offsets: NDArray[np.int32] = np.frombuffer(data, "<i4", count + 1)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or int(offsets[-1]) != len(data) - head:
        raise Malformed("offsets of packed values do not ascend from 0 to their end")
    return offsets


def bytes_array(offsets: NDArray[np.int32], values: bytes | memoryview) -> BytesArray:
    """The Arrow array of these offsets and values, over their memory."""
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(values)]
    array: BytesArray = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return array


def binary_array(data: bytes, count: int) -> BytesArray:
    """Packed values as an Arrow array over the same memory."""
    offsets = byte_offsets(data, count)
    return bytes_array(offsets, memoryview(data)[(count + 1) * _OFFSET_BYTES :])


def empty_bounds(storage: Storage, count: int) -> BoundColumn | None:
    """What is stored where there are no bounds."""
    match storage:
        case Storage.NONE:
            return None
        case Storage.BYTES:
            return bytes_array(np.zeros(count + 1, dtype=np.int32), b"")
    return np.zeros(count, dtype=storage.value)


def bound_column(data: bytes, storage: Storage, count: int) -> BoundColumn | None:
    """Packed bounds as an array; None for a type without bounds. Raises Truncated or Malformed."""
    match storage:
        case Storage.NONE:
            return None
        case Storage.BYTES:
            return binary_array(data, count)
    if len(data) != count * 8:
        raise Truncated("packed bounds have another length", expected=f"{count * 8} bytes", found=len(data))
    return np.frombuffer(data, storage.value)
