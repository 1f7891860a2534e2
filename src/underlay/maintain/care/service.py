"""Care as a service for a lake: every table that asks for it, round after round, and a sweep once a day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from underlay.change.update.edit import FileAccess
from underlay.errors import TableNotFound, Unavailable, UnderlayError
from underlay.maintain.care.look_after import Cared, look_after
from underlay.maintain.sweep.sweep_lake import DEFAULT_GRACE, sweep_lake
from underlay.maintain.sweep.swept import Swept
from underlay.table.care_settings import read_settings
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable

DAY_SECONDS = 86_400.0
ROUND_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CareRound:
    """What one round did. `failed` says why a table could not be looked after, or the lake swept (key `sweep`)."""

    tables: tuple[Cared, ...]
    swept: Swept | None
    failed: dict[str, str]


def care_once(
    lake: LakeCatalog, open_table: Callable[[str], OpenTable], files: FileAccess, *, sweeps: bool = True
) -> CareRound:
    """Look after every table with a property that asks for it; then sweep the lake, if there was such a table."""
    done: list[Cared] = []
    failed: dict[str, str] = {}
    for name in sorted(lake.catalog().tables):
        try:
            table = open_table(name)
            if read_settings(table.head().root.definition.properties).is_automatic:
                done.append(look_after(table, files))
        except TableNotFound:  # dropped meanwhile
            continue
        except UnderlayError as error:
            failed[name] = str(error)
    swept = None
    if sweeps and done:
        try:
            swept = sweep_lake(lake, open_table, grace=DEFAULT_GRACE, dry_run=False)
        except UnderlayError as error:
            failed["sweep"] = str(error)
    return CareRound(tables=tuple(done), swept=swept, failed=failed)


def care_rounds(
    lake: LakeCatalog,
    open_table: Callable[[str], OpenTable],
    files: FileAccess,
    *,
    wait: Callable[[float], object],
    round_seconds: float = ROUND_SECONDS,
) -> Iterator[CareRound]:
    """Repeat rounds of care until `wait` returns true. Sweeps in the first round, then once a day."""
    monotonic = lake.surroundings.monotonic
    swept_at: float | None = None
    while True:
        is_due = swept_at is None or monotonic() - swept_at >= DAY_SECONDS
        try:
            found = care_once(lake, open_table, files, sweeps=is_due)
        except Unavailable as error:
            found = CareRound(tables=(), swept=None, failed={"lake": str(error)})
        if found.swept is not None:
            swept_at = monotonic()
        yield found
        if wait(round_seconds):
            return
