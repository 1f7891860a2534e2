"""Big-endian two's-complement integers of mixed lengths, decoded a whole array at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BinaryArray: TypeAlias = "pa.Array[Any]"  # Any: binary, large_binary or fixed-size binary scalars

MAX_BYTES = 32
"""The longest value decoded: 256 bits hold every decimal of 76 digits."""

_LIMB_BYTES = 8


def decode_integers(values: BinaryArray) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """The Python integers of a binary array, and which of its entries hold one of 1 to 32 bytes."""
    octets, begins, lengths = _layout(values)
    present = values.is_valid().to_numpy(zero_copy_only=False) & (lengths >= 1) & (lengths <= MAX_BYTES)
    longest = int(lengths[present].max(initial=1))
    limb_count = -(-longest // _LIMB_BYTES)
    limbs = _sign_extended(octets, begins, np.where(present, lengths, 0), limb_count * _LIMB_BYTES)
    return _join(limbs.view(">u8").astype(np.uint64).reshape(len(values), limb_count)), present


def _layout(values: BinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All bytes of the array end to end, then where each entry begins and how long it is; nulls are empty."""
    filled = values.fill_null(b"") if values.null_count else values
    large = filled.cast(pa.large_binary())
    _, offset_buffer, octet_buffer = large.buffers()
    offsets = np.zeros(1, dtype=np.int64)
    if offset_buffer is not None and len(large):
        offsets = np.frombuffer(memoryview(offset_buffer), dtype=np.int64)[large.offset : large.offset + len(large) + 1]
    octets = np.zeros(0, dtype=np.uint8)
    if octet_buffer is not None and octet_buffer.size:
        octets = np.frombuffer(memoryview(octet_buffer), dtype=np.uint8)
    return octets, offsets[:-1], np.diff(offsets)


def _sign_extended(
    octets: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64], width: int
) -> NDArray[np.uint8]:
    """One row of `width` bytes per entry, filled on the left with its sign; an empty entry is zero."""
    if not len(octets):
        return np.zeros((len(lengths), width), dtype=np.uint8)
    last_octet = len(octets) - 1
    position = np.arange(width) - (width - lengths[:, None])
    picked = octets[np.clip(begins[:, None] + np.maximum(position, 0), 0, last_octet)]
    is_negative = (octets[np.clip(begins, 0, last_octet)] >= 0x80) & (lengths > 0)
    sign = np.where(is_negative, 0xFF, 0)
    return np.where(position >= 0, picked, sign[:, None]).astype(np.uint8)


def _join(limbs: NDArray[np.uint64]) -> NDArray[np.object_]:
    """The limbs of each row, most significant first, as one signed integer."""
    total: NDArray[np.object_] = np.ascontiguousarray(limbs[:, 0]).view(np.int64).astype(np.object_)
    for column in range(1, limbs.shape[1]):
        total = (total << 64) | limbs[:, column].astype(np.object_)
    return total
