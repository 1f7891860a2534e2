"""Computes the next root from a root and a change: state(N + 1) = apply(change, state(N)). Pure.

Attachments are applied to the parent first, then the change to the result, so that the change of a file that a flush
has just moved into a segment goes into the overlay like any other.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from msgspec.structs import replace

from underlay.errors import InvalidRequest, Malformed
from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import Attachments, Change, Flush, Merge
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import is_own
from underlay.index.operation import Operation
from underlay.index.partition_specs import needed_format, with_specs_of
from underlay.index.root import FORMAT, WITH_CONSTANTS, WITH_RETENTION, Definition, Delta, Root, Sources
from underlay.schema.record import SchemaRecord


def count_rows(file: FileEntry) -> int:
    """Rows of a file, deleted ones included."""
    return int(np.frombuffer(file.block_rows, "<i8").sum())


def first_root(definition: Definition, *, commit_id: str, now_us: int, writer: str) -> Root:
    """Version 0: a table without rows."""
    return Root(
        format=needed_format(definition),
        version=0,
        commit_id=commit_id,
        parent_id=None,
        committed_us=now_us,
        operation=Operation.CREATE,
        counts={},
        writer=writer,
        definition=definition,
        delta=Delta(definition=definition),
        row_count=0,
        file_count=0,
        data_bytes=0,
    )


def advance(
    parent: Root,
    change: Change,
    *,
    commit_id: str,
    now_us: int,
    writer: str,
    sources: Sources | None = None,
    attachments: Attachments | None = None,
) -> Root:
    """The root after `parent` when `change` is committed onto it.

    `sources` is the parent's source tree with the change's sources in it; it may be left out when there are none.
    Raises InvalidRequest for a file that the table already has, or had and that is still in a segment.
    """
    if parent.terminal is not None:
        raise InvalidRequest("nothing may follow a terminal root", place=f"version {parent.version}")
    state = attach(parent, attachments or Attachments())
    if change.restored is not None:
        state = _restore(state, change.restored)
    state = _remove(state, change)
    state = _set_bits(state, change)
    state = _add(state, change)
    old = {layout.id for layout in parent.layouts}
    layouts = tuple({layout.id: layout for layout in change.layouts if layout.id not in old}.values())
    definition = change.definition or state.definition
    ended = tuple(job for job, epoch in change.ended_jobs.items() if parent.fences.get(job) == epoch)
    is_care = change.retention is not None or change.horizon_us or ended
    return replace(
        state,
        format=max(
            parent.format,
            WITH_CONSTANTS if change.has_constants else FORMAT,
            WITH_RETENTION if is_care else FORMAT,
            needed_format(definition),
        ),
        version=parent.version + 1,
        commit_id=commit_id,
        parent_id=parent.commit_id,
        committed_us=max(now_us, parent.committed_us + 1),
        operation=change.operation,
        counts=_counts(parent, change, state),
        writer=writer,
        definition=definition,
        delta=_delta(parent, change, definition, layouts, ended),
        layouts=_with_layouts(state, layouts),
        sources=sources if sources is not None else state.sources,
        fences={job: epoch for job, epoch in parent.fences.items() if job not in ended} | dict(change.fences),
        terminal=change.terminal,
        retention=change.retention or parent.retention,
        horizon_us=max(parent.horizon_us, change.horizon_us),
        epoch_floor=max([parent.epoch_floor, *(parent.fences[job] for job in ended)]),
    )


def attach(parent: Root, attachments: Attachments) -> Root:
    """`parent` with the attachments applied; those whose inputs have changed are left out."""
    state = parent
    if attachments.flush is not None:
        state = _flush(state, attachments.flush)
    for merge in attachments.merges:
        state = _merge(state, merge)
    return state


def _flush(root: Root, flush: Flush) -> Root:
    covered = {file.location: file for file in flush.files}
    present = [file for file in root.tail if covered.get(file.location) == file]
    if len(present) != len(covered):
        return root
    rest = tuple(file for file in root.tail if file.location not in covered)
    return replace(root, segments=(*root.segments, flush.segment), tail=rest)


def _merge(root: Root, merge: Merge) -> Root:
    gone = {ref.id for ref in merge.inputs}
    is_whole = gone <= {ref.id for ref in root.segments} and merge.removed <= set(root.removed)
    if not is_whole or any(root.deletes.get(name) != bits for name, bits in merge.deletes.items()):
        return root
    first = next(place for place, ref in enumerate(root.segments) if ref.id in gone)
    kept = [ref for ref in root.segments if ref.id not in gone]
    if merge.segment.file_count:
        kept.insert(first, merge.segment)
    return replace(
        root,
        segments=tuple(kept),
        removed=tuple(name for name in root.removed if name not in merge.removed),
        deletes={name: bits for name, bits in root.deletes.items() if name not in merge.deletes},
    )


def _restore(head: Root, restored: Root) -> Root:
    """The head with everything that a version consisted of. Field ids used since stay used, and layouts stay, because a
    writer that read the head does not send those again."""
    schema = restored.definition.schema
    last_id = max(schema.last_id, head.definition.schema.last_id)
    definition = replace(restored.definition, schema=SchemaRecord(fields=schema.fields, last_id=last_id))
    definition = with_specs_of(definition, head.definition)
    return replace(
        head,
        definition=definition,
        may_return=True,
        layouts=_with_layouts(restored, head.layouts),
        segments=restored.segments,
        tail=restored.tail,
        removed=restored.removed,
        deletes=restored.deletes,
        sources=restored.sources,
        row_count=restored.row_count,
        file_count=restored.file_count,
        data_bytes=restored.data_bytes,
    )


def _remove(root: Root, change: Change) -> Root:
    gone = set(change.removed)
    if not gone:
        return root
    tail = {file.location: file for file in root.tail}
    already = gone.intersection(root.removed)
    if already or len(gone) != len(change.removed) or gone & change.deletes.keys():
        raise InvalidRequest(
            "a file is removed twice, or both removed and changed", found=", ".join(sorted(already or gone))
        )
    files = [tail.get(name) or change.touched[name] for name in change.removed]
    in_segments = [name for name in change.removed if name not in tail]
    return replace(
        root,
        may_return=root.may_return or not all(map(is_own, gone)),
        tail=tuple(file for file in root.tail if file.location not in gone),
        removed=(*root.removed, *in_segments),
        deletes={name: bits for name, bits in root.deletes.items() if name not in gone},
        row_count=root.row_count - sum(count_rows(file) - file.deleted_rows for file in files),
        file_count=root.file_count - len(files),
        data_bytes=root.data_bytes - sum(file.size_bytes for file in files),
    )


def _set_bits(root: Root, change: Change) -> Root:
    if not change.deletes:
        return root
    gone = change.deletes.keys() & set(root.removed)
    if gone:
        raise InvalidRequest("rows of a removed file cannot be deleted", found=", ".join(sorted(gone)))
    tail = {file.location: file for file in root.tail}
    overlay = dict(root.deletes)
    deleted_count = 0
    for name, bits in change.deletes.items():
        before = tail.get(name) or change.touched[name]
        after = with_deletes(before, bits)
        deleted_count += after.deleted_rows - before.deleted_rows
        if name in tail:
            tail[name] = after
        elif after.deletes is not None:
            overlay[name] = after.deletes
    return replace(root, tail=tuple(tail.values()), deletes=overlay, row_count=root.row_count - deleted_count)


def check_positions(file: FileEntry, bits: bytes) -> None:
    """Raise InvalidRequest when one of these rows is not a row of the file."""
    try:
        bitmaps.check(bits, count_rows(file))
    except Malformed as error:
        raise InvalidRequest(error.problem, place=file.location, expected=error.expected, found=error.found) from error


def with_deletes(file: FileEntry, bits: bytes) -> FileEntry:
    """The file with these rows deleted as well."""
    both = bitmaps.union(file.deletes, bits)
    return replace(file, deletes=both, deleted_rows=bitmaps.count(both))


def follow(change: Change, winner: Root) -> Change:
    """The change, rebased onto `winner`, which committed first: its files are as they are after that."""
    news = change.touched.keys() & winner.delta.deletes.keys()
    if not news:
        return change
    newer = {name: with_deletes(change.touched[name], winner.delta.deletes[name]) for name in news}
    return dataclasses.replace(change, touched={**change.touched, **newer})


def _add(root: Root, change: Change) -> Root:
    names = [file.location for file in change.files]
    taken = {file.location for file in root.tail}.union(root.removed)
    if len(set(names)) != len(names) or not taken.isdisjoint(names):
        twice = sorted(taken.intersection(names)) or sorted(names)
        raise InvalidRequest(
            "the file is in the table, or was removed from it recently",
            found=", ".join(twice),
            hint="A file that was removed can come back after its segment was merged, or under another name.",
        )
    rows = sum(count_rows(file) - file.deleted_rows for file in change.files)
    return replace(
        root,
        tail=(*root.tail, *change.files),
        segments=(*root.segments, *change.segments),
        row_count=root.row_count + rows + sum(ref.row_count - ref.deleted_rows for ref in change.segments),
        file_count=root.file_count + len(names) + sum(ref.file_count for ref in change.segments),
        data_bytes=root.data_bytes
        + sum(file.size_bytes for file in change.files)
        + sum(ref.data_bytes for ref in change.segments),
    )


def _with_layouts(state: Root, new: tuple[FileLayout, ...]) -> tuple[FileLayout, ...]:
    return tuple({layout.id: layout for layout in (*state.layouts, *new)}.values())


def _delta(
    parent: Root, change: Change, definition: Definition, layouts: tuple[FileLayout, ...], ended: tuple[str, ...]
) -> Delta:
    return Delta(
        added_in_tail=len(change.files),
        added_segments=tuple(ref.id for ref in change.segments),
        removed=change.removed,
        deletes=dict(change.deletes),
        sources=change.sources,
        definition=definition if definition != parent.definition else None,
        layouts=layouts,
        fences=dict(change.fences),
        restored=change.restored.version if change.restored is not None else None,
        terminal=change.terminal,
        retention=change.retention,
        horizon_us=change.horizon_us,
        ended_jobs=ended,
    )


def _counts(parent: Root, change: Change, after: Root) -> dict[str, int]:
    """Counts computed here, overridden by those that the operation gives itself.

    Rows that another commit deleted meanwhile do not count as deleted, and rows of removed files do, unless the
    operation only moves rows between files.
    """
    added = sum(count_rows(file) - file.deleted_rows for file in change.files)
    added += sum(ref.row_count - ref.deleted_rows for ref in change.segments)
    is_change = change.operation.changes_rows and change.restored is None
    counted = {
        "files_added": len(change.files) + sum(ref.file_count for ref in change.segments),
        "rows_added": added,
        "files_removed": len(change.removed),
        "rows_deleted": parent.row_count + added - after.row_count if is_change else 0,
    }
    return {name: number for name, number in counted.items() if number} | dict(change.counts)
