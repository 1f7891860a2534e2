"""Many Thrift structs of the same form, read as fast as one: all at once, value by value.

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

from underlay.parquet.measure import Octets, decode_integers, ragged_ranges
from underlay.parquet.records import Flags, Integers
from underlay.parquet.scan import read_list_header
from underlay.parquet.thrift import Kind, Tree
from underlay.parquet.wire import INTEGER_BITS, decode_varints, varint_ends

_MAX_LENGTH_BYTES = 4
"""Bytes of a binary's length that the walk reads; a footer with a longer one is not like any other."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of varying length in the lead after its common beginning, in order."""

    begin: Integers
    end: Integers
    is_binary: Flags


class StackedTree(Tree):
    """The trees of structs that are alike, one after the other; `entries_each` is the length of one tape.

    It has as many roots as structs: look values up with `Records`, or at an entry of the lead plus a multiple of
    `entries_each`.
    """

    def __init__(self, lead: Tree, data: bytes, begin: Integers, end: Integers, common_bytes: int) -> None:
        """`begin` and `end` are positions [structs, entries] in `data`."""
        count, self.entries_each = begin.shape
        self.data = data
        self.places = lead.places
        self.octets: Octets = np.frombuffer(data, np.uint8)
        self.place = np.tile(lead.place, count)
        self.begin = begin.astype(np.uint32).ravel()
        self.end = end.astype(np.uint32).ravel()
        offsets = np.arange(count, dtype=np.uint32)[:, None] * np.uint32(self.entries_each)
        self.next = (lead.next[None, :] + offsets).ravel()
        number = np.tile(lead.number, (count, 1))
        kinds = _kinds(lead)
        for kind in (*INTEGER_BITS, Kind.BINARY):
            here = np.flatnonzero((kinds == kind) & (lead.begin >= common_bytes))
            places = begin[:, here].ravel()
            if kind is Kind.BINARY:
                found = decode_varints(self.octets, places).view(np.int64)
            else:
                found = decode_integers(self.octets, kind, places)
            number[:, here] = found.reshape(count, -1)
        self.number = number.ravel()


def stack_alike(lead: Tree, common_bytes: int, others: Sequence[bytes]) -> tuple[StackedTree, Flags]:
    """The lead and those of `others` that are like it as one tree, and which those are.

    All begin with the same `common_bytes` bytes, which hold whole values only. Raises Malformed when a number is too
    large for its field.
    """
    data = b"".join((lead.data[: lead.size_bytes], *others))
    sizes = np.array([lead.size_bytes, *map(len, others)], np.int64)
    starts = np.cumsum(sizes) - sizes
    values = _varying(lead, common_bytes)
    positions, is_alike = _walk(lead, values, common_bytes, data, starts, starts + sizes)
    positions = positions[:, is_alike]
    known_ends = np.concatenate(([0, common_bytes], values.end))
    begin = _moved(lead.begin, known_ends, positions)
    end = _moved(lead.end, known_ends, positions)
    return StackedTree(lead, data, begin, end, common_bytes), is_alike[1:]


def _kinds(tree: Tree) -> NDArray[np.uint8]:
    return np.array([place.kind for place in tree.places.table], np.uint8)[tree.place]


def _varying(lead: Tree, common_bytes: int) -> _Values:
    kinds = _kinds(lead)
    is_integer = np.isin(kinds, list(INTEGER_BITS))
    entries = np.flatnonzero((is_integer | (kinds == Kind.BINARY)) & (lead.begin >= common_bytes))
    items = _integers_in_lists(
        lead, np.flatnonzero(np.isin(kinds, (Kind.LIST, Kind.SET)) & (lead.begin >= common_bytes))
    )
    begin = np.concatenate((lead.begin[entries].astype(np.int64), items.begin))
    end = np.concatenate((lead.end[entries].astype(np.int64), items.end))
    is_binary = np.concatenate((kinds[entries] == Kind.BINARY, items.is_binary))
    order = np.argsort(begin)
    return _Values(begin[order], end[order], is_binary[order])


def _integers_in_lists(lead: Tree, lists: Integers) -> _Values:
    """The items of lists of integers; lists of other plain values count as fixed bytes."""
    heads = [(read_list_header(lead.data, int(lead.begin[entry])), int(lead.end[entry])) for entry in lists.tolist()]
    spans = [(begin, end) for (_, kind, begin), end in heads if kind in INTEGER_BITS and end > begin]
    first = np.array([begin for begin, _ in spans], np.int64)
    size = np.array([end - begin for begin, end in spans], np.int64)
    octets = ragged_ranges(first, size)
    end = octets[lead.octets[octets] < 0x80] + 1
    begin = octets[np.concatenate(([True], lead.octets[octets[:-1]] < 0x80))] if octets.size else octets
    return _Values(begin, end, np.zeros(begin.size, np.bool_))


def _walk(
    lead: Tree, values: _Values, common_bytes: int, data: bytes, starts: Integers, stops: Integers
) -> tuple[Integers, Flags]:
    """Where the common beginning and every value end in each struct, and which structs are like the lead.

    Positions of a struct that is not alike mean nothing; they are kept inside `data` only where it is read.
    """
    octets: Octets = np.frombuffer(data, np.uint8)
    ends: NDArray[np.uint32] = np.frombuffer(varint_ends(data), np.uint32)
    gaps = values.begin - np.concatenate(([common_bytes], values.end[:-1]))
    positions = np.empty((values.begin.size + 2, starts.size), np.int64)
    positions[0] = starts
    here = positions[1] = starts + common_bytes
    is_alike = np.ones(starts.size, np.bool_)
    for at, (gap, is_binary) in enumerate(zip(gaps.tolist(), values.is_binary.tolist(), strict=True), start=2):
        begin = here + gap
        here = positions[at]
        here[:] = ends.take(begin, mode="clip")
        if is_binary:
            lengths = octets.take(begin, mode="clip").astype(np.int64)
            if (lengths >= 0x80).any():
                lengths = _long_lengths(octets, begin, here - begin, is_alike)
            here += lengths
    _compare_fixed(lead, values, common_bytes, octets, positions, is_alike)
    is_alike &= here + (lead.size_bytes - int(values.end[-1] if values.end.size else common_bytes)) == stops
    return positions, is_alike


def _long_lengths(octets: Octets, begin: Integers, sizes: Integers, is_alike: Flags) -> Integers:
    """Lengths that take more than a byte; one that takes more than four rules its struct out."""
    is_alike &= sizes <= _MAX_LENGTH_BYTES
    lengths = np.zeros(begin.size, np.int64)
    for index in range(_MAX_LENGTH_BYTES):
        octet = octets.take(begin + index, mode="clip").astype(np.int64)
        lengths |= np.where(index < sizes, (octet & 0x7F) << (7 * index), 0)
    return lengths


def _compare_fixed(
    lead: Tree, values: _Values, common_bytes: int, octets: Octets, positions: Integers, is_alike: Flags
) -> None:
    """Rule out structs with another fixed byte than the lead: between values, and after the last."""
    ends = np.concatenate(([common_bytes], values.end))
    gaps = np.concatenate((values.begin, [lead.size_bytes])) - ends
    fixed = ragged_ranges(ends, gaps)
    rank = np.repeat(np.arange(gaps.size), gaps)
    offset = fixed - ends[rank]
    wanted = lead.octets[fixed]
    found = octets.take(positions[1 + rank] + offset[:, None], mode="clip")
    is_alike &= (found == wanted[:, None]).all(axis=0)


def _moved(lead_positions: NDArray[np.uint32], known_ends: Integers, positions: Integers) -> Integers:
    """Positions of the lead in every struct: a fixed distance after the last value that ends before them."""
    at = lead_positions.astype(np.int64)
    rank = np.searchsorted(known_ends, at, side="right") - 1
    moved: Integers = (positions[rank] + (at - known_ends[rank])[:, None]).T
    return moved
