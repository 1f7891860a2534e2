"""A lake's store that fails once, at any request of an ingest: done all the same, or done by doing it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate import every_third, sized
from tests.ingest.lakes import COLUMNS, NAME, ids, lake_at, memory_lake, rejected, run, write_csv
from tests.table.coordination.owners import LaterStore
from underlay.change.define.define import define
from underlay.errors import CommitUnknown, Unavailable
from underlay.store import Store
from underlay.store.testing.faulty import Fault, at_every_request
from underlay.table.catalog.lifecycle import create


def with_table() -> Store:
    lake = memory_lake()
    lake.initialise()
    create(lake, NAME, define(COLUMNS))
    return lake.store


@pytest.mark.parametrize("fault", [Fault.LOST_RESPONSE, Fault.LATE])
def test_a_request_that_goes_wrong_neither_loses_nor_doubles_a_row(fault: Fault, tmp_path: Path):
    for number in range(3):
        write_csv(tmp_path, f"{number}.csv", [number, number + 10], [f"bad{number}"])
    tried = raised = 0
    for store in at_every_request(with_table, [fault], **every_third()):
        tried += 1
        try:
            run(lake_at(store), f"{tmp_path}/*", batch_sources=2)
        except (CommitUnknown, Unavailable):
            raised += 1
        store.release()
        lake = lake_at(store.inner)
        again = run(lake_at(LaterStore(store.inner)), f"{tmp_path}/*", batch_sources=2)
        assert (again.claimed, again.failed) == (0, 0)
        assert ids(lake) == [0, 1, 2, 10, 11, 12]
        assert [line for _, _, line in rejected(lake)] == [b"bad0", b"bad1", b"bad2"]
    assert tried > sized(13, 40)
    assert raised > sized(3, 10)
