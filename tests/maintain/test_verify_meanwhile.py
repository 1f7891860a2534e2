"""Verify while others write: what comes meanwhile is no loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import pytest

import underlay
from tests.cli.command import underlay as command
from tests.end_to_end.lakes import rows
from tests.maintain.healthy import SALES, Truth, active, build_tiny, built, run
from underlay.index.keys import catalog_key
from underlay.store import Store, open_store
from underlay.store.store import StoredObject
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")
_RUNS = 10


class UnlistedStore(StoreWrapper):
    """A store whose listings lack some objects, as when these come while the listing is made."""

    def __init__(self, inner: Store, *keys: str) -> None:
        super().__init__(inner)
        self._keys = keys

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return call()

    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        return (found for found in super().list_objects(folder, after=after) if found.key not in self._keys)


def test_what_a_listing_lacks_and_the_store_has_is_not_missing():
    store = built(build_tiny)
    truth = Truth(store)
    for key in (*truth.root_keys[:-1], *truth.own_files(), *truth.keys("/_pm/"), catalog_key(0), catalog_key(1)):
        report = run(UnlistedStore(store, key))
        assert report.findings == (), key
        assert active(report).newest_intact == active(report).newest_version == 3


def test_a_newest_root_that_a_listing_lacks_is_left_for_the_next_time():
    store = built(build_tiny)
    report = run(UnlistedStore(store, Truth(store).root_keys[-1]))
    assert report.findings == ()
    assert active(report).newest_version == 2


@pytest.mark.parametrize("deep", [False, True])
def test_a_lake_is_sound_while_others_append(tmp_path: Path, deep: bool):
    place = tmp_path / "lake"
    table = underlay.connect(place).create_table(SALES, "id bigint not null, name string, value double", key=["id"])
    table.append(rows(range(5)))
    is_over = Event()
    written = []

    def write() -> None:
        while not is_over.is_set():
            with underlay.connect(place).table(SALES).job(f"job-{len(written) % 2}") as job:
                written.append(job.table.append(rows(range(3))).version)

    writer = Thread(target=write)
    writer.start()
    try:
        reports = [run(open_store(place), deep=deep)]
        while len(reports) < _RUNS or active(reports[0]).newest_version == active(reports[-1]).newest_version:
            reports.append(run(open_store(place), deep=deep))
        code = command("verify", "--no-registry", "--lake", place).code
    finally:
        is_over.set()
        writer.join()
    assert {report.findings for report in reports} == {()}
    assert code == 0
    assert active(reports[-1]).newest_version <= written[-1]
