"""What a commit tidies: it moves a grown tail into a segment, and merges small segments into larger ones.

It is computed for one root, and holds for any later one in which these files and segments are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import Attachments, Flush, Merge
from underlay.index.root import Definition
from underlay.index.segment.merge import MergeInput, merge_segments
from underlay.index.segment.tiers import groups_to_merge
from underlay.index.segment.write import write_segment
from underlay.table.versions.snapshot import Snapshot

TAIL_BYTES = 32 << 10
"""A tail whose JSON is longer is flushed."""
OVERLAY_BYTES = 256 << 10
"""The most that a root says about files in segments; beyond it, the segment with the largest share is rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidying:
    """The attachments of a commit, and the objects that they need, by key."""

    attachments: Attachments
    objects: dict[str, bytes]


def tidy(snapshot: Snapshot, new_id: Callable[[], str], *, must_flush: bool = False) -> Tidying:
    """What to tidy in this version. Reads only segments that it merges."""
    objects: dict[str, bytes] = {}
    flush = _flush(snapshot, new_id, objects) if must_flush or _is_tail_long(snapshot) else None
    groups = groups_to_merge(snapshot.root.segments)
    if not groups and _overlay_bytes(snapshot) > OVERLAY_BYTES:
        groups = [(_most_changed(snapshot),)]
    merges = tuple(_merge(snapshot, group, new_id, objects) for group in groups)
    return Tidying(attachments=Attachments(flush=flush, merges=merges), objects=objects)


def bounded_fields(definition: Definition) -> tuple[int, ...]:
    """The leaves whose range over a whole segment is kept in the root: those that queries are likely to filter by."""
    partitions = (partition.field for partition in definition.partition_by)
    order = (sort.field for sort in definition.sort_by)
    return tuple(dict.fromkeys((*partitions, *order, *definition.key)))


def _is_tail_long(snapshot: Snapshot) -> bool:
    return len(msgspec.json.encode(snapshot.root.tail)) > TAIL_BYTES


def _overlay_bytes(snapshot: Snapshot) -> int:
    root = snapshot.root
    return sum(map(len, root.removed)) + sum(len(name) + len(bits) for name, bits in root.deletes.items())


def _most_changed(snapshot: Snapshot) -> str:
    root = snapshot.root
    names = {*root.removed, *root.deletes}
    counts = [len(snapshot.rows_at(segment, names)) for segment in snapshot.segments]
    return root.segments[counts.index(max(counts))].id


def _flush(snapshot: Snapshot, new_id: Callable[[], str], objects: dict[str, bytes]) -> Flush | None:
    files = snapshot.root.tail
    if not files:
        return None
    fields = bounded_fields(snapshot.definition)
    data, ref = write_segment(files, snapshot.schema, segment_id=new_id(), bounded_fields=fields)
    objects[snapshot.keys.segment(ref.id)] = data
    return Flush(segment=ref, files=files)


def _merge(snapshot: Snapshot, ids: tuple[str, ...], new_id: Callable[[], str], objects: dict[str, bytes]) -> Merge:
    root = snapshot.root
    chosen = [place for place, ref in enumerate(root.segments) if ref.id in ids]
    inputs, removed, folded = [], set[str](), dict[str, bytes]()
    for place in chosen:
        segment = snapshot.segments[place]
        gone = snapshot.rows_at(segment, root.removed)
        changed = snapshot.rows_at(segment, root.deletes)
        is_kept = np.ones(segment.file_count, np.bool_)
        is_kept[list(gone.values())] = False
        deletes = {row: (root.deletes[name], bitmaps.count(root.deletes[name])) for name, row in changed.items()}
        inputs.append(MergeInput(segment=segment, is_kept=is_kept if gone else None, deletes=deletes))
        removed |= gone.keys()
        folded |= {name: root.deletes[name] for name in changed}
    fields = bounded_fields(snapshot.definition)
    data, ref = merge_segments(inputs, snapshot.schema, segment_id=new_id(), bounded_fields=fields)
    objects[snapshot.keys.segment(ref.id)] = data
    return Merge(
        segment=ref,
        inputs=tuple(root.segments[place] for place in chosen),
        removed=frozenset(removed),
        deletes=folded,
    )
