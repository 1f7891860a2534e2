"""Verifies intents, leases and records of runs. One that cannot be read decides nothing: it gets a note, and is left as
it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from underlay.errors import Unsupported
from underlay.index.keys import RevisionKeys
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding
from underlay.maintain.verify.runner import VerifyContext
from underlay.table.coordination.intent import Intent, decode_intent
from underlay.table.coordination.lease import LeaseRecord, decode_lease
from underlay.table.coordination.liveness import UNREADABLE_TTL, Beacon, find_kept
from underlay.table.coordination.run_record import RunRecord, decode_record

_INTENT, _LEASE, _RECORD = "intent", "lease", "record of a run"
_HINT = (
    f"It counts as alive for {UNREADABLE_TTL.total_seconds():.0f} seconds after it was put, and decides nothing: unless"
    " its owner puts it again, it can be deleted."
)
_RECORD_HINT = "It is for people: nothing depends on it, and it can be deleted."


def verify_kept(work: VerifyContext, keys: RevisionKeys, listed: Collection[str]) -> Iterator[VerifyFinding]:
    """Read every intent, lease and record. Those gone since the listing were released. One request for each."""
    places = [key for key in listed if _what(keys, key) is not None]
    for place, found in zip(places, work.each(lambda key: _find(work, keys, key), places), strict=True):
        if found is None or found.problem is None:
            continue
        what = _what(keys, place)
        words = "was written by a newer release" if isinstance(found.problem, Unsupported) else "cannot be read"
        yield VerifyFinding(
            kind=FindingKind.DAMAGED,
            severity=Severity.NOTE,
            place=place,
            problem=f"the {what} {words}: {found.problem.problem}",
            hint=_RECORD_HINT if what == _RECORD else _HINT,
        )


def is_kept(keys: RevisionKeys, key: str) -> bool:
    """Whether this is the key of an intent, lease or record, which no version references."""
    return _what(keys, key) is not None


def _what(keys: RevisionKeys, key: str) -> str | None:
    """What such an object is called, None for any other."""
    if keys.job_of(key) is not None:
        return _INTENT
    if keys.reader_of(key) is not None:
        return _LEASE
    return _RECORD if keys.recorded_job_of(key) is not None else None


def _find(
    work: VerifyContext, keys: RevisionKeys, key: str
) -> Beacon[Intent] | Beacon[LeaseRecord] | Beacon[RunRecord] | None:
    what = _what(keys, key)
    if what == _INTENT:
        return find_kept(work.store, key, decode_intent)
    if what == _LEASE:
        return find_kept(work.store, key, decode_lease)
    return find_kept(work.store, key, decode_record)
