"""The intent of a job: the object by which a writing process shows that it is alive, and what it is doing.

It lies at `_index/intents/<job>`, and an exclusive job's at `_index/intents/revision`, so that only one exclusive job
at a time writes a revision. Intents say whom to wait for; the root says who may commit (see `job`).
"""

from __future__ import annotations

import msgspec

from underlay.errors import InvalidRequest, Malformed, Unsupported
from underlay.index.keys import RevisionKeys
from underlay.index.sealed_json import UNDECODED, seal, unseal
from underlay.store.store import Store
from underlay.table.coordination.liveness import FORMAT, SeenBeacon, check_name, list_kept

EXCLUSIVE = "revision"
"""The lock of all exclusive jobs, whatever their names."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A job in progress."""

    format: int = FORMAT
    job: str
    is_exclusive: bool = False
    owner: str
    epoch: int
    """The epoch of the lock. The job may commit while the root's fence equals it."""
    started_us: int | None = None
    """When it began, by the store's clock; None in an object that was put only once, at that time."""
    renewed_us: int
    """When it was last put, by the owner's clock: for people only."""
    ttl_us: int
    note: str = ""
    process: str = ""
    """The owner's process (see `runtime.process`), if known."""

    @property
    def lock(self) -> str:
        """What it locks: the name of the object, and of the fence in the root."""
        return EXCLUSIVE if self.is_exclusive else self.job

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.lock


_DECODER = msgspec.json.Decoder(Intent)


def encode_intent(intent: Intent) -> bytes:
    """The bytes of an intent."""
    return seal(msgspec.json.encode(intent))


def decode_intent(data: memoryview) -> Intent:
    """The intent in `data`. Raises Damaged, or Unsupported when a newer Underlay wrote it."""
    try:
        intent = _DECODER.decode(unseal(data))
    except UNDECODED as error:
        raise Malformed(f"not an intent: {error}") from error
    if intent.format != FORMAT:
        raise Unsupported("the intent has an unknown format", expected=FORMAT, found=intent.format)
    return intent


def check_job(job: str, *, is_exclusive: bool) -> str:
    """`job`, if it is a valid name for a job. Raises InvalidRequest."""
    check_name(job, "job")
    if job == EXCLUSIVE and not is_exclusive:
        raise InvalidRequest(f"{EXCLUSIVE} is reserved for exclusive jobs", hint="Use another name for the job.")
    return job


def list_intents(store: Store, keys: RevisionKeys) -> list[SeenBeacon[Intent]]:
    """All intents of a revision, by lock, including those that expired and those that cannot be read."""
    return list_kept(store, keys.intents, decode_intent)
