"""Compacts a table: chooses files, rewrites them group by group, and commits many groups at a time.

The rows stay as they are, so change feeds and streams do not notice. Each commit replaces the files of its groups with
the new ones. When other commits come first, groups whose files they changed or removed are given up; the others are
committed on top (R4). New files are protected from sweeps by an intent (R5), and writers that meet a compaction do
their work again on the new files, which have the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace as with_values

from underlay.change.files.add_files import add_files
from underlay.change.update.condition import Condition, every_row
from underlay.change.update.edit import FileAccess
from underlay.errors import CommitConflict, RevisionClosed
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.maintain.compact.choose import (
    CompactGroup,
    CompactTargets,
    Reason,
    all_files,
    by_partition,
    choose_groups,
    whole,
)
from underlay.maintain.compact.order import check_order, table_order, z_order, zorder_leaves
from underlay.maintain.compact.rewrite import DoneGroup, FailedGroup, Rewriter, is_better, try_group
from underlay.runtime.threads import side_by_side
from underlay.schema.table_schema import LeafColumn
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import Committed, commit_change
from underlay.table.coordination.upload_intent import upload
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.environment import to_us
from underlay.table.versions.snapshot import Snapshot

COMMIT_BYTES = 1 << 30
"""New files are committed together once they have this many bytes."""

CompactProgress = Callable[[int, int], None]
"""Called with the number of finished groups of files, and of all."""

Outcome = DoneGroup | FailedGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun:
    """How groups of files are rewritten: in this process, or by others that report what they put into the store."""

    do: Callable[[], Generator[Sequence[Outcome], None, None]]
    """Runs the groups, and yields their outcomes some at a time, in any order."""
    commit_bytes: int = COMMIT_BYTES
    """New files are committed together once they have this many bytes."""
    task_count: int = 0
    choice: str = "in this process"


class CompactWorkers(Protocol):
    """Offers to do the groups of a version elsewhere, or says why this process should. Nothing is done yet."""

    def __call__(self, head: Head, groups: Sequence[CompactGroup], order: str | None) -> GroupRun | str:
        """Choose."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did, or would do; a dry run leaves out the numbers of new files."""

    table: str
    is_dry_run: bool
    version: int
    """The newest version that it committed, or else the one that it examined."""
    commit_count: int = 0
    files_before: int = 0
    """Files that were compacted."""
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    blocks_copied: int = 0
    blocks_encoded: int = 0
    bytes_copied: int = 0
    """About the bytes of blocks that were copied unchanged."""
    bytes_encoded: int = 0
    """About the bytes of blocks that were decoded and encoded again."""
    rows_dropped: int = 0
    """Deleted rows of compacted files; the new files leave them out."""
    given_up: int = 0
    """Files that other commits changed meanwhile; they were not compacted."""
    failed: dict[str, str] = field(default_factory=dict)
    """Unreadable files, with the reason. They were not compacted."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why files were chosen."""
    task_count: int = 0
    """The number of Spark tasks that did the work; 0 if this process did it."""
    choice: str = ""
    """Where the work is done, and why."""


def compact(
    table: OpenTable,
    files: FileAccess,
    condition: Condition = every_row,
    *,
    dry_run: bool = False,
    order: str | None = None,
    progress: CompactProgress | None = None,
    is_over: Callable[[], bool] | None = None,
    workers: CompactWorkers | None = None,
) -> Compacted:
    """Compact the files that may hold rows that match. Never raises because of commits that came first.

    `is_over` is asked after each group of files; once it is true, what is done is committed and the compaction ends.
    Raises what a condition raises, InvalidRequest for an unknown order, Unavailable, CommitUnknown.
    """
    head = table.head()
    snapshot = table.snapshot(head)
    predicate, _, _ = condition(snapshot)
    do = group_work(snapshot, files, order)
    if order is None:
        targets = CompactTargets.of(snapshot.definition)
        groups: Sequence[CompactGroup] = choose_groups(snapshot, targets, predicate).groups
    else:
        found = by_partition(all_files(snapshot, predicate, Reason.ORDER, registered=False))
        groups = [whole(some, is_encoded=True) for some in found.values()]
    run = in_process(groups, do)
    if workers is not None:
        chosen = workers(head, groups, order)
        run = replace(run, choice=chosen) if isinstance(chosen, str) else chosen
    return rewrite_groups(
        table,
        head,
        groups,
        run,
        Operation.COMPACT,
        dry_run=dry_run,
        progress=progress,
        must_keep=order is not None,
        is_over=is_over,
    )


def group_work(snapshot: Snapshot, files: FileAccess, order: str | None) -> Callable[[CompactGroup], Outcome]:
    """How to rewrite groups of files of a version. Raises InvalidRequest for an unknown order."""
    rewriter = Rewriter(snapshot=snapshot, files=files, targets=CompactTargets.of(snapshot.definition))
    if order is None:
        return partial(try_group, rewriter, rewriter.run)
    leaves = zorder_leaves(order, snapshot.schema)
    check_order(snapshot.definition, leaves)
    return partial(try_group, rewriter, partial(_do_ordered, rewriter, leaves))


def in_process(groups: Sequence[CompactGroup], do: Callable[[CompactGroup], Outcome]) -> GroupRun:
    """Rewrite the groups one after the other in this process."""
    return GroupRun(do=lambda: ([do(group)] for group in groups))


def _do_ordered(rewriter: Rewriter, leaves: Sequence[LeafColumn], group: CompactGroup) -> DoneGroup:
    schema, definition = rewriter.snapshot.schema, rewriter.definition
    if not leaves:
        return rewriter.run_ordered(group, table_order(definition, schema), definition)
    sample = rewriter.sample(group, [leaf.path[0] for leaf in leaves])
    # Its files do not say that they are sorted.
    return rewriter.run_ordered(group, z_order(leaves, sample, schema), with_values(definition, sort_by=()))


def rewrite_groups(
    table: OpenTable,
    head: Head,
    groups: Sequence[CompactGroup],
    run: GroupRun,
    operation: Operation,
    *,
    dry_run: bool,
    progress: CompactProgress | None = None,
    must_keep: bool = False,
    is_over: Callable[[], bool] | None = None,
) -> Compacted:
    """Rewrite these groups of a version, and commit them. `must_keep`: also those that gain nothing."""
    tally = _Tally(table.name, head.root.version, groups, is_dry_run=dry_run)
    where: dict[str, Any] = {"task_count": run.task_count, "choice": run.choice} if groups else {}
    if dry_run or not groups:
        return replace(tally.planned(), **where)
    held: list[DoneGroup] = []
    count = 0
    with upload(head.revision, note=str(operation)), closing(run.do()) as outcomes:
        for some in outcomes:
            for outcome in some:
                if outcome.failed:
                    table.snapshot(head).check_left()
                    tally.failed |= outcome.failed
                if isinstance(outcome, DoneGroup) and (must_keep or is_better(outcome)):
                    held.append(outcome)
            if sum(entry.size_bytes for one in held for entry in one.outputs) >= run.commit_bytes and held:
                tally.add(held, _commit(table, head, held, operation))
                held = []
            count += len(some)
            if progress is not None:
                progress(count, len(groups))
            if is_over is not None and is_over():
                break
        if held:
            tally.add(held, _commit(table, head, held, operation))
    return replace(tally.result(), **where)


@dataclass(frozen=True, slots=True)
class _Landed:
    """The groups that a commit contains, and its version; None when no group was left to commit."""

    version: int | None
    groups: tuple[DoneGroup, ...]


def _commit(table: OpenTable, head: Head, done: Sequence[DoneGroup], operation: Operation) -> _Landed:
    """Commit the groups whose files nobody changed."""
    kept: list[tuple[DoneGroup, ...]] = []

    def prepare(transaction: Transaction) -> None:
        kept.append(tuple(_intact(transaction, head, done)))
        entries = [entry for group in kept[-1] for entry in group.outputs]
        layouts = {layout.id: layout for group in kept[-1] for layout in group.layouts}
        for group in kept[-1]:
            for entry in group.inputs:
                transaction.remove_file(entry.location)
        if entries:
            add_files(transaction, entries, layouts.values())
        dropped = sum(entry.deleted_rows for group in kept[-1] for entry in group.inputs)
        if dropped:
            transaction.count("rows_dropped", dropped)

    try:
        committed: Committed = commit_change(table, operation, prepare)
    except (CommitConflict, RevisionClosed):
        return _Landed(None, ())
    return _Landed(committed.version if committed.is_new else None, kept[-1] if committed.is_new else ())


def _intact(transaction: Transaction, head: Head, done: Sequence[DoneGroup]) -> Iterator[DoneGroup]:
    """The groups that can be committed on top of this version."""
    base = transaction.base
    if transaction.revision.id != head.revision.id or not _is_alike(base.definition, head.root.definition):
        return
    wanted = {entry.location for group in done for entry in group.inputs}
    if base.commit_id == head.root.commit_id:
        yield from done
        return
    known = transaction.snapshot.known_files(wanted)
    for group in done:
        found = [known.get(entry.location) for entry in group.inputs]
        is_same = all(
            one is not None and one.deletes == entry.deletes for one, entry in zip(found, group.inputs, strict=True)
        )
        if is_same and not _is_swept(transaction, head, group):
            yield group


def _is_alike(now: Definition, then: Definition) -> bool:
    """Whether files written for one definition fit the other."""
    return (now.schema, now.spec, now.partition_by) == (then.schema, then.spec, then.partition_by)


def _is_swept(transaction: Transaction, head: Head, group: DoneGroup) -> bool:
    """Whether a sweep since `head` may delete the new files (R5). Makes no request when there was no sweep."""
    horizon_us = transaction.base.horizon_us
    if horizon_us <= head.root.horizon_us:
        return False
    store, keys = transaction.revision.store, transaction.revision.keys
    names = [keys.file(entry.location) for entry in group.outputs]
    objects = side_by_side(store.head, [key for key in names if key is not None], store.parallel_requests)
    return any(found is None or to_us(found.modified) < horizon_us for found in objects)


class _Tally:
    """Counts what was done."""

    def __init__(self, table: str, version: int, groups: Sequence[CompactGroup], *, is_dry_run: bool) -> None:
        self.table, self.version, self.groups, self.is_dry_run = table, version, groups, is_dry_run
        self.failed: dict[str, str] = {}
        self._landed: list[_Landed] = []
        self._given_up = 0

    def add(self, held: Sequence[DoneGroup], landed: _Landed) -> None:
        self._given_up += sum(len(one.inputs) for one in held) - sum(len(one.inputs) for one in landed.groups)
        self._landed.append(landed)
        self.version = self.version if landed.version is None else landed.version

    def planned(self) -> Compacted:
        """What would be done."""
        files = [file for group in self.groups for file in group.files]
        return Compacted(
            table=self.table,
            is_dry_run=self.is_dry_run,
            version=self.version,
            files_before=len(files),
            bytes_before=sum(file.entry.size_bytes for file in files),
            blocks_copied=sum(len(blocks) for group in self.groups for blocks in group.copied),
            blocks_encoded=sum(len(blocks) for group in self.groups for blocks in group.encoded),
            bytes_copied=sum(group.copied_bytes for group in self.groups),
            bytes_encoded=sum(group.encoded_bytes for group in self.groups),
            rows_dropped=sum(file.entry.deleted_rows for file in files),
            reasons=self._reasons(),
        )

    def result(self) -> Compacted:
        """What was done."""
        done = [group for landed in self._landed for group in landed.groups]
        inputs = [entry for group in done for entry in group.inputs]
        outputs = [entry for group in done for entry in group.outputs]
        return Compacted(
            table=self.table,
            is_dry_run=False,
            version=self.version,
            commit_count=sum(landed.version is not None for landed in self._landed),
            files_before=len(inputs),
            files_after=len(outputs),
            bytes_before=sum(entry.size_bytes for entry in inputs),
            bytes_after=sum(entry.size_bytes for entry in outputs),
            blocks_copied=sum(group.copied_blocks for group in done),
            blocks_encoded=sum(group.encoded_blocks for group in done),
            bytes_copied=sum(group.copied_bytes for group in done),
            bytes_encoded=sum(group.encoded_bytes for group in done),
            rows_dropped=sum(entry.deleted_rows for entry in inputs),
            given_up=self._given_up,
            failed=self.failed,
            reasons=self._reasons(),
        )

    def _reasons(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for group in self.groups:
            for file in group.files:
                found[file.reason.value] = found.get(file.reason.value, 0) + 1
        return found
