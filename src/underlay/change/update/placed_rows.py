"""Reads rows of a version by their positions: only the blocks that hold one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa

from underlay.change.update.edit import RowEdit, choose_blocks
from underlay.plan.part import Numbers
from underlay.plan.plan import BlockPlan
from underlay.scan.positions import Positions, live_positions, run_slabs
from underlay.scan.query import Query
from underlay.scan.slabs import Slab, keep_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """Some rows of a file. `places` has the index of each among the requested positions."""

    location: str
    places: Numbers
    rows: pa.Table


def rows_at(
    edit: RowEdit, positions: Mapping[str, Positions], columns: tuple[str, ...], plan: BlockPlan | None = None
) -> Iterator[PlacedRows]:
    """These columns of rows at positions in files, ascending in each, with the threads of a scan. A file may come
    repeatedly. `plan`: one of the same version that keeps all blocks of these rows, if there is one already."""
    if not positions:
        return
    snapshot = edit.snapshot
    blocks = blocks_with(edit, positions)
    query = Query(snapshot=snapshot, columns=columns, stores=edit.files.stores, cache=edit.files.cache)
    known = query.plan if plan is None else replace(plan, columns=query.leaves)
    slabs = query.slabs(known.narrowed(choose_blocks(snapshot, blocks)))
    for slab, found in run_slabs(query, partial(_read, query, positions), slabs):
        edit.count_read(fetched=slab.fetch_bytes)
        yield found


def blocks_with(edit: RowEdit, positions: Mapping[str, Positions]) -> dict[str, Numbers]:
    """The numbers of the blocks, by file, that have a row at one of these positions."""
    files = edit.snapshot.find_files(positions)
    ends = {location: np.cumsum(np.frombuffer(file.block_rows, "<i8")) for location, file in files.items()}
    return {
        location: np.unique(np.searchsorted(ends[location], positions[location], side="right")) for location in ends
    }


def _read(query: Query, wanted: Mapping[str, Positions], slab: Slab) -> tuple[Slab, PlacedRows]:
    asked = wanted[slab.location]
    read, spans = slab.open(query.files).read_between(_spans(slab, asked))
    decoded = _between(slab, spans)
    positions, _ = live_positions(decoded)
    places = np.searchsorted(asked, positions).clip(max=len(asked) - 1)
    keep = asked[places] == positions
    return slab, PlacedRows(
        location=slab.location, places=places[keep], rows=keep_rows(read.select(query.columns), keep)
    )


def _spans(slab: Slab, asked: Positions) -> list[tuple[int, int]]:
    """The first requested row of each block of a slab, and the end of the last."""
    firsts = np.array(slab.first_rows)
    begins = asked[np.searchsorted(asked, firsts)] - firsts
    ends = asked[np.searchsorted(asked, firsts + slab.row_counts) - 1] - firsts + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _between(slab: Slab, spans: Sequence[tuple[int, int]]) -> Slab:
    """The slab with only these rows of its blocks."""
    blocks = [
        msgspec.structs.replace(block, row_count=end - begin)
        for block, (begin, end) in zip(slab.blocks, spans, strict=True)
    ]
    firsts = [first + begin for first, (begin, _) in zip(slab.first_rows, spans, strict=True)]
    return msgspec.structs.replace(slab, blocks=tuple(blocks), first_rows=tuple(firsts))
