"""Prepares a snapshot for the planner: the segments that may matter, with what was removed from them since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from underlay.errors import Damaged
from underlay.index.partition_specs import specs_of
from underlay.index.segment.segment import Segment
from underlay.plan.by_segment import surviving
from underlay.plan.leaf_bounds import resolve
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune import Predicate, columns_of
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.versions.snapshot import Snapshot


def plan_snapshot(snapshot: Snapshot, predicate: Predicate, columns: Iterable[int]) -> BlockPlan:
    """The plan of a query over a snapshot.

    Fetches the predicate's columns of the segments that survive the root's bounds: one batch of requests for each
    segment, all segments in parallel, and none when they are in the cache.
    """
    leaves = [leaf.id for leaf in resolve(snapshot.schema, columns_of(predicate)).values() if leaf is not None]
    is_kept = _surviving(snapshot, predicate, leaves)
    kept = [place for place, is_needed in enumerate(is_kept) if is_needed]
    _prefetch(snapshot.store, [snapshot.segment(place) for place in kept], leaves)
    try:
        return make_plan(
            tuple(snapshot.parts(kept)),
            snapshot.schema,
            predicate,
            columns,
            specs=specs_of(snapshot.definition),
            skipped=tuple(ref for ref, is_needed in zip(snapshot.root.segments, is_kept, strict=True) if not is_needed),
        )
    except Damaged as error:
        # An error about a deletion vector cannot tell where it was stored. Segments name themselves.
        raise error if error.place is not None else error.at(snapshot.keys.root(snapshot.version)) from None


def _surviving(snapshot: Snapshot, predicate: Predicate, leaves: Sequence[int]) -> list[bool]:
    """Which segments to load, by the root's bounds, unless the only one is already loaded."""
    refs = snapshot.root.segments
    if not refs or (len(refs) == 1 and snapshot.segment(0).has_loaded(leaves)):
        return [True] * len(refs)
    found: list[bool] = surviving(refs, snapshot.schema, predicate).tolist()
    return found


def _prefetch(store: Store, segments: Sequence[Segment], leaves: Sequence[int]) -> None:
    waiting = [segment for segment in segments if not segment.has_loaded(leaves)]
    side_by_side(lambda segment: segment.prefetch(statistics=leaves), waiting, store.parallel_requests)
