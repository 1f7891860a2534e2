"""One run of an ingest: a name under which sources are claimed, and an intent that says that it is alive.

Many runs may work on one table. Each has an intent of its own, `_index/intents/<run>`, kept alive as those of
jobs are; unlike a job it takes no fence, and its intent has epoch 0. Whether a run may commit is said by the claims in
the head (see `commit_claimed`); the intent only says whether others wait for it. It is put before the first claim is
committed, so a claim without an intent, or with an expired one, may be taken over.
"""

from __future__ import annotations

from underlay.table.coordination.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.coordination.intent import Intent
from underlay.table.coordination.upload_intent import TTL_SECONDS, Upload, begin
from underlay.table.open_table import OpenTable
from underlay.table.versions.revision import Revision

_NAME = "ingest"


class Run(Upload):
    """A run that lives until it is released, which a `with` does: then its claims are free at once. Belongs to one
    revision. `is_lost` says that it was not renewed in time, so that others may have taken claims over."""

    def __init__(self, table: OpenTable, revision: Revision, intent: Intent, heartbeat: Heartbeat) -> None:
        self.table = table
        super().__init__(revision, intent, heartbeat)

    @property
    def id(self) -> str:
        """The owner of its claims."""
        return self.intent.job

    def _put_again(self) -> bool:
        return self.revision.head().terminal is None and super()._put_again()


def begin_run(
    table: OpenTable, *, ttl_seconds: float = TTL_SECONDS, note: str = "", heartbeat: Heartbeat = HEARTBEAT
) -> Run:
    """A new run on the active revision. Three requests. Others wait for its claims until `ttl_seconds` after the
    intent was last renewed."""
    revision = table.head().revision
    return Run(table, revision, begin(revision, _NAME, note, ttl_seconds), heartbeat)
