"""One run of an ingest: a name under which sources are claimed, and an intent that shows that the run is alive.

Many runs may work on one table. Each has its own intent, `_index/intents/<run>`, renewed like a job's; unlike a job, a
run takes no fence, and its intent has epoch 0. The claims in the head decide whether a run may commit (see
`commit_claimed`); the intent only tells others whether to wait for it. The intent is put before the first claim is
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
    """A run is alive until it is released, as at the end of a `with` block; then its claims are free at once. It
    belongs to one revision. `is_lost` says that its intent was not renewed in time, so that others may have taken
    claims over.
    """

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
    """Begin a run on the active revision. Three requests. Others wait for its claims until `ttl_seconds` after the last
    renewal of its intent.
    """
    revision = table.head().revision
    return Run(table, revision, begin(revision, _NAME, note, ttl_seconds), heartbeat)
