"""The verbs of a lake that look after its tables: each is one call of the layer that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from underlay.api.opened.context import LakeContext
from underlay.errors import InvalidRequest

if TYPE_CHECKING:
    from underlay.change.update.edit import FileAccess
    from underlay.maintain.care.service import CareRound
    from underlay.maintain.care.vacuum import Vacuumed, VacuumProgress
    from underlay.maintain.sweep.swept import Progress as SweepProgress
    from underlay.maintain.sweep.swept import Swept


class CaringLake:
    """A lake whose tables can be looked after."""

    _context: LakeContext

    def sweep(
        self, grace: str | timedelta = "1d", dry_run: bool = True, *, progress: SweepProgress | None = None
    ) -> Swept:
        """Delete objects of Underlay's that no version references and that are older than `grace`.

        Uploads of running jobs stay, and so do files that Underlay did not write. Dropped tables and replaced revisions
        go after their `care.keep_for`, or 7 days. Nothing is deleted unless `dry_run` is False.
        """
        from underlay.maintain.sweep.sweep_lake import sweep_lake  # few processes need it

        context = self._context
        return sweep_lake(context.catalog, context.open_table, grace=grace, dry_run=dry_run, progress=progress)

    def vacuum(
        self,
        older_than: str | timedelta | None = None,
        keep: int | None = None,
        grace: str | timedelta = "1d",
        dry_run: bool = True,
        *,
        progress: VacuumProgress | None = None,
    ) -> Vacuumed:
        """Do for every table what `Table.vacuum` does: compact what is worth it, expire old versions; then sweep the
        lake.

        Nothing is changed unless `dry_run` is False.
        """
        from underlay.maintain.care.vacuum import VacuumRules, vacuum_lake  # few processes need it

        rules = VacuumRules(older_than=older_than, keep=keep, grace=grace)
        context = self._context
        return vacuum_lake(
            context.catalog, context.open_table, self._care_files(), rules, dry_run=dry_run, progress=progress
        )

    def care(self, *, sweep: bool = True) -> CareRound:
        """Look after every table as its `care.*` properties ask, and sweep the lake if any table has them.

        Only one process at a time looks after a table; the others skip it.
        """
        from underlay.maintain.care.service import care_once  # few processes need it

        return care_once(self._context.catalog, self._context.open_table, self._care_files(), sweeps=sweep)

    def watch_care(self, wait: Callable[[float], object], *, every_seconds: float = 60.0) -> Iterator[CareRound]:
        """Repeat `care` in rounds, sweeping once a day. `wait(seconds)` pauses between rounds, and ends them by
        returning true.
        """
        from underlay.maintain.care.service import care_rounds  # few processes need it

        if not every_seconds > 0:
            raise InvalidRequest(
                "the time between rounds must be positive", expected="seconds above 0", found=every_seconds
            )
        context = self._context
        return care_rounds(
            context.catalog, context.open_table, self._care_files(), wait=wait, round_seconds=every_seconds
        )

    def end_care(self) -> None:
        """Start no more of the background care that commits trigger for tables with `care.*` properties, and wait at
        most 10 s for the step under way to finish. `close` does it too.
        """
        self._context.end_care()

    def _care_files(self) -> FileAccess:
        from underlay.change.update.edit import FileAccess

        return FileAccess(stores=self._context.stores, cache=self._context.cache)
