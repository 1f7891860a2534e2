"""Expires versions by age and number, except those that tags, leases and jobs hold (R2, R6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from underlay.index.keys import HOT_FENCE
from underlay.index.operation import Operation
from underlay.index.root import Retention, Root
from underlay.maintain.expire.choose import choose
from underlay.maintain.expire.holders import Holders, find_holders
from underlay.maintain.expire.tombstones import Buried, Progress, bury
from underlay.store.store import StoredObject
from underlay.table.care_settings import (
    DEFAULT_KEEP_FOR,
    DEFAULT_KEEP_VERSIONS,
    CareSettings,
    check_keep,
    read_settings,
)
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.revision import Revision
from underlay.values.duration import read_duration

_EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What an expiry did, or would do."""

    table: str
    is_dry_run: bool
    version: int | None
    """The commit that records the retained versions; None if nothing changed."""
    version_count: int
    """Versions that expired."""
    examples: tuple[int, ...]
    """Some of them."""
    oldest_left: int
    """This version and all later ones are retained."""
    also_left: tuple[int, ...]
    """Older versions that are retained."""
    tags: dict[str, int]
    """Tags that retain versions that would otherwise have expired."""
    leases: dict[str, int | None]
    """Leases that do, by reader; None for an unreadable lease, which retains all versions."""
    exports: dict[str, int]
    """Exports to other engines that do."""
    tombstone_count: int
    """Roots of expired versions that were replaced by tombstones."""
    size_bytes: int
    """Bytes of these roots and of the deleted records."""
    waiting_count: int
    """Roots that are kept for now, since a reader may have opened the version while it was the newest."""
    record_count: int
    """Deleted records of runs."""
    jobs: tuple[str, ...]
    """Ended jobs whose epochs are forgotten."""


def expire(
    table: OpenTable,
    *,
    older_than: str | timedelta | None = None,
    keep: int | None = None,
    dry_run: bool = True,
    progress: Progress | None = None,
) -> Expired:
    """Expire the versions that are older than `older_than` and not among the newest `keep`.

    Both are the table's properties unless they are given, else 7 days and 10. A version's age counts from its
    successor's commit time to the store's clock. Records of runs of that age go too, and epochs of jobs that ended.
    Raises InvalidRequest for an invalid span or number, and what a commit raises.
    """
    head = table.head()
    rules = _read_rules(read_settings(head.root.definition.properties), older_than, keep)
    holders = find_holders(table.lake, table.name, head.revision, rules.reader_age)
    # First finish what an interrupted expiry left: the commit then says how far it came.
    before = bury(head.revision, head.root, holders, rules.reader_age, dry_run=dry_run)
    if dry_run:
        wanted = _choose(head, holders, rules, before.end)
        return _dry_result(table, head, wanted, holders, rules, before)
    held = [holders]

    def prepare(transaction: Transaction) -> None:
        base = Head(head.revision, transaction.base)
        held[0] = find_holders(table.lake, table.name, head.revision, rules.reader_age)
        wanted = _choose(base, held[0], rules, before.end)
        if wanted != base.root.retention:
            jobs = _ended_jobs(base, held[0], wanted)
            transaction.expire(wanted, jobs)
            transaction.count("versions_expired", len(_newly_expired(base.root.retention, wanted)))

    committed = commit_change(table, Operation.EXPIRE, prepare)
    after = committed.head
    holders = find_holders(table.lake, table.name, after.revision, rules.reader_age)
    was, now_left = head.root.retention, after.root.retention
    if any(was.has(version) and not now_left.has(version) for version in holders.versions):
        # Tagged or leased after we looked, and before the commit: it is kept, as long as its root exists.
        after = commit_change(table, Operation.EXPIRE, prepare).head
    done = bury(after.revision, after.root, holders, rules.reader_age, progress=progress)
    records = _old_records(after.revision, holders, rules)
    _delete_records(after.revision, records)
    delta = committed.head.root.delta
    is_own = committed.is_new and delta.retention is not None
    gone = _newly_expired(head.root.retention, after.root.retention)
    return _result(
        table,
        gone if is_own else (),
        after.root.retention,
        held[0],
        version=committed.version if is_own else None,
        buried=(before, done),
        records=records,
        jobs=delta.ended_jobs if is_own else (),
        dry_run=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    older_than: timedelta
    keep: int
    reader_age: timedelta


def _read_rules(settings: CareSettings, older_than: str | timedelta | None, keep: int | None) -> _Rules:
    given = None if older_than is None else read_duration(older_than, "older_than")
    kept = settings.keep_versions if keep is None else check_keep(keep)
    return _Rules(
        older_than=next(one for one in (given, settings.keep_for, DEFAULT_KEEP_FOR) if one is not None),
        keep=DEFAULT_KEEP_VERSIONS if kept is None else kept,
        reader_age=settings.reader_age,
    )


def _choose(head: Head, holders: Holders, rules: _Rules, buried: int) -> Retention:
    """The versions to keep. The same value as before when nothing more expires, however many roots were replaced."""
    before = head.root.retention
    wanted = choose(head.revision, head.root, holders, older_than=rules.older_than, keep=rules.keep, buried=buried)
    is_same = (wanted.begin, wanted.also) == (before.begin, before.also)
    return before if is_same else wanted


def _newly_expired(before: Retention, after: Retention) -> Sequence[int]:
    older = [version for version in before.also if not after.has(version)]
    return [*older, *(version for version in range(before.begin, after.begin) if not after.has(version))]


def _ended_jobs(head: Head, holders: Holders, wanted: Retention) -> dict[str, int]:
    """Epochs of jobs without an intent that have not changed in any version that is kept."""
    fences = head.root.fences.items()
    idle = {job: epoch for job, epoch in fences if job not in holders.intents and not job.startswith(HOT_FENCE)}
    if not idle:
        return {}
    oldest: Root = head.revision.root(wanted.begin)
    return {job: epoch for job, epoch in idle.items() if oldest.fences.get(job) == epoch}


def _old_records(revision: Revision, holders: Holders, rules: _Rules) -> list[StoredObject]:
    """Records of runs that ended long ago, but for the newest."""
    found = sorted(revision.store.list_objects(revision.keys.records), key=lambda one: one.modified, reverse=True)
    return [one for one in found[rules.keep :] if holders.now - one.modified > rules.older_than]


def _delete_records(revision: Revision, records: Sequence[StoredObject]) -> None:
    if not records:
        return
    revision.store.delete([one.key for one in records])
    registry = revision.surroundings.registry
    if registry is not None:
        for one in records:
            registry.saw_run(revision.keys, revision.id, revision.keys.recorded_job_of(one.key) or "")


def _dry_result(
    table: OpenTable, head: Head, wanted: Retention, holders: Holders, rules: _Rules, before: Buried
) -> Expired:
    gone = _newly_expired(head.root.retention, wanted)
    jobs = tuple(_ended_jobs(head, holders, wanted)) if gone else ()
    records = _old_records(head.revision, holders, rules)
    return _result(
        table, gone, wanted, holders, version=None, buried=(before,), records=records, jobs=jobs, dry_run=True
    )


def _result(
    table: OpenTable,
    gone: Sequence[int],
    left: Retention,
    holders: Holders,
    *,
    version: int | None,
    buried: Sequence[Buried],
    records: Sequence[StoredObject],
    jobs: tuple[str, ...],
    dry_run: bool,
) -> Expired:
    held = set(left.also)
    return Expired(
        table=table.name,
        is_dry_run=dry_run,
        version=version,
        version_count=len(gone),
        examples=tuple(gone[:_EXAMPLES]),
        oldest_left=left.begin,
        also_left=left.also,
        tags={tag: one for tag, one in holders.tags.items() if one in held},
        leases={reader: one for reader, one in holders.leases.items() if one is None or one in held},
        exports={name: one for name, one in holders.exports.items() if one in held},
        tombstone_count=sum(one.count for one in buried),
        size_bytes=sum(one.size_bytes for one in buried) + sum(one.size_bytes for one in records),
        waiting_count=len(buried[-1].waiting),
        record_count=len(records),
        jobs=jobs,
    )
