"""Parquet's split-block bloom filters: hash, build, and probe one filter or many at once.

A filter is a row of blocks of eight 32-bit little-endian words. The upper half of a value's hash (xxHash64, seed 0, of
its PLAIN bytes without a length) chooses the block; the lower half, multiplied with a salt for each word, sets one bit
in each of the eight. In the file, a Thrift header with the bitset's length comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from underlay.errors import InvalidRequest, Malformed, Truncated
from underlay.parquet.thrift.encode import I32, Struct, encode
from underlay.parquet.thrift.tree import ThriftKind, parse

BLOCK_BYTES = 32
MIN_BYTES = BLOCK_BYTES
MAX_BYTES = 4 * 1024 * 1024
"""The largest filter that `build` chooses by itself."""

Hashes = npt.NDArray[np.uint64]

_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in _PRIMES)


class BloomHeader(NamedTuple):
    """Sizes of a stored filter: its header and the bitset that follows."""

    header_length: int
    bitset_length: int


def hash_values(values: npt.NDArray[np.generic] | Sequence[bytes]) -> Hashes:
    """The hash of each value.

    An array is hashed by the bytes of its elements, which must be little-endian as PLAIN stores them; a two-dimensional
    one of bytes holds a value in each row. Bytes are hashed whole.
    """
    if not isinstance(values, np.ndarray):
        return np.fromiter((xxhash.xxh64_intdigest(value) for value in values), np.uint64, len(values))
    rows = _rows(values)
    if rows.shape[1] < 32:
        return _hash_rows(rows)
    return np.fromiter((xxhash.xxh64_intdigest(row.tobytes()) for row in rows), np.uint64, len(rows))


def _rows(values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """The bytes of each value as a row."""
    if values.dtype.kind in "OUSMm" or values.dtype.byteorder == ">":
        raise InvalidRequest("values of this kind have no PLAIN bytes", found=str(values.dtype))
    if values.ndim == 2 and values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.ndim != 1:
        raise InvalidRequest("values are a list, or rows of bytes", found=f"{values.ndim} dimensions")
    return np.ascontiguousarray(values).view(np.uint8).reshape(values.size, values.dtype.itemsize)


def _rotate(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _hash_rows(rows: npt.NDArray[np.uint8]) -> Hashes:
    """xxHash64 with seed 0 of rows shorter than 32 bytes, in arithmetic modulo 2**64."""
    count, width = rows.shape
    hashes = np.full(count, _P5 + np.uint64(width), np.uint64)
    at = 0
    while at + 8 <= width:
        lane = np.ascontiguousarray(rows[:, at : at + 8]).view("<u8")[:, 0]
        hashes = _rotate(hashes ^ (_rotate(lane * _P2, 31) * _P1), 27) * _P1 + _P4
        at += 8
    if at + 4 <= width:
        half = np.ascontiguousarray(rows[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64)
        hashes = _rotate(hashes ^ (half * _P1), 23) * _P2 + _P3
        at += 4
    for column in range(at, width):
        hashes = _rotate(hashes ^ (rows[:, column].astype(np.uint64) * _P5), 11) * _P1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def size_for(distinct_count: int, fpp: float = 0.01) -> int:
    """The bytes of a filter for N values and a chance `fpp` of a false positive: a power of two, 32 to 4 Mi."""
    if not 0 < fpp < 1:
        raise InvalidRequest("the chance of a false positive is not between 0 and 1", found=fpp)
    bits = -8 * distinct_count / math.log1p(-(fpp ** (1 / 8)))
    wanted = min(MAX_BYTES, max(MIN_BYTES, math.ceil(bits / 8)))
    return 1 << (wanted - 1).bit_length()


def build(hashes: Hashes, *, fpp: float = 0.01, size_bytes: int | None = None) -> bytes:
    """The bitset of a filter that holds all hashes. Without `size_bytes` it is sized for the distinct ones."""
    distinct = np.unique(hashes)
    size = size_for(distinct.size, fpp) if size_bytes is None else size_bytes
    if size < BLOCK_BYTES or size % BLOCK_BYTES:
        raise InvalidRequest("a filter's size is not a multiple of its blocks", expected=BLOCK_BYTES, found=size)
    bits = np.zeros(size * 8, np.bool_)
    begin = _blocks(distinct, np.uint64(size // BLOCK_BYTES)).astype(np.int64) * (BLOCK_BYTES * 8)
    bits[begin[:, None] + np.arange(8) * 32 + _bit_numbers(distinct)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def contains(bitset: bytes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """For each hash, whether the filter may hold it. False is certain."""
    if len(bitset) < BLOCK_BYTES or len(bitset) % BLOCK_BYTES:
        raise Malformed("a filter's size is not a multiple of its blocks", expected=BLOCK_BYTES, found=len(bitset))
    blocks = np.frombuffer(bitset, "<u4").reshape(-1, 8)
    words = blocks[_blocks(hashes, np.uint64(len(blocks))).astype(np.int64)]
    return _all_set(words, _bit_numbers(hashes))


def contains_all(
    words: npt.NDArray[np.uint32],
    begin_word: npt.NDArray[np.integer],
    block_count: npt.NDArray[np.integer],
    hash_value: int,
) -> npt.NDArray[np.bool_]:
    """For each of many filters in one buffer, whether it may hold the hash.

    A filter begins at `begin_word`, -1 if there is none: then the answer is true. One that reaches past the buffer is
    refused.
    """
    present = (np.asarray(begin_word) >= 0) & (np.asarray(block_count) > 0)
    answers = np.ones(present.size, np.bool_)
    begin, count = begin_word[present].astype(np.int64), block_count[present].astype(np.int64)
    if (begin + 8 * count > words.size).any():
        raise Truncated("a bloom filter reaches past the end of its buffer", expected=f"at most {words.size} words")
    hashes = np.array([hash_value], np.uint64)
    at = begin + 8 * _blocks(hashes, count.astype(np.uint64)).astype(np.int64)
    answers[present] = _all_set(words[at[:, None] + np.arange(8)], _bit_numbers(hashes))
    return answers


def _blocks(hashes: Hashes, block_count: np.uint64 | Hashes) -> Hashes:
    """The number of the block that belongs to each hash."""
    return ((hashes >> np.uint64(32)) * block_count) >> np.uint64(32)


def _bit_numbers(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """The bit that belongs to each hash, in each of the eight words of its block."""
    return ((hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)[:, None] * _SALTS) >> np.uint32(27)


def _all_set(words: npt.NDArray[np.uint32], bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """For each row of eight words, whether the bit in every word is set."""
    is_set: npt.NDArray[np.bool_] = ((words >> bits) & np.uint32(1)) != 0
    return np.asarray(is_set.all(axis=1))


def parse_header(data: bytes) -> BloomHeader | None:
    """The sizes of the stored filter at the start of `data`, or None for a filter of an unknown kind.

    Known are uncompressed split-block filters of xxHash values, of at least 32 bytes and whole blocks.
    """
    tree = parse(data, trailing=True)
    fields = tree.fields(0)
    size = fields.get(1)
    if size is None or tree.kind(size) is not ThriftKind.I32:
        raise Malformed("a bloom filter's header has no length", place="bloom filter header")
    for union in (2, 3, 4):
        entry = fields.get(union)
        if entry is None or [tree.field_id(member) for member in tree.children(entry)] != [1]:
            return None
    length = tree.integer(size)
    if length < BLOCK_BYTES or length % BLOCK_BYTES:
        return None
    return BloomHeader(tree.size_bytes, length)


def encode_header(bitset_length: int) -> bytes:
    """The header to store before a bitset of this length."""
    known = Struct({1: Struct({})})
    return encode(Struct({1: I32(bitset_length), 2: known, 3: known, 4: known}))
