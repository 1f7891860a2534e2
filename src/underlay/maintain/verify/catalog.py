"""Verifies the catalog's chain: intact, contiguous, of one lake; and finds the newest readable entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from underlay.errors import Damaged, Inconsistent, NotFound, UnderlayError, Unsupported
from underlay.index.catalog import ACTIVE, Catalog, decode_catalog
from underlay.index.keys import CATALOG, CATALOG_HINT, catalog_key
from underlay.index.sealed_json import UNDECODED
from underlay.maintain.verify.finding import CatalogReport, FindingKind, Severity, VerifyFinding
from underlay.maintain.verify.links import Link, find_backward, find_numbers, find_strangers
from underlay.maintain.verify.runner import VerifyContext
from underlay.store.store import Store
from underlay.table.versions.chain import Hint

ENTRY_LOST = (
    "This state of the catalog is gone. Tables that were made, renamed or dropped since are found again by hand."
)
ENTRY_UNUSED = "Newer entries are whole and hold everything, so no table is affected; the history of the catalog is."


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCheck:
    """What was found, and the newest entry that can be believed."""

    report: CatalogReport
    newest: Catalog | None


def verify_catalog(work: VerifyContext) -> CatalogCheck:
    """Read every entry. Raises NotFound when there is no lake."""
    keys = {found.key for found in work.store.list_objects(CATALOG) if found.key.endswith(".json")}
    numbers = find_numbers(keys, catalog_key)
    if not numbers:
        raise NotFound("there is no lake here", place=work.store.url, hint='Make one with "underlay init".')
    read = dict(zip(numbers, work.each(lambda number: _read(work.store, number), numbers), strict=True))
    whole = {number: found for number, found in read.items() if isinstance(found, Catalog)}
    strangers = find_strangers(_links(whole)) | _of_other_lakes(whole)
    believed = {number: found for number, found in whole.items() if number not in strangers}
    newest = believed[max(believed)] if believed else None
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
    """A hint past the end of its chain: nothing believes it, but somebody once saw that number. One request, and a
    second for a number that was not there when the chain was listed."""
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


def _read(store: Store, number: int) -> Catalog | UnderlayError:
    try:
        entry = decode_catalog(store.get(catalog_key(number))[0])
    except (Damaged, NotFound, Unsupported) as error:
        return error
    if entry.number != number:
        return Inconsistent("the entry has another number than its key", expected=number, found=entry.number)
    return entry


def _links(entries: Mapping[int, Catalog]) -> dict[int, Link]:
    return {
        number: Link(commit_id=entry.commit_id, parent_id=entry.parent_id, committed_us=entry.committed_us)
        for number, entry in entries.items()
    }


def _of_other_lakes(entries: Mapping[int, Catalog]) -> set[int]:
    """Entries with another lake's id than most have."""
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


def _contradictions(entries: Mapping[int, Catalog]) -> Iterator[VerifyFinding]:
    for number in find_backward(_links(entries)):
        yield _wrong(number, "the entry is not newer than the one before")
    for number, entry in entries.items():
        folders = [record.folder.casefold() for record in entry.tables.values()]
        if len(set(folders)) != len(folders):
            yield _wrong(number, "two tables have one folder")
        for name, record in entry.tables.items():
            active = [one for one, known in record.revisions.items() if known.state == ACTIVE]
            if active != [record.active]:
                yield _wrong(number, f"{name} does not have exactly one active revision")


def _wrong(number: int, problem: str) -> VerifyFinding:
    return VerifyFinding(
        kind=FindingKind.INCONSISTENT, severity=Severity.ANSWERS, place=catalog_key(number), problem=problem
    )
