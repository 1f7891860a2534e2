"""Verifies that the catalog's chain is intact, contiguous and of one lake; finds the newest readable entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from underlay.errors import Damaged, Inconsistent, NotFound, UnderlayError, Unsupported
from underlay.index.catalog import (
    ACTIVE,
    Catalog,
    CatalogEntry,
    catalog_after,
    decode_entry,
    entries_of,
    entry_before,
    put_together,
    whole_catalog,
)
from underlay.index.keys import CATALOG, CATALOG_HINT, catalog_key
from underlay.index.sealed_json import UNDECODED
from underlay.maintain.verify.finding import CatalogReport, FindingKind, Severity, VerifyFinding
from underlay.maintain.verify.links import Link, find_backward, find_numbers, find_strangers
from underlay.maintain.verify.runner import VerifyContext
from underlay.store.store import Store
from underlay.table.versions.chain import Hint

ENTRY_LOST = "This state of the catalog is lost. Tables created, renamed or dropped since must be found by hand."
ENTRY_UNUSED = "Newer entries are intact and no longer need it: no table is affected, only the catalog's history."


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCheck:
    """What was found, and the newest entry that can be trusted."""

    report: CatalogReport
    newest: Catalog | None


def verify_catalog(work: VerifyContext) -> CatalogCheck:
    """Read every entry. Raises NotFound when there is no lake."""
    keys = {found.key for found in work.store.list_objects(CATALOG) if found.key.endswith(".json")}
    numbers = find_numbers(keys, catalog_key)
    if not numbers:
        raise NotFound("there is no lake here", place=work.store.url, hint='Make one with "underlay init".')
    read = dict(zip(numbers, work.each(lambda number: _read(work.store, number), numbers), strict=True))
    whole = {number: found for number, found in read.items() if isinstance(found, CatalogEntry)}
    strangers = find_strangers(_links(whole)) | _of_other_lakes(whole)
    believed = {number: found for number, found in whole.items() if number not in strangers}
    newest = _newest(believed)
    findings = [
        *(_unread(number, found, newest) for number, found in read.items() if isinstance(found, UnderlayError)),
        *(
            _finding(
                number,
                "the entry does not follow the one before, or is another lake's",
                FindingKind.INCONSISTENT,
                newest,
            )
            for number in sorted(strangers)
        ),
        *_contradictions(believed),
        *check_hint(work.store, CATALOG_HINT, numbers[-1], catalog_key),
    ]
    report = CatalogReport(
        entry_count=sum(not isinstance(found, NotFound) for found in read.values()),
        newest=numbers[-1],
        newest_intact=newest.number if newest is not None else None,
        findings=tuple(findings),
    )
    return CatalogCheck(report=report, newest=newest)


def check_hint(store: Store, key: str, newest: int, key_of: Callable[[int], str]) -> Iterator[VerifyFinding]:
    """A finding if a hint points past the end of its chain: nothing relies on it, but somebody once saw that number.
    One request, and a second for a number that did not exist when the chain was listed.
    """
    try:
        number = msgspec.json.decode(store.get(key)[0], type=Hint).number
    except NotFound:
        return
    except UNDECODED:
        yield VerifyFinding(
            kind=FindingKind.DAMAGED,
            severity=Severity.NOTE,
            place=key,
            problem="the hint cannot be read; it is not needed",
        )
        return
    if number > newest and store.head(key_of(number)) is None:
        yield VerifyFinding(
            kind=FindingKind.INCONSISTENT,
            severity=Severity.NOTE,
            place=key,
            problem=f"the hint names number {number}, but the newest object is {newest}",
            hint=f"Unless the lake was restored from an older copy, the objects after {newest} are lost.",
        )


def _read(store: Store, number: int) -> CatalogEntry | UnderlayError:
    try:
        entry = decode_entry(store.get(catalog_key(number))[0])
    except (Damaged, NotFound, Unsupported) as error:
        return error
    if entry.number != number:
        return Inconsistent("the entry has a different number than its key", expected=number, found=entry.number)
    return entry


def _links(entries: Mapping[int, CatalogEntry]) -> dict[int, Link]:
    return {
        number: Link(commit_id=entry.commit_id, parent_id=entry.parent_id, committed_us=entry.committed_us)
        for number, entry in entries.items()
    }


def _of_other_lakes(entries: Mapping[int, CatalogEntry]) -> set[int]:
    """Entries whose lake id differs from the majority's."""
    ids = [entry.lake_id for entry in entries.values()]
    usual = max(ids, key=ids.count, default=None)
    return {number for number, entry in entries.items() if entry.lake_id != usual}


def _unread(number: int, found: UnderlayError, newest: Catalog | None) -> VerifyFinding:
    if isinstance(found, NotFound):
        return _finding(number, "the entry is missing", FindingKind.MISSING, newest)
    return _finding(number, str(found), FindingKind.DAMAGED, newest)


def _finding(number: int, problem: str, kind: FindingKind, newest: Catalog | None) -> VerifyFinding:
    is_newest = newest is None or number > newest.number
    return VerifyFinding(
        kind=kind,
        severity=Severity.LOST,
        place=catalog_key(number),
        problem=problem,
        hint=ENTRY_LOST if is_newest else ENTRY_UNUSED,
    )


def _newest(entries: Mapping[int, CatalogEntry]) -> Catalog | None:
    """The newest mapping whose entries all exist."""
    for number in sorted(entries, reverse=True):
        entry = entries[number]
        needed = [number] if entry.changes is None else entries_of(number, entry.base)
        if entries.keys() >= set(needed):
            with suppress(Inconsistent):
                return put_together(entries[one] for one in reversed(needed))
    return None


def _contradictions(entries: Mapping[int, CatalogEntry]) -> Iterator[VerifyFinding]:
    for number in find_backward(_links(entries)):
        yield _wrong(number, "the entry is not newer than the one before")
    catalog: Catalog | None = None
    for number in sorted(entries):
        entry = entries[number]
        if entry.changes is None:
            catalog = whole_catalog(entry)
        elif catalog is None or number != catalog.number + 1:
            catalog = None  # an earlier one is missing, which was reported
            continue
        else:
            if _leaves_out(catalog, entry):
                yield _wrong(number, "the entry leaves out changes that earlier entries made")
            try:
                catalog = catalog_after(catalog, entry)
            except Inconsistent as error:
                yield _wrong(number, error.problem)
                catalog = None
                continue
        yield from _wrong_tables(catalog, entry)


def _leaves_out(before: Catalog, entry: CatalogEntry) -> bool:
    """Whether the entry leaves out a change that was made since its base entry."""
    made = before.changed_since(entry_before(entry.number, entry.base))
    changes = entry.changes
    if made is None or changes is None:
        return False
    return not (
        changes.tables.keys() >= made.tables.keys()
        and changes.dropped.keys() >= made.dropped.keys()
        and all(
            name in changes.tables or changes.tags.get(name, {}).keys() >= marks.keys()
            for name, marks in made.tags.items()
        )
    )


def _wrong_tables(catalog: Catalog, entry: CatalogEntry) -> Iterator[VerifyFinding]:
    """What is wrong with the tables that an entry changes."""
    changed = catalog.tables if entry.changes is None else entry.changes.tables
    folders = [(name, record.folder.casefold()) for name, record in changed.items() if record is not None]
    if len({folder for _, folder in folders}) != len(folders) or any(
        catalog.folders[folder] != name for name, folder in folders
    ):
        yield _wrong(entry.number, "two tables have the same folder")
    for name, record in changed.items():
        if record is not None:
            active = [one for one, known in record.revisions.items() if known.state == ACTIVE]
            if active != [record.active]:
                yield _wrong(entry.number, f"{name} does not have exactly one active revision")


def _wrong(number: int, problem: str) -> VerifyFinding:
    return VerifyFinding(
        kind=FindingKind.INCONSISTENT, severity=Severity.ANSWERS, place=catalog_key(number), problem=problem
    )
