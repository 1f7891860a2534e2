"""The verbs of a table that look after it: each is one call of the layer that does it."""

from __future__ import annotations

from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING

from underlay.api.changing.changing_table import ChangingTable

if TYPE_CHECKING:
    from underlay.api.opened.condition import Params, Where
    from underlay.interop.imports.follow import Synced
    from underlay.maintain.care.health import Health
    from underlay.maintain.care.vacuum import Vacuumed, VacuumProgress
    from underlay.maintain.compact.compact import Compacted, CompactProgress, CompactWorkers
    from underlay.maintain.expire.expire import Expired
    from underlay.maintain.expire.tombstones import Progress


class CaringTable(ChangingTable):
    """A table that can be looked after."""

    def compact(
        self,
        where: Where = None,
        *,
        dry_run: bool = False,
        order: str | None = None,
        params: Params | None = None,
        progress: CompactProgress | None = None,
        workers: CompactWorkers | None = None,
    ) -> Compacted:
        """Join small files, fold deleted rows, and fill blocks; the rows stay as they are.

        Full blocks are copied byte for byte, with their statistics, bloom filters and page indexes. `where` leaves out
        files without a matching row. `order="sort"` rewrites all files in the table's order, and `order="zorder(a, b)"`
        so that rows close in both columns are stored close together. Other writers go on and never fail because of a
        compaction; it skips files that they change meanwhile. `workers` does the work elsewhere, as
        `underlay.spark.compact` does.
        """
        from underlay.maintain.compact.compact import compact  # few processes need it

        condition = self._condition(where, params)
        return compact(
            self.writable(),
            self.file_access,
            condition,
            dry_run=dry_run,
            order=order,
            progress=progress,
            workers=workers,
        )

    def import_files(
        self, *files: str | PathLike[str], dry_run: bool = False, progress: CompactProgress | None = None
    ) -> Compacted:
        """Make registered files the table's own: these paths, folders, URLs and patterns, or all of them.

        Their blocks are copied as they are, and encoded again where that could mislead other engines. The rows stay.
        New versions no longer reference the registered files, which stay where they are.
        """
        from underlay.maintain.compact.import_files import import_files  # few processes need it

        return import_files(self.writable(), self.file_access, files, dry_run=dry_run, progress=progress)

    def sync(self, *, progress: Progress | None = None) -> Synced:
        """Bring an imported table (`Lake.import_table`) to its source's newest version: one commit with the files that
        came and went since, none when nothing is new.

        Raises SourceChanged when the source is another table or was rolled back, or when imported files or columns were
        changed here: appended rows are fine.
        """
        from underlay.interop.import_table import sync_table  # few processes need it

        return sync_table(self.writable(), self.file_access.stores, progress=progress)

    def expire(
        self,
        older_than: str | timedelta | None = None,
        keep: int | None = None,
        dry_run: bool = True,
        *,
        progress: Progress | None = None,
    ) -> Expired:
        """Expire versions that are older than `older_than` (`7d`) and not among the newest `keep` (10).

        The defaults are the properties `care.keep_for` and `care.keep_versions`. A version's age counts from its
        successor's commit. Tags, leases and jobs keep the versions that they hold. Nothing is changed unless `dry_run`
        is False; then reading such a version raises SnapshotExpired, and a sweep deletes what only it referenced.
        """
        from underlay.maintain.expire.expire import expire  # few processes need it

        return expire(self.writable(), older_than=older_than, keep=keep, dry_run=dry_run, progress=progress)

    def vacuum(
        self,
        older_than: str | timedelta | None = None,
        keep: int | None = None,
        grace: str | timedelta = "1d",
        dry_run: bool = True,
        *,
        progress: VacuumProgress | None = None,
    ) -> Vacuumed:
        """Compact what is worth it, expire old versions, and sweep what is then unreferenced, in this order.

        `older_than` and `keep` are as for `expire`, `grace` as for `Lake.sweep`. Nothing is changed unless `dry_run` is
        False.
        """
        from underlay.maintain.care.vacuum import VacuumRules, vacuum_table  # few processes need it

        rules = VacuumRules(older_than=older_than, keep=keep, grace=grace)
        return vacuum_table(self.writable(), self.file_access, rules, dry_run=dry_run, progress=progress)

    def health(self) -> Health:
        """Report small files, deleted rows, order, versions and orphaned objects, and what care would improve. Reads
        metadata only.
        """
        from underlay.maintain.care.health import find_health  # few processes need it

        return find_health(self.writable())
