"""Refuses dangerous sweeps before anything is deleted; each error says what to do."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from underlay.errors import Inconsistent, InvalidRequest, NotFound
from underlay.index.keys import CATALOG
from underlay.index.root import Root
from underlay.index.sealed_json import UNDECODED
from underlay.maintain.expire.holders import Holders
from underlay.store.store import Store
from underlay.table.versions.chain import Hint
from underlay.table.versions.environment import to_us
from underlay.table.versions.registry_protocol import RegistryPort
from underlay.table.versions.revision import Revision
from underlay.values.duration import show_duration

_CLOCK_SLACK = timedelta(minutes=5)
_FILE_URL = "file://"
_OLDER = (
    "The store was restored from an older copy: what later versions wrote would look unreferenced. Restore the rest of "
    'it, or run "underlay verify" and decide. Nothing was deleted.'
)


def check_grace(grace: timedelta, reader_age: timedelta, table: str) -> None:
    """Refuse a grace period in which a reader may still be reading."""
    if grace < reader_age:
        raise InvalidRequest(
            f"the grace period is shorter than the minimum reader age of {table}",
            expected=f"{show_duration(reader_age)} or longer",
            found=show_duration(grace),
            hint="Readers without a lease may need files for that long. Give a longer grace period, or set the table's "
            "property care.reader_age.",
        )


def check_alone(store: Store) -> None:
    """Refuse a lake that shares its folder with another lake: neither could tell which objects are its own."""
    for folder in store.list_folders():
        if folder != CATALOG and f"{folder}/{CATALOG}" in store.list_folders(folder):
            raise _shared(store, store.place_of(folder))
    if store.url.startswith(_FILE_URL):
        inner = Path(store.url.removeprefix(_FILE_URL))
        for above in inner.parents:
            if (above / CATALOG).is_dir() and any((above / CATALOG).glob("*.json")):
                raise _shared(store, str(above))


def _shared(store: Store, other: str) -> InvalidRequest:
    return InvalidRequest(
        "another lake is in the same folder",
        place=store.url,
        found=other,
        hint="Move one of the two to a folder of its own; a sweep of one could delete what the other needs.",
    )


def check_history(revision: Revision, head: Root, holders: Holders, registry: RegistryPort | None, name: str) -> None:
    """Refuse a revision whose head is older than a version known from elsewhere: a restored backup, say (R14)."""
    known = {f"tag {tag}": version for tag, version in holders.tags.items()}
    known |= {f"lease {reader}": version for reader, version in holders.leases.items() if version is not None}
    known["the hint"] = _hinted(revision)
    opening = registry.opening(name) if registry is not None else None
    if opening is not None and opening.table is not None and opening.table.revision == revision.id:
        known["the registry"] = opening.table.head.number
    newest = head.version
    if max(known.values()) > newest:
        newest = revision.newest_version()  # others commit while these are read
    for what, version in known.items():
        if version > newest:
            raise Inconsistent(
                f"{what} names version {version}, but the newest in the store is {newest}",
                place=revision.place,
                hint=_OLDER,
            )


def _hinted(revision: Revision) -> int:
    try:
        return msgspec.json.decode(revision.store.get(revision.keys.hint)[0], type=Hint).number
    except (NotFound, *UNDECODED):
        return -1


def check_clock(revision: Revision, head: Root, now: datetime) -> None:
    """Refuse a store whose clock went back: ages mean nothing until it has caught up."""
    stored = revision.store.head(revision.keys.root(head.version))
    latest = max(to_us(stored.modified) if stored is not None else 0, head.horizon_us)
    if latest > to_us(now + _CLOCK_SLACK):
        raise Inconsistent(
            "the clock of the store went back",
            place=revision.place,
            expected=f"a time after {latest} µs since 1970",
            found=now.isoformat(),
            hint="Set the clock right, or wait until it has caught up. Nothing was deleted.",
        )
