"""Reads the bloom filters of files without a sidecar from where their footers say, many files at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from underlay.cache.same_file import KnownFile, get_same_ranges
from underlay.errors import Damaged, Inconsistent, UnderlayError
from underlay.parquet.footer.stack import Stack, read_stacks
from underlay.parquet.footer.tail import TAIL_BYTES
from underlay.parquet.write.bloom import encode_header, parse_header
from underlay.plan.plan import PlannedFile
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import ObjectPlace
from underlay.values.ranges import ByteRange

_BATCH = 512

Bitsets = dict[int, list[bytes | memoryview | None]]
"""By position of a leaf in the file, for each of its blocks."""


def read_stored_blooms(
    files: Sequence[tuple[PlannedFile, ObjectPlace]], leaves: Mapping[str, Sequence[int]]
) -> Iterator[tuple[PlannedFile, Bitsets]]:
    """The filters of some leaves (by layout) of each file. Two requests for each: its footer, then its filters."""
    at_once = max(place.store.parallel_requests for _, place in files)
    for begin in range(0, len(files), _BATCH):
        batch = files[begin : begin + _BATCH]
        footers = side_by_side(_read_footer, batch, at_once)
        tasks = []
        for stack, indices in read_stacks(footers):
            for at, index in enumerate(indices):
                file, place = batch[index]
                tasks.append((file, place, _ranges(stack, at, file, leaves[file.layout])))
        yield from zip((file for file, _, _ in tasks), side_by_side(_read_filters, tasks, at_once), strict=True)


def _read_footer(item: tuple[PlannedFile, ObjectPlace]) -> bytes:
    file, (store, key) = item
    end = file.size_bytes - TAIL_BYTES
    (data,) = get_same_ranges(store, key, [ByteRange(end - file.footer_bytes, end)], _known(file))
    return bytes(data)


def _ranges(stack: Stack, at: int, file: PlannedFile, leaves: Sequence[int]) -> dict[tuple[int, int], ByteRange]:
    """Where the filters of one file of a stack lie, by leaf and block."""
    begin, end = stack.begins[at], stack.begins[at + 1]
    chunks = stack.chunks
    found = {}
    for leaf in leaves:
        is_there = chunks.has_bloom_filter_offset[begin:end, leaf] & chunks.has_bloom_filter_length[begin:end, leaf]
        for block in np.flatnonzero(is_there).tolist():
            offset = int(chunks.bloom_filter_offset[begin + block, leaf])
            length = int(chunks.bloom_filter_length[begin + block, leaf])
            if offset < 0 or length <= 0 or offset + length > file.size_bytes:
                raise Inconsistent("a bloom filter does not lie in its file", place=file.location)
            found[leaf, block] = ByteRange(offset, offset + length)
    for leaf in leaves:
        found.setdefault((leaf, end - begin - 1), ByteRange(0, 0))
    return found


def _read_filters(task: tuple[PlannedFile, ObjectPlace, dict[tuple[int, int], ByteRange]]) -> Bitsets:
    file, (store, key), ranges = task
    fetched = get_same_ranges(store, key, list(ranges.values()), _known(file))
    found: Bitsets = {}
    for (leaf, block), data in zip(ranges, fetched, strict=True):
        of_leaf = found.setdefault(leaf, [])
        of_leaf += [None] * (block + 1 - len(of_leaf))
        try:
            of_leaf[block] = _bitset(data) if len(data) else of_leaf[block]
        except UnderlayError as error:
            raise error.at(f"{file.location}: bloom filter of row group {block}, column {leaf}") from None
    return found


def _known(file: PlannedFile) -> KnownFile:
    return KnownFile(file.size_bytes, file.etag, file.footer_bytes, file.footer_crc)


def _bitset(stored: memoryview) -> memoryview | None:
    """The bits of a stored filter, None for an unknown kind. Most headers are the one we would write."""
    header = _usual_header(len(stored))
    if header is not None and stored[: len(header)] == header:
        return stored[len(header) :]
    parsed = parse_header(bytes(stored))
    if parsed is None:
        return None
    end = parsed.header_length + parsed.bitset_length
    if end > len(stored):
        raise Damaged("the filter is cut short", expected=f"{end} bytes", found=len(stored))
    return stored[parsed.header_length : end]


@lru_cache(maxsize=1024)
def _usual_header(stored_length: int) -> bytes | None:
    """The header before a filter, when both together take `stored_length` bytes."""
    for bitset_length in range(stored_length - stored_length % 32, max(stored_length - 64, 0), -32):
        header = encode_header(bitset_length)
        if len(header) + bitset_length == stored_length:
            return header
    return None
