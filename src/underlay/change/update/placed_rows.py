"""Rows of a version by their positions: only blocks that have one are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from underlay.change.update.edit import RowEdit, choose_blocks
from underlay.plan.part import Numbers
from underlay.scan.positions import Positions, live_positions, run_slabs
from underlay.scan.query import Query
from underlay.scan.slabs import Slab, keep_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """Some rows of a file. `places` says where each is among the positions that were asked for."""

    location: str
    places: Numbers
    rows: pa.Table


def rows_at(edit: RowEdit, positions: Mapping[str, Positions], columns: tuple[str, ...]) -> Iterator[PlacedRows]:
    """These columns of rows by positions in files, ascending in each, as wide as scans read. A file may come again."""
    if not positions:
        return
    snapshot = edit.snapshot
    blocks = {
        location: np.unique(np.searchsorted(ends, positions[location], side="right"))
        for location, ends in _block_ends(edit, positions).items()
    }
    query = Query(snapshot=snapshot, columns=columns, stores=edit.files.stores, cache=edit.files.cache)
    slabs = query.slabs(query.plan.narrowed(choose_blocks(snapshot, blocks)))
    for slab, found in run_slabs(query, partial(_read, query, positions), slabs):
        edit.count_bytes(slab.fetch_bytes)
        yield found


def _block_ends(edit: RowEdit, positions: Mapping[str, Positions]) -> dict[str, Numbers]:
    files = edit.snapshot.find_files(positions)
    return {location: np.cumsum(np.frombuffer(file.block_rows, "<i8")) for location, file in files.items()}


def _read(query: Query, wanted: Mapping[str, Positions], slab: Slab) -> tuple[Slab, PlacedRows]:
    asked = wanted[slab.location]
    positions, _ = live_positions(slab)
    places = np.searchsorted(asked, positions).clip(max=len(asked) - 1)
    keep = asked[places] == positions
    rows = keep_rows(slab.open(query.files).read().select(query.columns), keep)
    return slab, PlacedRows(location=slab.location, places=places[keep], rows=rows)
