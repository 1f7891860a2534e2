"""The verbs of a table that look after it: each is one call of the layer that does it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from underlay.api.changing.changing_table import ChangingTable

if TYPE_CHECKING:
    from underlay.maintain.care.health import Health
    from underlay.maintain.expire.bury import Progress
    from underlay.maintain.expire.expire import Expired


class CaringTable(ChangingTable):
    """A table that can be looked after."""

    def expire(
        self,
        older_than: str | timedelta | None = None,
        keep: int | None = None,
        dry_run: bool = True,
        *,
        progress: Progress | None = None,
    ) -> Expired:
        """Expire versions that are older than `older_than` (`7d`) and not among the newest `keep` (10).

        Without them the properties `care.keep_for` and `care.keep_versions` count. A version's age counts from its
        successor's commit. Tags, leases and jobs keep theirs. Nothing is changed unless `dry_run` is False; then
        reading such a version raises SnapshotExpired, and a sweep deletes what only it referenced.
        """
        from underlay.maintain.expire.expire import expire  # what few processes need

        return expire(self.writable(), older_than=older_than, keep=keep, dry_run=dry_run, progress=progress)

    def health(self) -> Health:
        """Small files, dead rows, order, versions and orphans, and what care would bring. Reads metadata only."""
        from underlay.maintain.care.health import find_health  # what few processes need

        return find_health(self.writable())
