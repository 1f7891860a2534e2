"""The hashes that put values into buckets. They are part of the format: a table's files are placed by them.

New tables have Iceberg's hash, `murmur3`: `bucket(n)` of a value is the 31 low bits of MurmurHash3 (x86, 32 bits, seed
0) mod n, of these bytes:

| type | bytes |
|---|---|
| integers, dates (in days) | 8, little-endian, in two's complement |
| times, timestamps | likewise, of the whole microseconds (floor), modulo 2^64 |
| decimals | the unscaled integer, big-endian in two's complement, as few as hold it |
| text, bytes, UUIDs | the bytes (UTF-8) |

Older tables have no mark in their definition, and use `hash(value) mod n` with this hash of 64 bits:

| type | hash |
|---|---|
| integers, dates (in days) | `mix` of the value as 64 bits in two's complement |
| times, timestamps | `mix` of the whole microseconds (floor), modulo 2^64 |
| decimals | the unscaled integer without final zeros: `mix` if 64 bits hold it, else XXH64 of 16 big-endian bytes |
| text, bytes, UUIDs | XXH64 with seed 0 of the bytes (UTF-8) |

`mix` is SplitMix64's step: x += 9E3779B97F4A7C15; x = (x ^ x >> 30) · BF58476D1CE4E5B9;
x = (x ^ x >> 27) · 94D049BB133111EB; x ^ x >> 31.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from underlay.prune import BoundArray
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, storage_of
from underlay.schema.partitioning.murmur3 import murmur3_bytes, murmur3_rows
from underlay.schema.types import Scalar, TypeKind

BUCKET_KINDS = frozenset(TypeKind) - {TypeKind.BOOLEAN, TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64}
"""What can be put into buckets: values that every engine finds equal exactly when their bits are."""

MURMUR3 = "murmur3"
HASHES = ("", MURMUR3)
"""The marks of the hashes in a definition; the old one has none."""

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_INT64 = np.iinfo(np.int64)


def buckets_of(values: BoundArray, type_: Scalar, count: int, hash_name: str) -> NDArray[np.int32]:
    """The bucket of each stored value (`stored_array`); nulls have an arbitrary one."""
    if hash_name == MURMUR3:
        return ((_murmur3(values, type_) & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)
    if isinstance(values, np.ndarray):
        hashes = _mix(_hashed_integers(values, type_))
    else:
        hashes = _hash_bytes(values, is_decimal=type_.kind is TypeKind.DECIMAL)
    return (hashes % np.uint64(count)).astype(np.int32)


def bucket_of_key(key: int | bytes, type_: Scalar, count: int, hash_name: str) -> int:
    """The bucket of one value: an integer in storage, or bytes; a wide decimal as its unscaled integer."""
    values: BoundArray
    if isinstance(key, int) and storage_of(type_) is Storage.BYTES:
        key = key.to_bytes(16, "big", signed=True)
    if isinstance(key, bytes):
        values = pa.array([key], pa.binary())
    else:
        values = np.array([key], dtype=np.uint64 if storage_of(type_) is Storage.UINT else np.int64)
    return int(buckets_of(values, type_, count, hash_name)[0])


def _hashed_integers(values: NDArray[np.int64] | NDArray[np.uint64], type_: Scalar) -> NDArray[np.uint64]:
    """The number to mix, which is the same for the same value in a wider type."""
    if type_.kind is TypeKind.DECIMAL:
        return _without_zeros(values.astype(np.int64)).view(np.uint64)
    return _in_microseconds(values, type_)


def _in_microseconds(values: NDArray[np.int64] | NDArray[np.uint64], type_: Scalar) -> NDArray[np.uint64]:
    """The integers as 64 bits, those of times as microseconds."""
    if type_.unit == "ns":
        values = values // 1_000
    elif type_.unit is not None:
        return values.view(np.uint64) * np.uint64(_MICROSECONDS[type_.unit])
    return np.ascontiguousarray(values).view(np.uint64)


def _murmur3(values: BoundArray, type_: Scalar) -> NDArray[np.uint32]:
    is_decimal = type_.kind is TypeKind.DECIMAL
    if isinstance(values, np.ndarray) and not is_decimal:
        return murmur3_rows(_in_microseconds(values, type_).astype("<u8").view(np.uint8).reshape(-1, 8))
    if is_decimal:
        if isinstance(values, np.ndarray):
            return _murmur3_decimals(values.astype(">i8").view(np.uint8).reshape(-1, 8))
        return _murmur3_decimals(_joined(values).reshape(-1, WIDE_DECIMAL_BYTES))
    return murmur3_bytes(values)


def _joined(values: AnyArray) -> NDArray[np.uint8]:
    """The bytes of values that all have the length of a wide decimal, or are null."""
    filled = values.fill_null(bytes(WIDE_DECIMAL_BYTES))
    return np.frombuffer(b"".join(filled.to_pylist()), np.uint8)


def _murmur3_decimals(octets: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The hashes of big-endian integers, each without the leading bytes that only repeat its sign."""
    sign = np.where(octets[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    is_needless = (octets[:, :-1] == sign) & ((octets[:, 1:] ^ sign) < 0x80)
    skipped = np.logical_and.accumulate(is_needless, axis=1).sum(axis=1)
    found = np.zeros(len(octets), np.uint32)
    for skip in set(skipped.tolist()):
        rows = np.flatnonzero(skipped == skip)
        found[rows] = murmur3_rows(octets[rows][:, skip:])
    return found


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _without_zeros(values: NDArray[np.int64]) -> NDArray[np.int64]:
    while (ends_in_zero := (values % 10 == 0) & (values != 0)).any():
        values = np.where(ends_in_zero, values // 10, values)
    return values


def _hash_bytes(values: AnyArray, *, is_decimal: bool) -> NDArray[np.uint64]:
    """Each distinct value is hashed once."""
    encoded = values.dictionary_encode()
    hash_one = _hash_decimal if is_decimal else xxhash.xxh64_intdigest
    hashes = np.array([hash_one(value) for value in encoded.dictionary.to_pylist()] or [0], dtype=np.uint64)
    places: NDArray[np.int32] = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return hashes[places]


def _hash_decimal(octets: bytes) -> int:
    value = int.from_bytes(octets, "big", signed=True)
    while value and value % 10 == 0:
        value //= 10
    if _INT64.min <= value <= _INT64.max:
        return int(_mix(np.array([value], dtype=np.int64).view(np.uint64))[0])
    return xxhash.xxh64_intdigest(value.to_bytes(16, "big", signed=True))
