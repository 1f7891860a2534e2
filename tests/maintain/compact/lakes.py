"""A table of blocks that are full and others that are not, and what must hold of it after a compaction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.maintain.audit import audit
from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.index.entry import FileEntry
from underlay.store import Store

NAME = "shop.sales"


def lake_of(store: Store) -> Lake:
    return connect(store, registry="none")


def rows(begin: int, count: int) -> pa.Table:
    ids = np.arange(begin, begin + count)
    fares = np.where(ids % 5 == 0, np.nan, ids / 4)
    words = pa.array([None if one % 7 == 0 else f"w{one}" for one in ids.tolist()])
    lists = pa.array([[one, None] if one % 3 else None for one in ids.tolist()], pa.list_(pa.int64()))
    return pa.table({"id": ids, "word": words, "fare": fares, "numbers": lists})


COLUMNS = "id bigint, word string, fare double, numbers bigint[]"


def make(store: Store, counts=(100, 30, 100, 20, 250, 100, 10), **options) -> Table:
    """Files with blocks of 100 rows, of which some are full."""
    options = {"key": ["id"], "properties": {"block_rows": 100}} | options
    table = lake_of(store).create_table(NAME, COLUMNS, **options)
    for number, count in enumerate(counts):
        table.append(rows(1000 * number, count))
    return table


def seen(table: Table) -> list[str]:
    return sorted(map(repr, table.to_arrow().to_pylist()))


def files(table: Table) -> list[FileEntry]:
    return list(table.snapshot().files())


def check_sound(store: Store) -> None:
    """No finding of a deep verification, and no object that a root names is missing."""
    report = lake_of(store).verify(deep=True, registry=False)
    assert [one.findings for one in report.tables[0].revisions] == [()]
    assert audit(store).missing == set()
