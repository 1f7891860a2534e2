"""MurmurHash3 (x86, 32 bits, seed 0) of many values at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.schema.arrow_aliases import AnyArray

Hashes = NDArray[np.uint32]
_MANY_BYTES = 1 << 22
"""Bytes of values of one length that are hashed together."""


def murmur3_bytes(values: AnyArray) -> Hashes:
    """The hash of each value of an Arrow array of bytes; null hashes like empty bytes."""
    plain = values.cast(pa.large_binary())
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain) + 1]
    data = np.frombuffer(plain.buffers()[2] or b"", np.uint8)
    lengths = np.where(plain.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    found = np.zeros(len(plain), np.uint32)
    order = np.argsort(lengths, kind="stable")
    sizes, begins = np.unique(lengths[order], return_index=True)
    for size, (begin, end) in zip(sizes.tolist(), pairwise([*begins.tolist(), len(order)]), strict=True):
        step = max(1, _MANY_BYTES // max(1, size))
        for at in range(begin, end, step):
            rows = order[at : min(at + step, end)]
            found[rows] = murmur3_rows(data[offsets[rows][:, None] + np.arange(size)])
    return found


def murmur3_rows(octets: NDArray[np.uint8]) -> Hashes:
    """The hash of each row of bytes."""
    count, length = octets.shape
    whole = length // 4 * 4
    words = np.ascontiguousarray(octets[:, :whole]).view("<u4").astype(np.uint32)
    found = np.zeros(count, np.uint32)
    for at in range(whole // 4):
        found ^= _scrambled(words[:, at])
        found = _rotated(found, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    if length > whole:
        rest = np.zeros((count, 4), np.uint8)
        rest[:, : length - whole] = octets[:, whole:]
        found ^= _scrambled(rest.view("<u4")[:, 0].astype(np.uint32))
    found ^= np.uint32(length)
    found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return found ^ (found >> np.uint32(16))


def _scrambled(words: Hashes) -> Hashes:
    return _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
