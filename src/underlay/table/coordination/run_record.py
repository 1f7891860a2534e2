"""The record of a finished run: who did what, when, with how many rows, and why it failed if it did.

It lies at `_index/jobs/<job>`, and is put once, before the run's intent is deleted. The record of a watching run is put
repeatedly, and says `watching` until the run ends. Nothing depends on it: it is for people.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from underlay.errors import Malformed, Unsupported
from underlay.index.keys import RevisionKeys
from underlay.index.sealed_json import UNDECODED, seal, unseal
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.coordination.liveness import FORMAT, SeenBeacon, find_kept

State = Literal["done", "nothing", "failed", "stopped", "watching"]
"""How it ended: `nothing` when all was done before, `stopped` by a person, `watching` when it has not ended yet."""
MOST_VERSIONS = 1000
REASON_CHARACTERS = 2000

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What a column of the registry holds."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Times are by the owner's clock, in microseconds."""

    format: int = FORMAT
    job: str
    owner: str
    operation: str
    state: State
    started_us: Count
    ended_us: Count
    """When it ended, or last reported."""
    duration_us: Count
    ttl_us: Count = 0
    """How long after it was put a run that is watching counts as alive."""
    asked: str = ""
    """Patterns of the sources to ingest."""
    workers: str = ""
    """What did the work: `local` threads or `spark`; empty when there was no work."""
    source_count: Count = 0
    """Sources added to the table; those counted below were not."""
    known_count: Count = 0
    skipped_count: Count = 0
    failed_count: Count = 0
    claimed_count: Count = 0
    """Sources left to another run that had claimed them."""
    replaced_count: Count = 0
    """Those of `source_count` whose older rows were replaced."""
    row_count: Count = 0
    rejected_count: Count = 0
    source_bytes: Count = 0
    versions: tuple[int, ...] = ()
    """The versions that it committed, the newest MOST_VERSIONS of them."""
    version_count: Count = 0
    reason: str | None = None
    """Why it failed, or why sources did."""

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.job


_DECODER = msgspec.json.Decoder(RunRecord)


def encode_record(record: RunRecord) -> bytes:
    """The bytes of a record."""
    return seal(msgspec.json.encode(record))


def decode_record(data: memoryview) -> RunRecord:
    """The record in `data`. Raises Damaged, or Unsupported when a newer Underlay wrote it."""
    try:
        record = _DECODER.decode(unseal(data))
    except UNDECODED as error:
        raise Malformed(f"not the record of a run: {error}") from error
    if record.format != FORMAT:
        raise Unsupported("the record has an unknown format", expected=FORMAT, found=record.format)
    return record


def list_records(store: Store, keys: RevisionKeys, most: int) -> list[SeenBeacon[RunRecord]]:
    """The newest records of a revision, the newest first, readable or not. One listing, and one request for each.

    Names tell when a run began, so older records are not read.
    """
    found = sorted((found.key for found in store.list_objects(keys.records)), key=_moment_of, reverse=True)[:most]
    if not found:
        return []
    records = side_by_side(lambda key: find_kept(store, key, decode_record), found, store.parallel_requests)
    now = store.now()  # read last, so that no record is younger
    return [SeenBeacon(found=one, now=now) for one in records if one is not None]


def _moment_of(key: str) -> str:
    """The part of a run's name after its kind: a UUID that begins with the time."""
    return key.rpartition("/")[2].partition("-")[2]
