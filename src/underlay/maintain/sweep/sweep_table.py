"""Sweeps the active revision of a table, in two phases: R5 (docs/commit-rules.md).

1. A root with a horizon H is committed. H is the store's clock less the grace period, and not after the start of any
   live job. From then on, a writer that rebases over this root checks that its uploads still exist and are not older
   than H; a writer that begins later uploads later.
2. Objects that are ours by name, older than H, and referenced by no version are deleted. What counts are the references
   of the root with the horizon and of all roots before it that exist: a later version references only what these do,
   and younger objects.

A crash leaves some objects undeleted. The next sweep lists and deletes the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from underlay.index.keys import ObjectKind
from underlay.index.operation import Operation
from underlay.maintain.expire.holders import Holders, find_holders
from underlay.maintain.expire.tombstones import bury
from underlay.maintain.sweep.delete_objects import Choose, Found, delete_chosen
from underlay.maintain.sweep.references import References, find_references
from underlay.maintain.sweep.refusals import check_clock, check_grace, check_history
from underlay.maintain.sweep.swept import Progress, SweptFolder
from underlay.table.care_settings import read_settings
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.coordination.intent import list_intents
from underlay.table.coordination.lease import list_leases
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.environment import to_us
from underlay.table.versions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadBeacons:
    """Jobs and readers of a revision that have been gone for the grace period, and jobs that are alive."""

    intents: frozenset[str]
    leases: frozenset[str]
    live_jobs: frozenset[str]
    is_held: bool
    """Whether a job or a reader is alive."""


def find_dead(revision: Revision, grace: timedelta) -> DeadBeacons:
    """Finds intents and leases that expired longer ago than the grace period. Two requests when there are none."""
    intents = list_intents(revision.store, revision.keys)
    leases = list_leases(revision.store, revision.keys)
    return DeadBeacons(
        intents=frozenset(one.found.name for one in intents if one.left < -grace),
        leases=frozenset(one.found.name for one in leases if one.left < -grace),
        live_jobs=frozenset(one.found.name for one in intents if one.is_alive),
        is_held=any(one.is_alive for one in intents) or any(one.is_alive for one in leases),
    )


def check_table(table: OpenTable, grace: timedelta) -> tuple[Head, Holders]:
    """The table's head and holders. Raises InvalidRequest or Inconsistent if a sweep would be dangerous."""
    head = table.head()
    reader_age = read_settings(head.root.definition.properties).reader_age
    check_grace(grace, reader_age, table.name)
    holders = find_holders(table.lake, table.name, head.revision, reader_age)
    check_clock(head.revision, head.root, holders.now)
    check_history(head.revision, head.root, holders, table.lake.registry, table.name)
    return head, holders


def sweep_table(table: OpenTable, grace: timedelta, *, dry_run: bool, progress: Progress | None = None) -> SweptFolder:
    """Delete what no version of the table references.

    Costs one listing of the revision, what references cost (see `find_references`), and, if there is something to
    delete, one commit and one request per 1,000 objects. Raises Damaged when a version cannot be read, and what
    `check_table` raises.
    """
    head, holders = check_table(table, grace)
    revision = head.revision
    if not dry_run:
        bury(revision, head.root, holders, read_settings(head.root.definition.properties).reader_age)
    known = find_references(revision, head.root)
    horizon_us = to_us(holders.now - grace)
    if holders.jobs_since_us is not None:
        horizon_us = min(horizon_us, holders.jobs_since_us)
    dead = find_dead(revision, grace)
    versions: list[int] = []

    def choose_by(references: References, found: list[Found]) -> list[Found]:
        return _choose(found, references, dead, horizon_us)

    def forbid() -> Choose:
        def prepare(transaction: Transaction) -> None:
            transaction.sweep(horizon_us)

        committed = commit_change(table, Operation.SWEEP, prepare, base=head)
        versions.append(committed.version)
        is_next = committed.head.root.parent_id == head.root.commit_id
        # The next version references only what its parent does, and younger objects.
        newer = known if is_next else find_references(revision, committed.head.root)
        return partial(choose_by, newer)

    tally = delete_chosen(
        revision.store, list_kinds(revision), partial(choose_by, known), None if dry_run else forbid, progress
    )
    return SweptFolder(
        folder=revision.place,
        table=table.name,
        reason="unreferenced",
        version=versions[0] if versions else None,
        horizon=holders.now - timedelta(microseconds=to_us(holders.now) - horizon_us),
        listed_count=tally.listed_count,
        object_count=tally.object_count,
        size_bytes=tally.size_bytes,
        kinds=dict(tally.kinds),
        examples=tuple(tally.examples),
    )


def list_kinds(revision: Revision) -> Iterator[Found]:
    """The objects of a revision that are ours, page by page."""
    for found in revision.store.list_objects(revision.keys.folder):
        kind, name = revision.keys.kind_of(found.key)
        if kind is not ObjectKind.FOREIGN:
            yield kind, name, found


def _choose(some: list[Found], references: References, dead: DeadBeacons, horizon_us: int) -> list[Found]:
    old = [one for one in some if to_us(one[2].modified) < horizon_us]
    stored = [name for kind, name, _ in old if kind in (ObjectKind.FILE, ObjectKind.SIDECAR)]
    has_file = dict(zip(stored, references.has_files(stored), strict=True))

    def goes(kind: ObjectKind, name: str) -> bool:
        match kind:
            case ObjectKind.FILE | ObjectKind.SIDECAR:
                return not has_file[name]
            case ObjectKind.SEGMENT:
                return name not in references.segments
            case ObjectKind.PAGE:
                return name not in references.pages
            case ObjectKind.STAGED:
                return name not in dead.live_jobs
            case ObjectKind.INTENT:
                return name in dead.intents
            case ObjectKind.LEASE:
                return name in dead.leases
        return False  # roots, hints and records

    return [one for one in old if goes(one[0], one[1])]
