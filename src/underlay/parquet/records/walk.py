"""Reads many Thrift structs of the same shape at once, one field at a time.

Footers of one writer differ in numbers and bounds and hardly ever in form. One of them, the lead, is scanned; its bytes
are then known to be *fixed* (field headers, list headers, ends of structs) or of *varying* length (integers, binaries).
Every other footer is walked along the same values, all of them in one step of numpy. A footer is like the lead if all
of its fixed bytes are the lead's and the walk ends where the footer does: then a scan of it would have given the same
tape, at other positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underlay.parquet.records.records import Flags, Integers
from underlay.parquet.thrift.scanner import read_list_header
from underlay.parquet.thrift.tape import Octets, decode_integers, ragged_ranges
from underlay.parquet.thrift.tree import ThriftKind, ThriftTree
from underlay.parquet.thrift.wire import INTEGER_BITS, decode_varints, varint_lengths

_MAX_LENGTH_BYTES = 4
"""Bytes of a binary's length that the walk reads; a footer with a longer one is not like any other."""

_ALWAYS_FITS_BYTES = {ThriftKind.I16: 2, ThriftKind.I32: 4, ThriftKind.I64: 9}
"""A varint of at most this many bytes cannot hold a number that is too large for its field."""

_AT_ONCE = 256
"""Fixed bytes that are compared in one step: small enough for the CPU cache."""

_STRUCTS_AT_ONCE = 32
"""The same for whole structs of some ten thousand bytes."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of varying length in the lead after its common beginning, in order."""

    begin: Integers
    end: Integers
    kind: NDArray[np.uint8]

    @property
    def is_binary(self) -> Flags:
        found: Flags = self.kind == ThriftKind.BINARY
        return found


@dataclass(frozen=True, slots=True)
class _Walk:
    """Where the structs, their common beginning and every value end.

    In the structs that are as long as the lead everywhere, values lie where they do in the lead. In the `uneven` ones
    the end at `rank`, which is at `known[rank]` in the lead, is at `variable[rank] + fixed[rank]`: bytes of varying
    length before it, and fixed ones.
    """

    known: Integers
    fixed: Integers
    starts: Integers
    uneven: Integers
    variable: Integers

    def moved(self, lead_positions: NDArray[np.integer]) -> Integers:
        """Positions of the lead in every struct: a fixed distance after the last value that ends before them."""
        at = lead_positions.astype(np.int64)
        found: Integers = at[:, None] + self.starts
        if self.uneven.size:
            rank = np.searchsorted(self.known, at, side="right") - 1
            found[:, self.uneven] = (
                self.variable.take(rank, axis=0) + (at - self.known[rank] + self.fixed[rank])[:, None]
            )
        return found

    def chosen(self, is_chosen: Flags) -> _Walk:
        """Some of the structs."""
        stay = is_chosen[self.uneven]
        uneven = (np.cumsum(is_chosen) - 1)[self.uneven[stay]]
        return _Walk(self.known, self.fixed, self.starts[is_chosen], uneven, self.variable[:, stay])


class StackedStructs:
    """Structs that are alike: values of theirs by the entries of the lead, as arrays [entries, structs]."""

    def __init__(self, lead: ThriftTree, data: bytes, walk: _Walk) -> None:
        self.lead = lead
        self.data = data
        self.octets: Octets = np.frombuffer(data, np.uint8)
        self.count = walk.starts.size
        self._walk = walk

    def ends(self, entries: Integers) -> Integers:
        """Positions in `data` after these values."""
        return self._walk.moved(self.lead.end[entries])

    def numbers(self, entries: Integers, kind: ThriftKind) -> Integers:
        """The integers, flags, lengths or counts of these values, which are of one kind."""
        if kind in INTEGER_BITS:
            return self.integers_at(self.lead.begin[entries], kind)
        if kind is ThriftKind.BINARY:
            begins = self._walk.moved(self.lead.begin[entries])
            return decode_varints(self.octets, begins.ravel()).view(np.int64).reshape(begins.shape)
        return np.broadcast_to(self.lead.number[entries][:, None], (len(entries), self.count))

    def integers_at(self, lead_positions: NDArray[np.integer], kind: ThriftKind) -> Integers:
        """The integers that begin at positions of the lead."""
        begins = self._walk.moved(lead_positions)
        return decode_integers(self.octets, kind, begins.ravel()).reshape(begins.shape)


def stack_alike(lead: ThriftTree, common_bytes: int, structs: Sequence[bytes]) -> tuple[StackedStructs, Flags]:
    """The `structs` that are like the lead, and a mask of which they are. The lead need not be one of them.

    All begin with the same `common_bytes` bytes, which hold whole values only. Raises Malformed when a number is too
    large for its field.
    """
    data = b"".join(structs)
    sizes = np.fromiter(map(len, structs), np.int64, len(structs))
    stops = np.cumsum(sizes)
    values = _varying(lead, common_bytes)
    walk, is_alike, sizes_read = _walk(lead, values, common_bytes, data, stops - sizes, stops)
    if not is_alike.all():
        sizes_read = sizes_read[:, is_alike[walk.uneven]]
        walk = walk.chosen(is_alike)
    _check_integers(lead, values, walk, sizes_read, data)
    return StackedStructs(lead, data, walk), is_alike


def _check_integers(lead: ThriftTree, values: _Values, walk: _Walk, sizes: NDArray[np.uint8], data: bytes) -> None:
    """Refuse numbers that are too large for their field; only long ones can be."""
    longest = np.maximum(_sizes_in(lead, values), sizes.max(axis=1, initial=0))
    for kind, limit in _ALWAYS_FITS_BYTES.items():
        begins = values.begin[(values.kind == kind) & (longest > limit)]
        if begins.size:
            decode_integers(np.frombuffer(data, np.uint8), kind, walk.moved(begins).ravel())


def _varying(lead: ThriftTree, common_bytes: int) -> _Values:
    kinds = np.array([place.kind for place in lead.places.table], np.uint8)[lead.place]
    is_after = lead.begin >= common_bytes
    entries = np.flatnonzero(np.isin(kinds, [*INTEGER_BITS, ThriftKind.BINARY]) & is_after)
    items = integers_in_lists(lead, np.flatnonzero(np.isin(kinds, (ThriftKind.LIST, ThriftKind.SET)) & is_after))
    begin = np.concatenate((lead.begin[entries].astype(np.int64), items[0]))
    end = np.concatenate((lead.end[entries].astype(np.int64), items[1]))
    kind = np.concatenate((kinds[entries], np.full(items[0].size, ThriftKind.STOP, np.uint8)))
    order = np.argsort(begin)
    return _Values(begin[order], end[order], kind[order])


def integers_in_lists(lead: ThriftTree, lists: Integers) -> tuple[Integers, Integers]:
    """Where items of lists of integers begin and end; lists of other plain values count as fixed bytes."""
    heads = [(read_list_header(lead.data, int(lead.begin[entry])), int(lead.end[entry])) for entry in lists.tolist()]
    spans = [(begin, end) for (_, kind, begin), end in heads if kind in INTEGER_BITS and end > begin]
    first = np.array([begin for begin, _ in spans], np.int64)
    size = np.array([end - begin for begin, end in spans], np.int64)
    octets = ragged_ranges(first, size)
    end = octets[lead.octets[octets] < 0x80] + 1
    begin = octets[np.concatenate(([True], lead.octets[octets[:-1]] < 0x80))] if octets.size else octets
    return begin, end


def _walk(
    lead: ThriftTree, values: _Values, common_bytes: int, data: bytes, starts: Integers, stops: Integers
) -> tuple[_Walk, Flags, NDArray[np.uint8]]:
    """Where everything ends in each struct, which structs are like the lead, and the sizes of integers in uneven ones.

    Positions of a struct that is not alike mean nothing; they are kept inside `data` only where it is read. A struct
    that is as long as the lead in every value needs no walk: its values lie where the lead's do.
    """
    octets: Octets = np.frombuffer(data, np.uint8)
    known = np.concatenate(([0, common_bytes], values.end))
    fixed = np.zeros(known.size, np.int64)
    np.cumsum(values.begin - known[1:-1], out=fixed[2:])
    is_alike = _as_long_everywhere(lead, values, common_bytes, octets, starts, stops)
    uneven = np.flatnonzero(~is_alike)
    walk = _Walk(known, fixed, starts, uneven, np.empty((known.size, uneven.size), np.int64))
    sizes = np.zeros((values.begin.size, 0), np.uint8)
    if uneven.size:
        begins, ends = starts[uneven].tolist(), stops[uneven].tolist()
        alone = np.concatenate([octets[begin:end] for begin, end in zip(begins, ends, strict=True)])
        until = np.cumsum(stops[uneven] - starts[uneven])
        moved_by = stops[uneven] - until
        walk.variable[0] = starts[uneven] - moved_by
        walk.variable[1] = walk.variable[0] + common_bytes
        sizes, is_alike[uneven] = _walk_uneven(lead, values, walk, alone, until)
        walk.variable[:] += moved_by
    return walk, is_alike, sizes


def _walk_uneven(
    lead: ThriftTree, values: _Values, walk: _Walk, octets: Octets, stops: Integers
) -> tuple[NDArray[np.uint8], Flags]:
    """Fill in `variable`, by positions among the uneven structs alone.

    Returns the bytes of each integer, and which of these structs are like the lead.
    """
    variable, fixed = walk.variable, walk.fixed
    # Most binaries are short. Those that are short in the lead are assumed short; if one is not, all are taken as long.
    is_long = values.is_binary & (lead.octets[values.begin] >= 0x80)
    is_alike = np.ones(stops.size, np.bool_)
    sizes = _step(values, is_long, octets, variable, fixed, is_alike)
    if (sizes[values.is_binary & ~is_long] - np.uint8(1) >= 0x80).any():
        is_alike[:] = True
        sizes = _step(values, values.is_binary, octets, variable, fixed, is_alike)
    _compare_fixed(lead, values, walk, octets, is_alike)
    is_alike &= variable[-1] + fixed[-1] + (lead.size_bytes - walk.known[-1]) == stops
    return sizes, is_alike


def _sizes_in(lead: ThriftTree, values: _Values) -> NDArray[np.uint8]:
    """What `_step` returns for the lead."""
    sizes = values.end - values.begin
    sizes[values.is_binary & (lead.octets[values.begin] >= 0x80)] = 0
    return sizes.astype(np.uint8)


def _as_long_everywhere(
    lead: ThriftTree, values: _Values, common_bytes: int, octets: Octets, starts: Integers, stops: Integers
) -> Flags:
    """Which structs differ from the lead in nothing but the bits of numbers and the bytes of binaries."""
    told = _telling_bits(lead, values)[common_bytes:]
    wanted = lead.octets[common_bytes : lead.size_bytes] & told
    is_even: Flags = stops - starts == lead.size_bytes
    if not is_even.any():
        return is_even
    windows = np.lib.stride_tricks.sliding_window_view(octets, told.size)
    candidates = np.flatnonzero(is_even)
    for begin in range(0, candidates.size, _STRUCTS_AT_ONCE):
        some = candidates[begin : begin + _STRUCTS_AT_ONCE]
        found = windows[starts[some] + common_bytes]
        found &= told
        is_even[some] = (found == wanted).all(axis=1)
    return is_even


def _telling_bits(lead: ThriftTree, values: _Values) -> Octets:
    """The bits of the lead that decide where values lie: all bits of fixed bytes and binaries' lengths, and the
    continuation bits of numbers.
    """
    bits = np.full(lead.size_bytes, 0xFF, np.uint8)
    lengths = varint_lengths(lead.octets)[values.begin]
    bits[ragged_ranges(values.begin, np.where(values.is_binary, 0, values.end - values.begin))] = 0x80
    inner = values.begin + lengths
    bits[ragged_ranges(inner, np.where(values.is_binary, values.end - inner, 0))] = 0
    return bits


def _step(
    values: _Values, is_long: Flags, octets: Octets, variable: Integers, fixed: Integers, is_alike: Flags
) -> NDArray[np.uint8]:
    """Fill in `variable`, value by value. Returns the bytes of each: of integers, and of binaries that are not long."""
    lengths, wholes = varint_lengths(octets), octets + np.uint8(1)
    sizes = np.zeros((values.begin.size, variable.shape[1]), np.uint8)
    steps = zip(fixed[2:].tolist(), values.is_binary.tolist(), is_long.tolist(), strict=True)
    for at, (before, is_binary, long) in enumerate(steps):
        here = variable[at + 1]
        if long:
            begin = here + before
            variable[at + 2] = here + _long_sizes(octets, lengths, begin, is_alike)
            continue
        table = wholes if is_binary else lengths
        size = table[before:].take(here, mode="clip", out=sizes[at])
        np.add(here, size, out=variable[at + 2])
    return sizes


def _long_sizes(octets: Octets, lengths: NDArray[np.uint8], begin: Integers, is_alike: Flags) -> Integers:
    """Bytes of binaries with their lengths; a length of more than four bytes rules its struct out."""
    sizes = lengths.take(begin, mode="clip").astype(np.int64)
    is_alike &= sizes <= _MAX_LENGTH_BYTES
    found = sizes.copy()
    for index in range(_MAX_LENGTH_BYTES):
        octet = octets.take(begin + index, mode="clip").astype(np.int64)
        found += np.where(index < sizes, (octet & 0x7F) << (7 * index), 0)
    return found


def _compare_fixed(lead: ThriftTree, values: _Values, walk: _Walk, octets: Octets, is_alike: Flags) -> None:
    """Rule out structs with another fixed byte than the lead: between values, and after the last."""
    ends = walk.known[1:]
    gaps = np.concatenate((values.begin, [lead.size_bytes])) - ends
    fixed = ragged_ranges(ends, gaps)
    rank = np.repeat(np.arange(1, gaps.size + 1), gaps)
    offset = fixed - walk.known[rank] + walk.fixed[rank]
    wanted = lead.octets[fixed][:, None]
    for begin in range(0, fixed.size, _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        places = walk.variable.take(rank[part], axis=0)
        places += offset[part][:, None]
        is_alike &= (octets.take(places, mode="clip") == wanted[part]).all(axis=0)
