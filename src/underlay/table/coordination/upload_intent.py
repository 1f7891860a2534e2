"""Uploads in progress: an intent that keeps a sweep from deleting new files before their commit, by R5.

Its name is unique: there is no fence, and no commit depends on it. A sweep commits before it deletes, so the intent is
not needed after a commit was tried, whatever its outcome.
"""

from __future__ import annotations

from msgspec.structs import replace

from underlay.runtime.process import own_process
from underlay.table.coordination.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.coordination.held import HeldObject
from underlay.table.coordination.intent import Intent, decode_intent, encode_intent
from underlay.table.coordination.liveness import find_kept, read_ttl
from underlay.table.versions.environment import to_us, uuid7
from underlay.table.versions.revision import Revision

TTL_SECONDS = 60.0
_NAME = "write"


class Upload(HeldObject):
    """Files that this process, or processes that it waits for, put into a revision. A thread renews it."""

    def __init__(self, revision: Revision, intent: Intent, heartbeat: Heartbeat) -> None:
        self.intent = intent
        self.revision = revision
        super().__init__(intent.ttl_us, heartbeat)

    def _put_again(self) -> bool:
        self.intent = replace(self.intent, renewed_us=self.revision.surroundings.now_us())
        _put(self.revision, self.intent)
        return True

    def _take_away(self) -> None:
        withdraw(self.revision, self.intent.job)


def upload(
    revision: Revision, *, note: str = "", ttl_seconds: float = TTL_SECONDS, heartbeat: Heartbeat = HEARTBEAT
) -> Upload:
    """Announce an upload until it is released, as by a `with`. Two requests."""
    return Upload(revision, begin(revision, _NAME, note, ttl_seconds), heartbeat)


def begin(revision: Revision, name: str, note: str, ttl_seconds: float) -> Intent:
    """An intent of a new job, whose name begins with `name`, with the store's time: nothing that the job writes is
    older. Two requests."""
    intent = announce(revision, name=name, note=note, ttl_seconds=ttl_seconds)
    found = find_kept(revision.store, revision.keys.intent(intent.lock), decode_intent)
    return intent if found is None else replace(intent, started_us=to_us(found.modified))


def announce(revision: Revision, *, name: str = _NAME, note: str = "", ttl_seconds: float) -> Intent:
    """Announce an upload once, for `ttl_seconds` unless it is withdrawn. One request. Raises Unavailable."""
    surroundings = revision.surroundings
    intent = Intent(
        job=f"{name}-{uuid7()}",
        owner=f"{surroundings.writer}:{surroundings.new_commit_id()[:16]}",
        epoch=0,
        renewed_us=surroundings.now_us(),
        ttl_us=read_ttl(ttl_seconds),
        note=note,
        process=own_process(),
    )
    _put(revision, intent)
    return intent


def withdraw(revision: Revision, job: str) -> None:
    """Delete the intent that `announce` put under this name. One request. Raises Unavailable."""
    revision.store.delete([revision.keys.intent(job)])
    _tell(revision, job)


def _put(revision: Revision, intent: Intent) -> None:
    revision.store.put(revision.keys.intent(intent.lock), encode_intent(intent))
    _tell(revision, intent.lock)


def _tell(revision: Revision, job: str) -> None:
    if revision.surroundings.registry is not None:
        revision.surroundings.registry.saw_job(revision.keys, revision.id, job)
