"""Sweeps what old exports to other engines consisted of, and all exports of tables that no longer exist."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from underlay.errors import Unsupported
from underlay.index.keys import ICEBERG, ObjectKind
from underlay.interop.iceberg.folder import WarehouseFolder, list_tables
from underlay.interop.iceberg.tidy import find_left, find_stale
from underlay.maintain.sweep.delete_objects import Found, delete_chosen
from underlay.maintain.sweep.swept import SweptFolder
from underlay.store.store import Store


def sweep_exports(
    store: Store, tables: frozenset[str], now: datetime, grace: timedelta, *, dry_run: bool
) -> Iterator[SweptFolder]:
    """Delete objects of exports that were replaced longer than `grace` ago. One listing for each exported table."""
    for key in list_tables(store, ICEBERG):
        folder = WarehouseFolder(store, key)
        name = ".".join(key.split("/")[1:])
        try:
            stale = list(find_stale(folder, now, grace) if name in tables else find_left(folder, now - grace))
        except Unsupported:  # without fastavro nobody can tell what the newest export needs
            continue
        if stale and name in tables and not dry_run:
            folder.mend_hint(folder.newest(), is_moved=True)
        found: list[Found] = [(ObjectKind.FOREIGN, "", one) for one in stale]
        tally = delete_chosen(store, found, lambda some: some, None if dry_run else lambda: lambda some: some, None)
        yield SweptFolder(
            folder=key,
            table=None,
            reason="old exports" if name in tables else "exports of no table",
            version=None,
            horizon=now - grace,
            listed_count=tally.listed_count,
            object_count=tally.object_count,
            size_bytes=tally.size_bytes,
            kinds={"export": tally.object_count} if tally.object_count else {},
            examples=tuple(tally.examples),
        )
