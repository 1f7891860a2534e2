"""Hashes of rows: 128 bits that are equal for rows with equal values, and for no others in practice.

Values count as they are stored: minus zero is not zero, and NaNs with different bits differ.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from underlay.errors import Unsupported
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.cast.list_items import list_entries, map_entries
from underlay.schema.convert.arrow import is_list

Hashes = NDArray[np.uint64]
"""Two for each row: a table of two columns."""

_SEEDS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_NULL = np.array([0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)
_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_STEP = np.uint64(0xD6E8FEB86659FD93)


def row_hashes(rows: pa.RecordBatch) -> Hashes:
    """The hash of each row, by all columns in their order."""
    return _combined([_hashes(column) for column in rows.columns], rows.num_rows)


def _hashes(array: AnyArray) -> Hashes:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    found = _of_values(array)
    if array.null_count:
        found[np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)] = _NULL
    return found


def _of_values(array: AnyArray) -> Hashes:
    """The hashes; those of nulls mean nothing."""
    types, type_ = pa.types, array.type
    if isinstance(array, pa.MapArray):
        keys, values, lengths = map_entries(array)
        return _of_lists(_combined([_hashes(keys), _hashes(values)], len(keys)), lengths)
    if is_list(type_):
        items, lengths = list_entries(array)
        return _of_lists(_hashes(items), lengths)
    if isinstance(array, pa.StructArray):
        return _combined([_hashes(part) for part in array.flatten()], len(array))
    if types.is_boolean(type_):
        array = array.cast(pa.uint8())
    elif type_ in _BYTES:
        return _of_bytes(array)
    elif types.is_null(type_):
        return np.zeros((len(array), 2), np.uint64)
    return _of_fixed(array)


def _of_fixed(array: AnyArray) -> Hashes:
    """The hashes of values of fixed width."""
    try:
        width = array.type.bit_width // 8
    except ValueError:
        raise Unsupported("rows of this type are not compared", found=array.type) from None
    octets = np.frombuffer(array.buffers()[1] or b"", np.uint8)[: (array.offset + len(array)) * width]
    padded = np.zeros((len(array), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = octets[array.offset * width :].reshape(len(array), width)
    found = np.broadcast_to(_SEEDS, (len(array), 2)).copy()
    for word in padded.view(np.uint64).T:
        found = _mixed(found ^ word[:, None])
    return found


def _of_bytes(array: AnyArray) -> Hashes:
    """The hashes of text and bytes: each distinct value is hashed once."""
    encoded = array.dictionary_encode()
    values = encoded.dictionary.cast(pa.large_binary()).to_pylist()
    hashed = b"".join([xxhash.xxh3_128_digest(value) for value in values]) or bytes(16)
    places: NDArray[np.int32] = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return np.frombuffer(hashed, np.uint64).reshape(-1, 2)[places]


def _of_lists(items: Hashes, lengths: NDArray[np.int64]) -> Hashes:
    """The hashes of lists with these items, one after another."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    at = np.arange(len(items)) - np.repeat(begins, lengths)
    placed = _mixed(items + at.astype(np.uint64)[:, None] * _STEP)
    sums = np.concatenate([np.zeros((1, 2), np.uint64), np.cumsum(placed, axis=0, dtype=np.uint64)])
    return _mixed(sums[ends] - sums[begins] + lengths.astype(np.uint64)[:, None] + _SEEDS)


def _combined(parts: list[Hashes], count: int) -> Hashes:
    found = np.broadcast_to(_SEEDS, (count, 2)).copy()
    for part in parts:
        found = _mixed(found * _STEP + part)
    return found


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
