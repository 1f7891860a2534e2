"""What a table knows of some sources: which are new, which it has, and which other runs have claimed.

A source's record in the tree says which content was ingested (`identity`) and, whatever its status, how many rows of
the source are in the table now (`row_count`):

    done      these are the rows of `identity`
    claimed   `owner` is at work; the rows, if any, are those of `identity`, which is empty when that is not known
    failed    `identity` could not be read, for the reason `error`; the rows are those of an earlier content

so that a claim, a failure or a crash never makes the table forget that rows of a source are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from underlay.errors import SourceChanged
from underlay.index.root import SourceRecord
from underlay.ingest.rows.reading import ChangedPolicy
from underlay.ingest.source.source import Source
from underlay.runtime.process import is_gone
from underlay.runtime.threads import side_by_side
from underlay.table.coordination.intent import Intent, decode_intent
from underlay.table.coordination.liveness import SeenBeacon, find_kept
from underlay.table.open_table import Head, OpenTable

_READERS = 16
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A source as it was found, and its record, if it has one."""

    found: Source
    record: SourceRecord | None = None

    @property
    def rows_there(self) -> int:
        """Rows of the source that are in the table, of another content than was found."""
        return self.record.row_count if self.record is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Sources by what a version of the table knows of them, each list in the order in which they were found."""

    new: tuple[LedgerEntry, ...] = ()
    known: tuple[LedgerEntry, ...] = ()
    """Ingested, with this content."""
    changed: tuple[LedgerEntry, ...] = ()
    """Ingested, with different content."""
    claimed: tuple[LedgerEntry, ...] = ()
    """Claimed by another live run."""
    takeable: tuple[LedgerEntry, ...] = ()
    """Claimed by a run that died; nothing of them is in the table."""
    failed: tuple[LedgerEntry, ...] = ()
    """This content could not be read before."""

    def wanted(self, policy: ChangedPolicy = "error", *, retry_failed: bool = False) -> list[LedgerEntry]:
        """The sources to claim. Raises SourceChanged by the policy."""
        if self.changed and policy == "error":
            raise _changed(self.changed)
        again = [one for one in self.failed if policy == "replace" or not one.rows_there] if retry_failed else []
        return [*self.new, *self.takeable, *again, *(self.changed if policy == "replace" else ())]


def sort_out(table: OpenTable, head: Head, found: Sequence[Source]) -> Ledger:
    """What this version knows of the sources.

    Reads the pages of the source tree that lie on the way to them, level by level, and nothing else unless some are
    claimed; then one request for each run that claims some, and the clock's.
    """
    snapshot = table.snapshot(head)
    records = snapshot.find_sources([one.uri for one in found])
    owners = {record.owner for record in records.values() if record.status == "claimed" and record.owner is not None}
    living = living_runs(head, owners)
    return classify(found, records, living)


def classify(found: Iterable[Source], records: Mapping[str, SourceRecord], living: Collection[str]) -> Ledger:
    """The ledger of these sources, given their records and the runs that live. Pure."""
    lists: dict[str, list[LedgerEntry]] = {}
    for one in found:
        record = records.get(one.uri)
        lists.setdefault(_kind(one, record, living), []).append(LedgerEntry(found=one, record=record))
    return Ledger(**{kind: tuple(entries) for kind, entries in lists.items()})


def living_runs(head: Head, runs: Collection[str]) -> set[str]:
    """Those of the runs that count as alive, by their intents and the store's clock. One whose process was on this
    machine and is gone does not, whatever its time to live."""
    if not runs:
        return set()
    store, keys = head.revision.store, head.revision.keys
    names = sorted(runs)
    seen = side_by_side(lambda name: find_kept(store, keys.intent(name), decode_intent), names, _READERS)
    if not any(seen):
        return set()
    now = store.now()  # asked last, so that no intent is younger
    return {name for name, one in zip(names, seen, strict=True) if one and _is_alive(SeenBeacon(found=one, now=now))}


def _is_alive(seen: SeenBeacon[Intent]) -> bool:
    return seen.is_alive and not (seen.record is not None and is_gone(seen.record.process))


def _kind(found: Source, record: SourceRecord | None, living: Collection[str]) -> str:
    if record is None:
        return "new"
    is_same = record.identity == found.identity
    if record.status == "claimed":
        if record.owner in living:
            return "claimed"
        if not record.row_count:
            return "takeable"
        return "known" if is_same else "changed"
    if record.status == "failed":
        if is_same:
            return "failed"
        return "changed" if record.row_count else "new"
    return "known" if is_same else "changed"


def _changed(entries: Sequence[LedgerEntry]) -> SourceChanged:
    first = entries[0]
    named = ", ".join(one.found.uri for one in entries[:_SHOWN])
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    count = len(entries)
    counted = "a source changed since it was" if count == 1 else f"{count} sources changed since they were"
    return SourceChanged(
        f"{counted} ingested: {named}{more}",
        expected=first.record.identity if first.record else None,
        found=first.found.identity,
        hint='Use --changed skip (in Python changed="skip") to keep the old rows, --changed replace to replace them.',
    )
