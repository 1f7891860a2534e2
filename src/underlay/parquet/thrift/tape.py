"""Turns the tape into arrays: number, end and next entry of every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed
from underlay.parquet.thrift.scanner import STOP_ENTRY, Scanner
from underlay.parquet.thrift.wire import CONTAINERS, FIXED_BYTES, INTEGER_BITS, ThriftKind, decode_varints, unzigzag_all

Octets = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.uint32]

BLOCK = 1 << 18
"""How many entries are decoded at a time: the temporary arrays stay small beside the input."""


_VARINTS = (*INTEGER_BITS, ThriftKind.BINARY)
_BINARY, _I8 = np.uint8(ThriftKind.BINARY), np.uint8(ThriftKind.I8)
"""As numpy compares them at once; members of an enumeration it would convert first."""


def _by_kind(values: Mapping[ThriftKind, int], dtype: npt.DTypeLike, otherwise: int = 0) -> npt.NDArray[Any]:
    """A lookup table by kind."""  # Any: of `dtype`
    return np.array([values.get(kind, otherwise) for kind in ThriftKind], dtype)


_IS_CONTAINER: npt.NDArray[np.bool_] = _by_kind(dict.fromkeys((*CONTAINERS, ThriftKind.MAP), 1), np.bool_)
_IS_VARINT: npt.NDArray[np.bool_] = _by_kind(dict.fromkeys(_VARINTS, 1), np.bool_)
_IS_LIST: npt.NDArray[np.bool_] = _by_kind({ThriftKind.LIST: 1, ThriftKind.SET: 1}, np.bool_)
_FIXED: Positions = _by_kind(FIXED_BYTES, np.uint32)
_CONSTANT: npt.NDArray[np.int64] = _by_kind({ThriftKind.TRUE: 1}, np.int64)
_VALUE_BITS: npt.NDArray[np.int64] = _by_kind({kind: bits - 1 for kind, bits in INTEGER_BITS.items()}, np.int64, 63)


@dataclass(frozen=True, slots=True)
class Measures:
    """The arrays that `ThriftTree` describes."""

    place: npt.NDArray[np.uint16]
    begin: Positions
    end: Positions
    next: Positions
    number: npt.NDArray[np.int64]


def measure(octets: Octets, scanner: Scanner) -> Measures:
    """Decode every number of the tape. Refuses varints over 64 bits and numbers that do not fit their kind.

    A footer of a few columns takes as many numpy calls as one of thousands, so values of all kinds are decoded together
    to keep calls few.
    """
    words = np.frombuffer(scanner.take_tape(), np.uint32).reshape(-1, 2)
    is_stop = words[:, 1] == STOP_ENTRY >> 32
    is_entry = ~is_stop
    place = words[:, 1][is_entry].astype(np.uint16)
    begin, stops = words[:, 0][is_entry], words[:, 0][is_stop]
    del words, is_entry
    kinds = np.frombuffer(bytes(scanner.places.kinds), np.uint8)[place]
    end = begin + _FIXED[kinds]
    following = np.arange(1, begin.size + 1, dtype=np.uint32)
    _close(is_stop, _IS_CONTAINER[kinds], stops, end, following)
    del is_stop, stops
    number = _CONSTANT[kinds]
    ends: Positions = np.frombuffer(scanner.ends, np.uint32)
    for block in range(0, begin.size, BLOCK):
        here = slice(block, block + BLOCK)
        _decode(octets, kinds[here], begin[here], ends, number[here], end[here])
    return Measures(place, begin, end, following, number)


def _close(
    is_stop: npt.NDArray[np.bool_],
    is_container: npt.NDArray[np.bool_],
    stops: Positions,
    end: Positions,
    following: Positions,
) -> None:
    """Fill in where each container ends, and the entry after it.

    Containers at one depth end in the order in which they begin, so the n-th to begin is the n-th to end.
    """
    change = np.full(is_stop.size, -1, np.int8)
    change[~is_stop] = is_container
    depth = np.cumsum(change, dtype=np.int8)
    del change
    closing = _stable_order(depth[is_stop])
    entries_before = np.flatnonzero(is_stop).astype(np.uint32)[closing]
    entries_before -= closing
    opened = np.flatnonzero(is_container).astype(np.uint32)
    opened = opened[_stable_order(depth[~is_stop][opened])]
    following[opened] = entries_before
    end[opened] = stops[closing]


def _stable_order(depths: npt.NDArray[np.int8]) -> Positions:
    """The positions of depths in ascending order, in 32 bits: hostile input may open a container with every byte."""
    return np.argsort(depths, kind="stable").astype(np.uint32)


def _decode(
    octets: Octets,
    kinds: npt.NDArray[np.uint8],
    begin: Positions,
    ends: Positions,
    number: npt.NDArray[np.int64],
    end: Positions,
) -> None:
    """Fill in numbers and ends of some entries; the ends of lists and maps are known already."""
    varints = np.flatnonzero(_IS_VARINT[kinds])
    here, kind = begin[varints], kinds[varints]
    stored = decode_varints(octets, here)
    values = unzigzag_all(stored)
    _check_fit(values, kind, here)
    is_binary = kind == _BINARY
    np.copyto(values, stored.view(np.int64), where=is_binary)
    number[varints] = values
    end[varints] = ends[here] + (stored * is_binary).astype(np.uint32)
    lists = np.flatnonzero(_IS_LIST[kinds])
    number[lists] = _counts(octets, begin[lists])
    octet = np.flatnonzero(kinds == _I8)
    if octet.size:
        number[octet] = octets[begin[octet]].view(np.int8)


def _check_fit(values: npt.NDArray[np.int64], kinds: npt.NDArray[np.uint8], begin: Positions) -> None:
    """Refuse integers that do not fit their kind: above the bits of the kind, all are the sign's."""
    wrong = values >> _VALUE_BITS[kinds] != values >> 63
    wrong &= kinds != _BINARY
    if wrong.any():
        index = int(wrong.argmax())
        name = ThriftKind(int(kinds[index])).name
        raise Malformed(f"a number does not fit {name}", place=f"byte {int(begin[index])}", found=int(values[index]))


def decode_integers(octets: Octets, kind: ThriftKind, begin: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """The signed numbers at many positions, refused unless they fit their kind."""
    values = unzigzag_all(decode_varints(octets, begin))
    if kind is not ThriftKind.I64 and values.size:
        bound = 1 << (INTEGER_BITS[kind] - 1)
        wrong = (values < -bound) | (values >= bound)
        if wrong.any():
            index = int(wrong.argmax())
            raise Malformed(
                f"a number does not fit {kind.name}", place=f"byte {int(begin[index])}", found=int(values[index])
            )
    return values


def _counts(octets: Octets, begin: Positions) -> npt.NDArray[np.int64]:
    counts = (octets[begin] >> 4).astype(np.int64)
    long = np.flatnonzero(counts == 15)
    if long.size:
        counts[long] = decode_varints(octets, begin[long] + np.uint32(1)).view(np.int64)
    return counts


def ragged_ranges(begin: npt.NDArray[np.integer], size: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """The positions of many ranges, one range after the other."""
    sizes = size.astype(np.int64)
    before = np.cumsum(sizes) - sizes
    return np.repeat(begin.astype(np.int64) - before, sizes) + np.arange(int(sizes.sum()))
