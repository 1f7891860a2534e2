"""Decides in which blocks of a partition new rows go, so that blocks stay in the order of time. Reads only blocks that
change.

- Rows behind the newest go into new blocks; a last block of few rows is replaced by one that holds both.
- Rows among the others are merged into the blocks whose range of time they fall into; rows in a gap join a small
  neighbour, or become blocks of their own.
- Sixteen neighbours of one tier (by powers of sixteen) become one block. So the number of blocks grows with the
  logarithm of the number of commits, and each row is written again only as often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from underlay.hot.files.blocks import HotBlock
from underlay.hot.files.layout import HotLayout, Times

TOP_UP_ROWS = 1024
"""A last block of fewer rows is topped up at each commit."""
TOP_UP_BYTES = 128 << 10
FAN = 16
"""So many neighbours of one tier become one block."""

ReadBlock = Callable[[int], pa.Table]


class NewBlock(NamedTuple):
    """Rows for one block, in the order of time."""

    rows: pa.Table
    times: Times


Placed = list[int | NewBlock]
"""The blocks of the next version: an existing one by its number, or a new one."""


def place_rows(blocks: Sequence[HotBlock], rows: pa.Table, times: Times, layout: HotLayout, read: ReadBlock) -> Placed:
    """The blocks of a partition with these rows in it."""
    new = _without_duplicates(_sorted(rows, times), layout)
    if not blocks:
        return list(_cut(new, layout))
    last = blocks[-1]
    is_behind = new.times[0] > last.high if layout.key else new.times[0] >= last.high
    if is_behind:
        placed: Placed = [*range(len(blocks) - 1)]
        if _is_topped_up(last):
            placed += _cut(_merged(read(len(blocks) - 1), new, layout), layout)
        else:
            placed += [len(blocks) - 1, *_cut(new, layout)]
    else:
        placed = _place_among(blocks, new, layout, read)
    return _with_small_merged(placed, blocks, layout, read)


def _is_topped_up(block: HotBlock) -> bool:
    return block.row_count < TOP_UP_ROWS and block.size_bytes < TOP_UP_BYTES


def _place_among(blocks: Sequence[HotBlock], new: NewBlock, layout: HotLayout, read: ReadBlock) -> Placed:
    """Rows of which some are older than the newest row."""
    lows = np.array([block.low for block in blocks], np.int64)
    highs = np.array([block.high for block in blocks], np.int64)
    before = np.searchsorted(lows, new.times, side="right") - 1
    is_inside = (before >= 0) & (new.times <= highs[before])
    # Block i has the odd number 2i + 1, the gap before it 2i: numbers ascend with time.
    places = np.where(is_inside, 2 * before + 1, 2 * before + 2)
    for gap in np.unique(places[~is_inside]).tolist():
        after = gap // 2
        small = layout.block_rows // 4
        if after == len(blocks):
            is_joined, target = _is_topped_up(blocks[-1]), gap - 1
        elif after and blocks[after - 1].row_count < small:
            is_joined, target = True, gap - 1
        else:
            is_joined, target = blocks[after].row_count < small, gap + 1
        if is_joined:
            places[places == gap] = target
    pieces = {place: _slice(new, places == place) for place in np.unique(places).tolist()}
    groups = _groups(blocks, pieces, is_deduplicated=bool(layout.key))
    placed: Placed = []
    for place in range(2 * len(blocks) + 1):
        number = place // 2
        if place % 2 == 0:
            if place in pieces:
                placed += _cut(pieces[place], layout)
        elif number in groups:
            first, end = groups[number]
            if number == first:
                old = pa.concat_tables([read(one) for one in range(first, end)])
                mine = [pieces[one] for one in range(2 * first + 1, 2 * end) if one in pieces]
                placed += _cut(_merged(old, _joined(mine), layout), layout)
        else:
            placed.append(number)
    return placed


def _groups(
    blocks: Sequence[HotBlock], pieces: dict[int, NewBlock], *, is_deduplicated: bool
) -> dict[int, tuple[int, int]]:
    """For each block that changes, the blocks that change together with it: with a key, neighbours that share a
    timestamp."""
    touched = sorted(place // 2 for place in pieces if place % 2)
    found: dict[int, tuple[int, int]] = {}
    for number in touched:
        first, end = number, number + 1
        while is_deduplicated and first > 0 and blocks[first - 1].high == blocks[first].low:
            first -= 1
        while is_deduplicated and end < len(blocks) and blocks[end - 1].high == blocks[end].low:
            end += 1
        found |= dict.fromkeys(range(first, end), (first, end))
    return found


def _with_small_merged(placed: Placed, blocks: Sequence[HotBlock], layout: HotLayout, read: ReadBlock) -> Placed:
    """The same with runs of small neighbours joined."""
    while True:
        counts = [blocks[one].row_count if isinstance(one, int) else one.rows.num_rows for one in placed]
        full = [
            count > layout.block_rows // 2
            or (isinstance(one, int) and blocks[one].size_bytes > layout.block_bytes // 8)
            for one, count in zip(placed, counts, strict=True)
        ]
        run = _run(counts, full)
        if run is None:
            return placed
        begin, end = run
        parts = [read(one) if isinstance(one, int) else one.rows for one in placed[begin:end]]
        rows = pa.concat_tables(parts).combine_chunks()
        joined = list(_cut(NewBlock(rows, layout.times(rows)), layout))
        if len(joined) >= end - begin:
            return placed
        placed = [*placed[:begin], *joined, *placed[end:]]


def _run(counts: Sequence[int], full: Sequence[bool]) -> tuple[int, int] | None:
    """Neighbours to join: sixteen or more of at most some tier, the lowest such tier first."""
    tiers = [_tier(count) for count in counts]
    for tier in sorted({tier for tier, is_full in zip(tiers, full, strict=True) if not is_full}):
        begin: int | None = None
        for at in range(len(counts) + 1):
            is_in = at < len(counts) and not full[at] and tiers[at] <= tier
            if is_in and begin is None:
                begin = at
            if not is_in and begin is not None:
                if at - begin >= FAN:
                    return begin, at
                begin = None
    return None


def _tier(count: int) -> int:
    tier = 0
    while count >= TOP_UP_ROWS * FAN:
        count //= FAN
        tier += 1
    return tier


def _sorted(rows: pa.Table, times: Times) -> NewBlock:
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return NewBlock(rows, times)
    order = np.argsort(times, kind="stable")
    return NewBlock(rows.take(order), times[order])


def _merged(old: pa.Table, new: NewBlock, layout: HotLayout) -> NewBlock:
    """Rows of a block with new ones: of equal times, and of equal keys, the new ones come last."""
    rows = pa.concat_tables([old, new.rows]).combine_chunks()
    times = np.concatenate([layout.times(old), new.times])
    return _without_duplicates(_sorted(rows, times), layout)


def _without_duplicates(block: NewBlock, layout: HotLayout) -> NewBlock:
    """Of rows with equal keys only the last."""
    if not layout.key or len(block.times) < 2:
        return block
    row = "\0row"
    numbered = block.rows.select(layout.key).append_column(row, pa.array(np.arange(len(block.times))))
    last = numbered.group_by(list(layout.key), use_threads=False).aggregate([(row, "max")]).column(f"{row}_max")
    kept = np.sort(last.to_numpy())
    if len(kept) == len(block.times):
        return block
    return NewBlock(block.rows.take(kept), block.times[kept])


def _slice(block: NewBlock, is_chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> NewBlock:
    chosen = np.flatnonzero(is_chosen)
    begin, count = int(chosen[0]), len(chosen)
    return NewBlock(block.rows.slice(begin, count), block.times[begin : begin + count])


def _joined(parts: Sequence[NewBlock]) -> NewBlock:
    if len(parts) == 1:
        return parts[0]
    return NewBlock(pa.concat_tables([one.rows for one in parts]), np.concatenate([one.times for one in parts]))


def _cut(block: NewBlock, layout: HotLayout) -> Iterator[NewBlock]:
    """The rows as one block, or as several of about the same size where there are too many. With a key, rows of one
    time stay together."""
    count = len(block.times)
    row_bytes = max(1.0, block.rows.nbytes / max(1, count))
    most = max(1, min(layout.block_rows, int(layout.block_bytes / row_bytes)))
    if count <= most + most // 2:
        yield block
        return
    parts = -(-count // most)
    begin = 0
    for part in range(1, parts + 1):
        end = count * part // parts
        if layout.key and end < count:
            end = int(np.searchsorted(block.times, block.times[end], side="left"))
        if end > begin:
            yield NewBlock(block.rows.slice(begin, end - begin), block.times[begin:end])
            begin = end
