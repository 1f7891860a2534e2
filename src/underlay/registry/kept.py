"""Intents of jobs, leases of readers and records of runs, as rows of the registry: what the objects say, whoever saw
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from underlay.registry.fetch import readers
from underlay.registry.fold import Row
from underlay.store.store import Store
from underlay.table.alive import find_kept
from underlay.table.intent import Intent, decode_intent
from underlay.table.lease import Lease, decode_lease
from underlay.table.run_record import RunRecord, decode_record
from underlay.table.threads import map_in_threads

_NOT_MIRRORED = ("format", "ttl_us")
_COPIED = tuple(name for name in RunRecord.__struct_fields__ if name not in _NOT_MIRRORED)


def read_jobs(store: Store, revision: str, keys: Iterable[str]) -> list[Row]:
    """The rows of these intents, as far as they are there and can be read. One request for each."""
    found = [find_kept(store, key, decode_intent) for key in keys]
    return [job_row(revision, one.record) for one in found if one is not None and one.record is not None]


def read_leases(store: Store, revision: str, keys: Iterable[str]) -> list[Row]:
    """The rows of these leases, as far as they are there and can be read. One request for each."""
    found = [find_kept(store, key, decode_lease) for key in keys]
    return [lease_row(revision, one.record) for one in found if one is not None and one.record is not None]


def read_runs(store: Store, revision: str, keys: Sequence[str]) -> list[Row]:
    """The rows of these records, as far as they are there and can be read. One request for each, side by side."""
    found = map_in_threads(lambda key: find_kept(store, key, decode_record), keys, readers(store)) if keys else []
    return [run_row(revision, one.record) for one in found if one is not None and one.record is not None]


def job_row(revision: str, intent: Intent) -> Row:
    """The row of an intent. It is known by what it locks, as the object is."""
    return {
        "revision": revision,
        "job": intent.lock,
        "owner": intent.owner,
        "epoch": intent.epoch,
        "started_us": intent.renewed_us if intent.started_us is None else intent.started_us,
        "renewed_us": intent.renewed_us,
        "ttl_us": intent.ttl_us,
    }


def lease_row(revision: str, lease: Lease) -> Row:
    """The row of a lease."""
    return {
        "revision": revision,
        "reader": lease.reader,
        "owner": lease.owner,
        "version": lease.version,
        "started_us": lease.started_us,
        "renewed_us": lease.renewed_us,
        "ttl_us": lease.ttl_us,
    }


def run_row(revision: str, record: RunRecord) -> Row:
    """The row of a record."""
    copied = {name: getattr(record, name) for name in _COPIED}
    return {"revision": revision, **copied, "versions": msgspec.json.encode(record.versions).decode()}
