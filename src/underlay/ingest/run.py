"""One run of an ingest: a name under which sources are claimed, and an intent that says that it lives.

Many runs may be at work on one table. Each has an intent of its own, `_index/intents/<run>`, kept alive as those of
jobs are; unlike a job it takes no fence, and its intent has epoch 0. Whether a run may commit is said by the claims in
the head (see `settle`); the intent only says whether others wait for it. The intent is put before the first claim is
committed, so whoever finds a claim without an intent, or with one that expired, may take the source over.
"""

from __future__ import annotations

from msgspec.structs import replace

from underlay.table.alive import read_ttl, to_us
from underlay.table.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.intent import Intent, encode_intent
from underlay.table.kept import Kept
from underlay.table.opened import Head, OpenTable

TTL_SECONDS = 60.0
_NAME = "ingest-"
_CHANCE_DIGITS = 16


class Run(Kept):
    """A run that lives until it is released, which a `with` does: then its claims are free at once. Belongs to one
    revision. `is_lost` says that it was not renewed in time, so that others may have taken claims over."""

    def __init__(self, table: OpenTable, head: Head, intent: Intent, heartbeat: Heartbeat) -> None:
        self.table = table
        self.revision = head.revision
        self.intent = intent
        self._key = head.revision.keys.intent(intent.job)
        self._tell()
        super().__init__(intent.ttl_us, heartbeat)

    @property
    def id(self) -> str:
        """The owner of its claims."""
        return self.intent.job

    def _put_again(self) -> bool:
        if self.revision.head().terminal is not None:
            return False
        self.intent = replace(self.intent, renewed_us=self.revision.surroundings.now_us())
        self.revision.store.put(self._key, encode_intent(self.intent))
        self._tell()
        return True

    def _take_away(self) -> None:
        self.revision.store.delete([self._key])
        self._tell()

    def _tell(self) -> None:
        registry = self.revision.surroundings.registry
        if registry is not None:
            registry.saw_job(self.revision.keys, self.revision.id, self.id)


def begin_run(
    table: OpenTable, *, ttl_seconds: float = TTL_SECONDS, note: str = "", heartbeat: Heartbeat = HEARTBEAT
) -> Run:
    """A new run on the active revision. Three requests. Others wait for its claims until `ttl_seconds` after it was
    heard of last."""
    head = table.head()
    surroundings = head.revision.surroundings
    chance = surroundings.new_commit_id()[:_CHANCE_DIGITS]
    intent = Intent(
        job=f"{_NAME}{chance}",
        owner=f"{surroundings.writer}:{chance}",
        epoch=0,
        renewed_us=surroundings.now_us(),
        ttl_us=read_ttl(ttl_seconds),
        note=note,
    )
    store, key = head.revision.store, head.revision.keys.intent(intent.job)
    store.put(key, encode_intent(intent))
    found = store.head(key)
    # Nothing that the run writes is older than its first intent, by the store's clock.
    began = to_us(found.modified) if found is not None else None
    return Run(table, head, replace(intent, started_us=began), heartbeat)
