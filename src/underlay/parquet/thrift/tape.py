"""From the tape to arrays: the number, the end and the next entry of every value, all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed
from underlay.parquet.thrift.scanner import STOP_ENTRY, Scanner
from underlay.parquet.thrift.wire import CONTAINERS, FIXED_BYTES, INTEGER_BITS, ThriftKind, decode_varints, unzigzag_all

Octets = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.uint32]

BLOCK = 1 << 18
"""How many entries are decoded at a time: the temporary arrays stay small beside the input."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The arrays that `Tree` describes."""

    place: npt.NDArray[np.uint16]
    begin: Positions
    end: Positions
    next: Positions
    number: npt.NDArray[np.int64]


def measure(octets: Octets, scanner: Scanner) -> Measures:
    """Decode every number of the tape. Refuses varints over 64 bits and numbers that do not fit their kind."""
    words = np.frombuffer(scanner.take_tape(), np.uint32).reshape(-1, 2)
    is_stop = words[:, 1] == STOP_ENTRY >> 32
    place = words[:, 1][~is_stop].astype(np.uint16)
    begin, stops = words[:, 0][~is_stop], words[:, 0][is_stop]
    del words
    kind_of_place = np.array([place.kind for place in scanner.places.table], np.uint8)
    kinds = kind_of_place[place]
    end, following = begin.copy(), np.arange(1, begin.size + 1, dtype=np.uint32)
    _close(is_stop, np.isin(kind_of_place, [*CONTAINERS, ThriftKind.MAP])[place], stops, end, following)
    del is_stop, stops
    number = np.zeros(begin.size, np.int64)
    ends: Positions = np.frombuffer(scanner.ends, np.uint32)
    for block in range(0, begin.size, BLOCK):
        here = kinds[block : block + BLOCK]
        for kind in set(np.flatnonzero(np.bincount(here)).tolist()) - {ThriftKind.STRUCT}:
            nodes = np.flatnonzero(here == kind) + block
            number[nodes], measured = _measure_kind(octets, ThriftKind(kind), begin[nodes], ends)
            if measured is not None:
                end[nodes] = measured
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
    stop_depth = depth[is_stop] + np.int8(1)
    entry_depth = depth[~is_stop] * is_container
    del change, depth
    entries_before = np.flatnonzero(is_stop).astype(np.uint32)
    entries_before -= np.arange(entries_before.size, dtype=np.uint32)
    for level in range(1, int(entry_depth.max()) + 1):
        begins_here, stops_here = entry_depth == level, stop_depth == level
        end[begins_here] = stops[stops_here]
        following[begins_here] = entries_before[stops_here]


def _measure_kind(
    octets: Octets, kind: ThriftKind, begin: Positions, ends: Positions
) -> tuple[npt.NDArray[np.int64] | int, Positions | None]:
    """Numbers and ends of values of one kind; the ends of lists and maps are not known here."""
    if kind in INTEGER_BITS:
        return decode_integers(octets, kind, begin), ends[begin]
    if kind is ThriftKind.BINARY:
        lengths = decode_varints(octets, begin)
        return lengths.view(np.int64), ends[begin] + lengths.astype(np.uint32)
    if kind in (ThriftKind.LIST, ThriftKind.SET):
        return _counts(octets, begin), None
    if kind is ThriftKind.MAP:
        return 0, None
    if kind is ThriftKind.I8:
        return octets[begin].view(np.int8).astype(np.int64), begin + np.uint32(1)
    return int(kind is ThriftKind.TRUE), begin + np.uint32(FIXED_BYTES.get(kind, 0))


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
