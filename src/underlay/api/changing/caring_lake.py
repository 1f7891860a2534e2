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

        What running jobs uploaded stays, and files of others always do. Dropped tables and replaced revisions go after
        their `care.keep_for`, or 7 days. Nothing is deleted unless `dry_run` is False.
        """
        from underlay.maintain.sweep.sweep_lake import sweep_lake  # what few processes need

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
        """Compact what is worth it in every table, expire old versions, and sweep the lake, as `Table.vacuum` does.

        Nothing is changed unless `dry_run` is False.
        """
        from underlay.maintain.care.vacuum import VacuumRules, vacuum_lake  # what few processes need

        rules = VacuumRules(older_than=older_than, keep=keep, grace=grace)
        context = self._context
        return vacuum_lake(
            context.catalog, context.open_table, self._care_files(), rules, dry_run=dry_run, progress=progress
        )

    def care(self, *, sweep: bool = True) -> CareRound:
        """Do for every table what its properties `care.*` ask for, and sweep the lake if there is such a table.

        Of several processes one looks after a table at a time; the others leave it.
        """
        from underlay.maintain.care.service import care_once  # what few processes need

        return care_once(self._context.catalog, self._context.open_table, self._care_files(), sweeps=sweep)

    def watch_care(self, wait: Callable[[float], object], *, every_seconds: float = 60.0) -> Iterator[CareRound]:
        """The same round after round, with a sweep once a day: `wait(seconds)` waits, and ends it by returning true."""
        from underlay.maintain.care.service import care_rounds  # what few processes need

        if not every_seconds > 0:
            raise InvalidRequest("rounds must be apart", expected="seconds above 0", found=every_seconds)
        context = self._context
        return care_rounds(
            context.catalog, context.open_table, self._care_files(), wait=wait, round_seconds=every_seconds
        )

    def end_care(self) -> None:
        """Begin no more care in the background, which commits make for tables with properties `care.*`, and wait until
        what is under way has done the step that it is in: 10 s at most. `close` does it too."""
        self._context.end_care()

    def _care_files(self) -> FileAccess:
        from underlay.change.update.edit import FileAccess

        return FileAccess(stores=self._context.stores, cache=self._context.cache)
