"""The lake's catalog: which tables exist, where they lie, and which revision of each is active.

An entry of the catalog's chain holds the changes since an older entry, whose number is its own without the lowest set
bit. So a reader assembles the mapping from at most one entry for each bit of the newest number, all fetched in
parallel, and a change writes log2(n) / 2 records on average (docs/decisions/0029). Entries of format 1, the first one
of a lake and all of older lakes, hold the whole mapping. Everything here is pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from underlay.errors import Inconsistent, InvalidRequest, Malformed, NotFound, TableExists, TableNotFound, Unsupported
from underlay.index.sealed_json import UNDECODED, seal, unseal
from underlay.values.layers import GONE, Gone, Layers

T = TypeVar("T")

WHOLE_FORMAT = 1
FORMAT = 2
TAGS_FORMAT = 3
"""The format of entries whose changes have tags separate from their table's record."""
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MAX_NAME = 100
_RESERVED = frozenset(("information_schema", "memory", "pg_catalog", "system", "temp", "underlay"))
"""Catalogs and schemas of DuckDB, where a table could not be queried, and the dataset of system views."""
ACTIVE = "active"
CLOSED = "closed"


class RevisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of a table. `state` is `active` or `closed`."""

    state: str
    created_us: int


class TagRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A named version."""

    revision: str
    version: int


class TableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A table. `folder` stays when the table is renamed."""

    folder: str
    active: str
    revisions: dict[str, RevisionRecord]
    tags: dict[str, TagRecord] = {}


class DroppedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A table that was dropped and whose folder is still taken."""

    name: str
    revisions: tuple[str, ...]
    dropped_us: int


class CatalogDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What changed between two entries: the new records, None for those that were removed.

    `tags` are by table and tag, on top of the table's record, so that a table's other tags are not written again.
    """

    tables: dict[str, TableRecord | None] = {}
    dropped: dict[str, DroppedRecord | None] = {}
    tags: dict[str, dict[str, TagRecord | None]] = {}


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the chain, as it is stored.

    In format 1 it holds the whole mapping, in formats 2 and 3 `changes` since the entry that `entry_before` names.
    """

    format: int
    lake_id: str
    number: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: str
    base: int | None = None
    """The newest entry that holds the whole mapping; None for the first one, which is empty and need not be read."""
    since_id: str | None = None
    """The commit id of the entry that `changes` are relative to."""
    changes: CatalogDelta | None = None
    tables: dict[str, TableRecord] = {}
    dropped: dict[str, DroppedRecord] = {}


class CatalogStep(NamedTuple):
    """An entry that a mapping was assembled from."""

    number: int
    commit_id: str
    changes: CatalogDelta


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The mapping after one entry. `dropped` is by folder.

    `steps` are the entries that it was assembled from, the newest first, on top of `base`, which is None for the first
    entry of a lake, as long as that is empty. `names` and `folders` map those in use, with case folded, to the table's
    name, or to None for the folder of a dropped table.
    """

    lake_id: str
    number: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: str
    tables: Layers[TableRecord]
    dropped: Layers[DroppedRecord]
    base: int | None
    base_id: str
    steps: tuple[CatalogStep, ...]
    names: Layers[str]
    folders: Layers[str | None]

    def id_of(self, number: int) -> str | None:
        """The commit id of an entry that the mapping was assembled from; None for others."""
        if number == (self.base or 0):
            return self.base_id
        return next((step.commit_id for step in self.steps if step.number == number), None)

    def changed_since(self, number: int) -> CatalogDelta | None:
        """The current records of what may have changed since this entry; None when anything may have."""
        if number < (self.base or 0):
            return None
        return _merged(step.changes for step in reversed(self.steps) if step.number > number)


_DECODER = msgspec.json.Decoder(CatalogEntry)


def encode_entry(entry: CatalogEntry) -> bytes:
    """The bytes of an entry."""
    return seal(msgspec.json.encode(entry))


def decode_entry(data: bytes | memoryview) -> CatalogEntry:
    """The entry in `data`. Raises Malformed, or Unsupported when a newer Underlay wrote it."""
    try:
        entry = _DECODER.decode(unseal(data))
    except UNDECODED as error:
        raise Malformed(f"not an entry of the catalog: {error}") from error
    if entry.format not in (WHOLE_FORMAT, FORMAT, TAGS_FORMAT):
        raise Unsupported("the catalog has an unknown format", expected=TAGS_FORMAT, found=entry.format)
    if entry.format != WHOLE_FORMAT and (
        entry.changes is None or entry.since_id is None or not 0 <= (entry.base or 0) < entry.number
    ):
        raise Malformed("an entry of the catalog does not say what it changes", place="base, since_id, changes")
    return entry


def entry_before(number: int, base: int | None) -> int:
    """The entry that the changes of this one are relative to: its number without the lowest set bit."""
    return max(number & (number - 1), base or 0)


def entries_of(number: int, base: int | None) -> list[int]:
    """The entries from which the mapping after this one is assembled, the newest first: at most one for each bit of the
    number, and the one that holds the whole mapping, if any does."""
    found = [number]
    while found[-1] > (base or 0):
        found.append(entry_before(found[-1], base))
    return found[:-1] if base is None and number else found


def put_together(entries: Iterable[CatalogEntry], known: Catalog | None = None) -> Catalog:
    """The mapping after the last of these entries: those of `entries_of`, the oldest first, or only those newer than
    `known`. Raises Inconsistent when they are not of one history."""
    for entry in entries:
        known = whole_catalog(entry) if entry.changes is None else catalog_after(known or _empty_before(entry), entry)
    assert known is not None, "a catalog has at least one entry"
    return known


def whole_catalog(entry: CatalogEntry) -> Catalog:
    """The mapping that an entry of format 1 holds."""
    return Catalog(
        lake_id=entry.lake_id,
        number=entry.number,
        commit_id=entry.commit_id,
        parent_id=entry.parent_id,
        committed_us=entry.committed_us,
        operation=entry.operation,
        tables=Layers(entry.tables),
        dropped=Layers(entry.dropped),
        base=entry.number if entry.number or entry.tables or entry.dropped else None,
        base_id=entry.commit_id,
        steps=(),
        names=Layers({name.casefold(): name for name in entry.tables}),
        folders=Layers(
            {
                **{folder.casefold(): None for folder in entry.dropped},
                **{table.folder.casefold(): name for name, table in entry.tables.items()},
            }
        ),
    )


def _empty_before(entry: CatalogEntry) -> Catalog:
    """The mapping of a lake's first entry, which is empty, derived from the oldest entry that is needed after it."""
    first = CatalogEntry(
        format=WHOLE_FORMAT,
        lake_id=entry.lake_id,
        number=0,
        commit_id=(entry.since_id if entry_before(entry.number, None) == 0 else None) or "",
        parent_id=None,
        committed_us=0,
        operation="",
    )
    return whole_catalog(first)


def catalog_after(before: Catalog, entry: CatalogEntry) -> Catalog:
    """The mapping after an entry. `before` must not be older than the entry that the changes are relative to. Raises
    Inconsistent when the entry is of another history."""
    if entry.changes is None:
        return whole_catalog(entry)
    since = entry_before(entry.number, entry.base)
    if (entry.lake_id, entry.base) != (before.lake_id, before.base) or before.id_of(since) != entry.since_id:
        raise Inconsistent(
            f"the changes of catalog entry {entry.number} are not relative to entry {since}: two histories are mixed",
            expected=f"entry {since} with the commit id {entry.since_id}",
            found=before.id_of(since) or f"a catalog on entry {before.base or 0}",
            hint='The lake was replaced, or an older copy of it was put back. "underlay verify" names the entries.',
        )
    changes = entry.changes
    tables = before.tables.after(_edits(changes.tables))
    if not all(name in tables for name in changes.tags):
        raise Inconsistent(
            f"catalog entry {entry.number} has tags of a table that does not exist", place="changes, tags"
        )
    tables = tables.after({name: _tagged(tables[name], marks) for name, marks in changes.tags.items()})
    names: dict[str, str | Gone] = {}
    folders: dict[str, str | Gone | None] = {}
    for name, record in changes.tables.items():
        if record is not None:
            names[name.casefold()] = folders[record.folder.casefold()] = name
        else:
            names.setdefault(name.casefold(), GONE)  # unless the same change adds the name in other case
    for folder, gone in changes.dropped.items():
        folders[folder.casefold()] = None if gone is not None else GONE
    step = CatalogStep(entry.number, entry.commit_id, changes)
    return Catalog(
        lake_id=entry.lake_id,
        number=entry.number,
        commit_id=entry.commit_id,
        parent_id=entry.parent_id,
        committed_us=entry.committed_us,
        operation=entry.operation,
        tables=tables,
        dropped=before.dropped.after(_edits(changes.dropped)),
        base=before.base,
        base_id=before.base_id,
        steps=(step, *(known for known in before.steps if known.number <= since)),
        names=before.names.after(names),
        folders=before.folders.after(folders),
    )


def entry_after(
    head: Catalog, operation: str, changes: CatalogDelta, *, commit_id: str, committed_us: int
) -> CatalogEntry:
    """The entry that changes the mapping of `head`. It holds the changes since `entry_before`, so sizes vary: half of
    the entries hold one change, and one in 2^n holds 2^n."""
    number = head.number + 1
    since = entry_before(number, head.base)
    newer = [step.changes for step in reversed(head.steps) if step.number > since]
    merged = _merged([*newer, changes])
    return CatalogEntry(
        format=TAGS_FORMAT if merged.tags else FORMAT,
        lake_id=head.lake_id,
        number=number,
        commit_id=commit_id,
        parent_id=head.commit_id,
        committed_us=committed_us,
        operation=operation,
        base=head.base,
        since_id=head.id_of(since),
        changes=merged,
    )


def _merged(deltas: Iterable[CatalogDelta]) -> CatalogDelta:
    """The deltas merged, in order."""
    tables: dict[str, TableRecord | None] = {}
    dropped: dict[str, DroppedRecord | None] = {}
    tags: dict[str, dict[str, TagRecord | None]] = {}
    for delta in deltas:
        tables.update(delta.tables)
        dropped.update(delta.dropped)
        tags = {name: marks for name, marks in tags.items() if name not in delta.tables}
        for name, marks in delta.tags.items():
            record = tables.get(name)
            if record is None:
                tags[name] = tags.get(name, {}) | marks
            else:
                tables[name] = _tagged(record, marks)
    return CatalogDelta(tables=tables, dropped=dropped, tags=tags)


def _tagged(record: TableRecord, marks: Mapping[str, TagRecord | None]) -> TableRecord:
    tags = {tag: found for tag, found in {**record.tags, **marks}.items() if found is not None}
    return msgspec.structs.replace(record, tags=tags)


def _edits(changes: Mapping[str, T | None]) -> dict[str, T | Gone]:
    return {name: GONE if record is None else record for name, record in changes.items()}


def split_name(name: str) -> tuple[str, str]:
    """The dataset and the table of a name. Raises InvalidRequest."""
    parts = name.split(".") if isinstance(name, str) else []
    if len(parts) != 2 or len(name) > _MAX_NAME or not all(_PART.fullmatch(part) for part in parts):
        raise InvalidRequest(
            "not a name for a table",
            found=repr(name),
            hint="A name is dataset.table; both parts are ASCII letters, digits, - and _, beginning with a letter or "
            f"digit; {_MAX_NAME} characters at most.",
        )
    return parts[0], parts[1]


def find_table(catalog: Catalog, name: str) -> TableRecord:
    """The table of this name. Raises TableNotFound, and InvalidRequest for an invalid name."""
    if not isinstance(name, str):
        split_name(name)  # raises
    record = catalog.tables.get(name)
    if record is None:
        near = catalog.names.get(name.casefold())
        hint = f"There is {near}." if near else "List the tables to see what there is."
        raise TableNotFound(f"there is no table {name}", hint=hint)
    return record


def names_revision(catalog: Catalog, folder: str, revision: str) -> bool:
    """Whether the table in this folder, which may have been dropped, has this revision."""
    if (dropped := catalog.dropped.get(folder)) is not None:
        return revision in dropped.revisions
    return owner_of(catalog, folder, revision) is not None


def owner_of(catalog: Catalog, folder: str, revision: str) -> str | None:
    """The name of the table that lies in this folder and has this revision, or None."""
    name = catalog.folders.get(folder.casefold())
    return name if name is not None and revision in catalog.tables[name].revisions else None


def check_free(catalog: Catalog, name: str, *, other_than: str | None = None) -> None:
    """Raise TableExists when a table except `other_than` has this name, ignoring case, InvalidRequest for an invalid
    name."""
    dataset, _ = split_name(name)
    if dataset.casefold() in _RESERVED:
        raise InvalidRequest(
            f"a dataset cannot be called {dataset}",
            place=name,
            hint="SQL uses this name for a catalog of its own. Choose another one.",
        )
    taken = catalog.names.get(name.casefold())
    if taken is not None and taken != other_than:
        raise TableExists(f"there is a table {taken}", hint="Choose another name, or drop or rename that table.")


def check_tag(tag: str) -> None:
    """Raise InvalidRequest unless a tag may have this name."""
    if not _PART.fullmatch(tag) or len(tag) > _MAX_NAME:
        raise InvalidRequest("not a name for a tag", found=repr(tag), hint="Use ASCII letters, digits, - and _.")


def find_tag(record: TableRecord, name: str, tag: str) -> TagRecord:
    """The version that the tag names. Raises NotFound."""
    found = record.tags.get(tag)
    if found is None:
        raise NotFound(f"{name} has no tag {tag}", hint=f"Tags: {', '.join(sorted(record.tags)) or 'none'}.")
    return found
