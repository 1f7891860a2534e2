"""A snapshot as the planner takes it: the segments that may matter, with what was taken out of them since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from underlay.index.root import SegmentRef
from underlay.index.segment import Segment
from underlay.plan.leaf_bounds import resolve
from underlay.plan.make import make_plan
from underlay.plan.part import Part
from underlay.plan.plan import Plan
from underlay.plan.segments import surviving
from underlay.prune import Predicate, columns_of
from underlay.table.snapshot import Snapshot

_LOADERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a plan is made of: parts to look at, and segments that the root's bounds alone rule out."""

    parts: tuple[Part, ...]
    skipped: tuple[SegmentRef, ...]


def plan_snapshot(snapshot: Snapshot, predicate: Predicate, columns: Iterable[int]) -> Plan:
    """The plan of a query over a snapshot.

    Fetches the predicate's columns of the segments that survive the root's bounds: one batch of requests for each
    segment, all segments side by side, and none when they are in the cache.
    """
    found = parts_of(snapshot, predicate)
    return make_plan(
        found.parts,
        snapshot.schema,
        predicate,
        columns,
        partition_by=snapshot.definition.partition_by,
        skipped=found.skipped,
    )


def parts_of(snapshot: Snapshot, predicate: Predicate) -> Parts:
    """The parts of a snapshot that may hold a matching row."""
    root = snapshot.root
    leaves = [leaf.id for leaf in resolve(snapshot.schema, columns_of(predicate)).values() if leaf is not None]
    is_kept = surviving(root.segments, snapshot.schema, predicate).tolist()
    pairs = zip(root.segments, snapshot.segments, is_kept, strict=True)
    kept = [segment for _, segment, is_needed in pairs if is_needed]
    _prefetch(kept, leaves)
    parts = [_with_overlay(snapshot, segment) for segment in kept]
    if root.tail:
        parts.append(Part(segment=snapshot.tail))
    skipped = (ref for ref, is_needed in zip(root.segments, is_kept, strict=True) if not is_needed)
    return Parts(parts=tuple(parts), skipped=tuple(skipped))


def _prefetch(segments: Sequence[Segment], leaves: Sequence[int]) -> None:
    if len(segments) <= 1:
        for segment in segments:
            segment.prefetch(statistics=leaves)
        return
    with ThreadPoolExecutor(min(_LOADERS, len(segments))) as pool:
        for loading in [pool.submit(segment.prefetch, leaves) for segment in segments]:
            loading.result()


def _with_overlay(snapshot: Snapshot, segment: Segment) -> Part:
    root = snapshot.root
    if not root.removed and not root.deletes:
        return Part(segment=segment)
    removed = list(snapshot.rows_at(segment, root.removed).values())
    is_removed = None
    if removed:
        is_removed = np.zeros(segment.file_count, dtype=np.bool_)
        is_removed[removed] = True
    rows = snapshot.rows_at(segment, root.deletes.keys())
    return Part(segment=segment, is_removed=is_removed, deletes={row: root.deletes[name] for name, row in rows.items()})
