"""Sorts sources by what a table knows about them: which are new, which it has, and which other runs have claimed.

A source's record in the tree says which content was ingested (`identity`) and, whatever its status, how many rows of
the source are in the table now (`row_count`):

    done      these are the rows of `identity`
    claimed   `owner` is at work; the rows, if any, are those of `identity`, which is empty when that is not known
    failed    `identity` could not be read, for the reason `error`; the rows are those of an earlier content

so a claim, a failure or a crash never makes the table forget that it has rows of a source. `content` is the hash of the
bytes that these rows came from. A file that was touched or copied has another identity but the same bytes: it counts as
known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from underlay.index.root import SourceRecord
from underlay.ingest.rows.reading import ChangedPolicy
from underlay.ingest.source.pinned import hash_content, may_be_content
from underlay.ingest.source.source import Source
from underlay.runtime.process import is_gone
from underlay.runtime.threads import side_by_side
from underlay.store.open import Option
from underlay.table.coordination.intent import Intent, decode_intent
from underlay.table.coordination.liveness import SeenBeacon, find_kept
from underlay.table.open_table import Head, OpenTable

_READERS = 16
_HASHERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A source as it was found, and its record, if it has one."""

    found: Source
    record: SourceRecord | None = None

    @property
    def rows_there(self) -> int:
        """How many rows of the source the table has from content other than what was found."""
        return self.record.row_count if self.record is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Sources by what a version of the table knows about them; each list keeps the order in which they were found."""

    new: tuple[LedgerEntry, ...] = ()
    known: tuple[LedgerEntry, ...] = ()
    """Ingested, with this content."""
    touched: tuple[LedgerEntry, ...] = ()
    """Known sources whose identity differs from the record's, with the same bytes."""
    changed: tuple[LedgerEntry, ...] = ()
    """Ingested, with different content."""
    claimed: tuple[LedgerEntry, ...] = ()
    """Claimed by another live run."""
    takeable: tuple[LedgerEntry, ...] = ()
    """Claimed by a run that died; the table has none of their rows."""
    failed: tuple[LedgerEntry, ...] = ()
    """This content could not be read before."""

    def wanted(self, selection: SourceChoice | None = None) -> list[LedgerEntry]:
        """The sources to claim."""
        chosen = selection or SourceChoice()
        retried = [one for one in self.failed if chosen.retries(one)]
        changed = [one for one in self.changed if chosen.policy == "replace" or one.found.uri in chosen.again]
        again = [one for one in self.known if one.found.uri in chosen.again]
        return [*self.new, *self.takeable, *retried, *changed, *again]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """Which sources are ingested besides new ones."""

    policy: ChangedPolicy = "error"
    retry_failed: bool = False
    again: Set[str] = frozenset()
    """URIs of sources that are read again, whatever the table knows of them."""
    options: str | None = None
    """A fingerprint of the reading options: sources that failed with other options are retried."""

    def retries(self, failed: LedgerEntry) -> bool:
        """Whether a source that failed with this content is read again. Its older rows must be replaceable."""
        if failed.found.uri in self.again:
            return True
        before = failed.record.options if failed.record is not None else None
        is_other = before is not None and self.options is not None and before != self.options
        return (self.retry_failed or is_other) and (self.policy == "replace" or not failed.rows_there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Hashes of sources whose identity differs from their record's, each computed once."""

    options: Mapping[str, Option] = field(default_factory=dict, repr=False)
    """Options of the sources' stores."""
    _known: dict[Source, str | None] = field(default_factory=dict)

    def have(self, entries: Sequence[LedgerEntry]) -> list[bool]:
        """Which sources still have the bytes that their rows came from. Reads those that may."""
        maybe = [
            one.found for one in entries if one.record is not None and may_be_content(one.record.content, one.found)
        ]
        missing = [found for found in maybe if found not in self._known]
        hashes = side_by_side(lambda found: hash_content(found, self.options), missing, _HASHERS)
        self._known.update(zip(missing, hashes, strict=True))
        contents = [one.record.content if one.record is not None else None for one in entries]
        return [
            content is not None and self._known.get(one.found) == content
            for one, content in zip(entries, contents, strict=True)
        ]


def sort_out(table: OpenTable, head: Head, found: Sequence[Source], contents: Contents | None = None) -> Ledger:
    """What this version knows about the sources.

    Reads only the pages of the source tree on the path to them, level by level. If some are claimed, adds one request
    for each run that claims them, and the clock's. A source that seems to have changed but has the size of what was
    ingested is read and hashed.
    """
    snapshot = table.snapshot(head)
    records = snapshot.find_sources([one.uri for one in found])
    owners = {record.owner for record in records.values() if record.status == "claimed" and record.owner is not None}
    ledger = classify(found, records, living_runs(head, owners))
    same = (contents or Contents()).have(ledger.changed)
    if not any(same):
        return ledger
    touched = tuple(one for one, is_same in zip(ledger.changed, same, strict=True) if is_same)
    changed = tuple(one for one, is_same in zip(ledger.changed, same, strict=True) if not is_same)
    return replace(ledger, known=(*ledger.known, *touched), touched=touched, changed=changed)


def classify(found: Iterable[Source], records: Mapping[str, SourceRecord], living: Collection[str]) -> Ledger:
    """The ledger of these sources, given their records and the runs that are alive. Pure."""
    lists: dict[str, list[LedgerEntry]] = {}
    for one in found:
        record = records.get(one.uri)
        lists.setdefault(_kind(one, record, living), []).append(LedgerEntry(found=one, record=record))
    return Ledger(**{kind: tuple(entries) for kind, entries in lists.items()})


def living_runs(head: Head, runs: Collection[str]) -> set[str]:
    """The runs that count as alive, by their intents and the store's clock. A run whose process was on this machine and
    is gone does not, whatever its time to live.
    """
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
    if is_same:
        return "known"
    return "changed" if record.row_count else "new"
