"""Intents and leases: one that cannot be read decides nothing, so it is a note, and is left as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from underlay.errors import Unsupported
from underlay.index.keys import RevisionKeys
from underlay.maintain.finding import Finding, Kind, Severity
from underlay.maintain.work import Work
from underlay.table.alive import UNREADABLE_TTL, Found, find_kept
from underlay.table.intent import Intent, decode_intent
from underlay.table.lease import Lease, decode_lease

_HINT = (
    f"It counts as alive for {UNREADABLE_TTL.total_seconds():.0f} seconds after it was put, and decides nothing: unless"
    " its owner puts it again, it can be deleted."
)


def verify_kept(work: Work, keys: RevisionKeys, listed: Collection[str]) -> Iterator[Finding]:
    """Read every intent and lease; those that are gone since the listing were released. One request for each."""
    places = [key for key in listed if keys.job_of(key) is not None or keys.reader_of(key) is not None]
    for place, found in zip(places, work.each(lambda key: _find(work, keys, key), places), strict=True):
        if found is None or found.problem is None:
            continue
        what = "lease" if keys.job_of(place) is None else "intent"
        words = "was written by a newer release" if isinstance(found.problem, Unsupported) else "cannot be read"
        yield Finding(
            kind=Kind.DAMAGED,
            severity=Severity.NOTE,
            place=place,
            problem=f"the {what} {words}: {found.problem.problem}",
            hint=_HINT,
        )


def _find(work: Work, keys: RevisionKeys, key: str) -> Found[Intent] | Found[Lease] | None:
    if keys.job_of(key) is not None:
        return find_kept(work.store, key, decode_intent)
    return find_kept(work.store, key, decode_lease)
