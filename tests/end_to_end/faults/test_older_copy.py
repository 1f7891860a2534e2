"""An older copy of a lake is put back under processes that use it: nothing is acknowledged that is in no version, and a
chain that is mixed of two histories is refused by everybody who finds its head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import underlay
from tests.cli.command import underlay as command
from tests.end_to_end.lakes import SCHEMA, ids, memory, quick, rows
from tests.store.servers import S3Server
from underlay.cache.settings import memory_cache
from underlay.errors import Inconsistent
from underlay.registry.database.database import open_database
from underlay.registry.rebuild.restore import restore
from underlay.store.local import LocalStore
from underlay.store.store import Data, Outcome, Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.environment import wait_for_background

NAME = "taxi.trips"
COPIED = 5
"""The newest version of the copy."""
KNOWN = 10
"""The newest version that the live process knows."""


def objects(store: Store) -> dict[str, bytes]:
    return {found.key: bytes(store.get(found.key)[0]) for found in store.list_objects()}


def put_back(store: Store, copy: dict[str, bytes]) -> None:
    """Make the store what it was when it was copied."""
    wait_for_background()
    store.delete([key for key in objects(store) if key not in copy])
    for key, data in copy.items():
        store.put(key, data)


@pytest.fixture(params=["memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return memory()
    if request.param == "local":
        return LocalStore(tmp_path / "lake")
    server: S3Server = request.getfixturevalue("moto")
    return server.open()


@pytest.fixture
def live(store: Store) -> Iterator[underlay.Table]:
    """The table in a process that knows version 10, on a store that is at version 5 again."""
    lake = quick(store)
    table = lake.create_table(NAME, SCHEMA)
    for number in range(1, KNOWN + 1):
        table.append(rows([number]))
        if number == COPIED:
            copy = objects(store)
    put_back(store, copy)
    yield table
    lake.close()


def fresh(store: Store) -> underlay.Table:
    """The table as a process sees it that has nothing in memory."""
    memory_cache().start_afresh()
    return quick(store).table(NAME)


def root_key(table: underlay.Table, version: int) -> str:
    return table.snapshot().keys.root(version)


@pytest.mark.parametrize("store", ["memory", "local", "s3"], indirect=True)
def test_nothing_is_acknowledged_over_a_gap(store: Store, live: underlay.Table):
    before = {key for key in objects(store) if key.endswith(".root")}
    for _ in range(2):
        with pytest.raises(Inconsistent, match=r"version 10, on which this commit is based, is no longer in the store"):
            live.append(rows([11]))
    assert {key for key in objects(store) if key.endswith(".root")} == before
    assert ids(fresh(store)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("others", [3, 5])
def test_nothing_is_acknowledged_on_another_history(store: Store, live: underlay.Table, others: int):
    other = fresh(store)
    for number in range(others):
        other.append(rows([100 + number]))
    with pytest.raises(Inconsistent, match="no longer in the store") as raised:
        live.append(rows([11]))
    assert "Nothing was committed" in str(raised.value)
    assert ids(fresh(store)) == [1, 2, 3, 4, 5, *range(100, 100 + others)]


@pytest.mark.parametrize("others", [6, 7, 9])
def test_who_knew_another_history_is_told_so_when_it_grows_past(store: Store, live: underlay.Table, others: int):
    other = fresh(store)
    for number in range(others):
        other.append(rows([100 + number]))
    for use in (live.count, lambda: live.append(rows([11])), lambda: live.rollback(2)):
        with pytest.raises(Inconsistent, match=r"version 11 does not follow version 10: two histories are mixed"):
            use()


class PutBackBeforeTheRoot(CountingStore):
    """An older copy is put back between the last check of a commit and the creation of its root."""

    copy: dict[str, bytes] | None = None

    def create(self, key: str, data: Data) -> Outcome:
        if self.copy is not None and key.endswith(".root"):
            put_back(self.inner, self.copy)
            self.copy = None
        return super().create(key, data)


@pytest.fixture
def mixed() -> tuple[Store, underlay.Table]:
    """Version 11 lies over versions 6 to 10 of another history: what an older release, or a commit in the moment when
    the copy was put back, leaves behind. And the table in the process that wrote it."""
    store = PutBackBeforeTheRoot(memory())
    table = quick(store).create_table(NAME, SCHEMA)
    for number in range(1, KNOWN + 1):
        table.append(rows([number]))
        if number == COPIED:
            copy = objects(store)
    store.copy = copy
    table.append(rows([11]))
    return store.inner, table


def test_only_the_commit_of_that_moment_is_acknowledged(mixed: tuple[Store, underlay.Table]):
    store, live = mixed
    for _ in range(2):
        with pytest.raises(Inconsistent, match="version 10, on which this commit is based, is no longer in the store"):
            live.append(rows([12]))
    other = fresh(store)
    for number in range(100, 105):
        other.append(rows([number]))
    with pytest.raises(Inconsistent, match="version 10, on which this commit is based, is no longer in the store"):
        live.append(rows([12]))


def grown(store: Store) -> underlay.Table:
    """Another process commits versions 6 to 10, and then finds version 11."""
    other = fresh(store)
    for number in range(100, 105):
        other.append(rows([number]))
    return other


def test_a_mixed_chain_is_refused_by_all_who_find_its_head(mixed: tuple[Store, underlay.Table], tmp_path: Path):
    store, _ = mixed
    other = grown(store)
    key = root_key(other.at(version=6), 11)
    opened = fresh(store)
    for use in (
        other.count,
        lambda: other.append(rows([7])),
        opened.count,
        lambda: opened.append(rows([7])),
        lambda: opened.scan().to_arrow(),
        lambda: opened.at(version=11).count(),
        lambda: list(opened.history()),
        lambda: opened.rollback(4),
        lambda: quick(store).sql(f"select count(*) from {NAME}").fetchall(),
        lambda: quick(store).sql(f"select count(*) from {NAME} version as of 11").fetchall(),
    ):
        with pytest.raises(Inconsistent, match=r"version 11 does not follow version 10") as raised:
            use()
        assert raised.value.place is not None
        assert raised.value.place.endswith(key)
        assert raised.value.hint is not None
        assert "underlay verify" in raised.value.hint
    assert opened.at(version=10).count() == 10


def test_verify_names_what_to_move_and_then_the_lake_is_whole(mixed: tuple[Store, underlay.Table], tmp_path: Path):
    store, _ = mixed
    other = grown(store)
    key = root_key(other.at(version=6), 11)
    folder = LocalStore(tmp_path / "lake")
    for found, data in objects(store).items():
        folder.put(found, data)
    verified = command("verify", "--lake", str(tmp_path / "lake"))
    assert verified.code == 1
    assert key in verified.text
    assert "move" in verified.text
    folder.delete([key])
    assert ids(fresh(folder)) == [1, 2, 3, 4, 5, 100, 101, 102, 103, 104]
    fresh(folder).append(rows([105]))
    assert command("verify", "--lake", str(tmp_path / "lake")).code == 0


def test_a_registry_is_not_restored_from_a_mixed_chain(mixed: tuple[Store, underlay.Table], tmp_path: Path):
    store, _ = mixed
    grown(store)
    database = open_database(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    with pytest.raises(Inconsistent, match="does not follow"):
        restore(database, store)
    database.close()


@pytest.mark.parametrize("others", [0, 2, 3])
def test_a_catalog_is_not_changed_over_a_gap_nor_on_another_history(store: Store, others: int):
    lake = quick(store)
    lake.create_table("some.first", SCHEMA)
    copy = objects(store)
    for number in range(2):
        lake.create_table(f"some.t{number}", SCHEMA)
    put_back(store, copy)
    for number in range(others):
        quick(store).create_table(f"other.t{number}", SCHEMA)
    match = "does not follow" if others > 2 else "catalog entry 3, on which this commit is based, is no longer"
    with pytest.raises(Inconsistent, match=match):
        lake.create_table("some.late", SCHEMA)
    assert [table.name for table in quick(store).tables()] == [*(f"other.t{n}" for n in range(others)), "some.first"]


def test_a_mixed_catalog_is_refused():
    store = memory()
    lake = quick(store)
    for number in range(3):
        lake.create_table(f"some.t{number}", SCHEMA)
        if number == 0:
            copy = objects(store)
    late = objects(store)["_catalog/00000000000000000003.json"]
    put_back(store, copy)
    quick(store).create_table("other.table", SCHEMA)
    store.put("_catalog/00000000000000000003.json", late)
    with pytest.raises(Inconsistent, match="catalog entry 3 does not follow catalog entry 2"):
        LakeCatalog(store).catalog()


def test_a_damaged_root_before_the_head_hides_nothing():
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA)
    for number in range(3):
        table.append(rows([number]))
    key = root_key(table, 2)
    data = bytearray(store.get(key)[0])
    data[data.index(b'"commit_id"') + 15] ^= 1
    store.put(key, bytes(data))
    opened = fresh(store)
    assert ids(opened) == [0, 1, 2]
    opened.append(rows([3]))
    assert ids(fresh(store)) == [0, 1, 2, 3]


def test_the_checks_cost_two_small_requests():
    store = CountingStore(memory())
    table = quick(store).create_table(NAME, SCHEMA)
    for number in range(3):
        table.append(rows([number]))
    store.reset()
    table.append(rows([3]))
    looks = [one for one in store.log if one.request.op is StoreMethod.GET_RANGES]
    assert len(looks) == 2
    assert sum(one.received_bytes for one in looks) < 500
