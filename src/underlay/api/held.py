"""What jobs and leases have in common for those who hold them, and for those who look at all of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from underlay.index.catalog import TableRecord, find_table
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.held import HeldObject

T = TypeVar("T")

_TABLES_AT_ONCE = 16


class Held:
    """Something that is held until it is released, which a `with` does. A thread renews it."""

    def __init__(self, kept: HeldObject) -> None:
        self._kept = kept

    @property
    def is_lost(self) -> bool:
        """Whether it is held no more: another took it, or may have, since the store did not answer in time. As of the
        last renewal."""
        return self._kept.is_lost

    def renew(self) -> bool:
        """Say now that it is held; False when it is so no more. Raises Unavailable."""
        return self._kept.renew()

    def release(self) -> None:
        """It is needed no more. Nothing happens the second time."""
        self._kept.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def look_at_tables(lake: LakeCatalog, name: str | None, look: Callable[[str, TableRecord], list[T]]) -> list[T]:
    """What `look` finds at a table, or at all, side by side and in the order of names. Raises TableNotFound."""
    catalog = lake.catalog()
    records = catalog.tables if name is None else {name: find_table(catalog, name)}
    if not records:
        return []
    with ThreadPoolExecutor(min(_TABLES_AT_ONCE, len(records))) as pool:
        return [one for found in pool.map(lambda table: look(*table), sorted(records.items())) for one in found]
