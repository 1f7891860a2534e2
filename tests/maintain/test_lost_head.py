"""A table whose newest root cannot be read: older versions can, and verify says what to do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import underlay
from tests.cli.command import underlay as command
from tests.contract.worlds import World
from tests.end_to_end.lakes import memory, rows
from tests.maintain.healthy import OTHER, SALES, Truth, active, build_tiny, objects, run
from tests.registry.far import far_store
from underlay.errors import Damaged, Inconsistent, VersionNotFound
from underlay.store import Store, open_store
from underlay.table.versions.environment import Surroundings


@pytest.fixture
def store() -> Store:
    """Versions 0 to 3 a second apart; version 2 is tagged, and 3 is damaged."""
    ticks = iter(range(1, 100))
    world = World(memory())
    lake = underlay.Lake(world.store, surroundings=Surroundings(now_us=lambda: next(ticks) * 1_000_000))
    table = lake.create_table(SALES, "id bigint not null, name string, value double")
    for number in range(3):
        table.append(rows([number]))
    table.tag("good", 2)
    key = Truth(world.store).root_keys[3]
    world.overwrite(key, bytes(world.store.get(key)[0])[:50])
    return world.store


def committed(store: Store, version: int) -> datetime:
    root = underlay.connect(store).table(SALES, version=version).snapshot().root
    return datetime.fromtimestamp(root.committed_us / 1_000_000, UTC)


def test_older_versions_are_read(store: Store):
    lake = underlay.connect(store)
    assert [lake.table(SALES, version=version).count() for version in (0, 1, 2)] == [0, 1, 2]
    assert lake.table(SALES, tag="good").count() == 2
    assert lake.table(SALES).at(version=1).count() == 1
    assert lake.sql(f"select count(*) from {SALES} version as of 2").fetchall() == [(2,)]


def test_only_the_newest_is_not_read_and_nothing_is_committed(store: Store):
    before = objects(store)
    table = underlay.connect(store).table(SALES)
    for use in (
        table.count,
        lambda: table.at(version=3),
        lambda: table.append(rows([9])),
        lambda: table.rollback(2),
        lambda: table.job("nightly"),
    ):
        with pytest.raises(Damaged, match=r"00003\.root"):
            use()
    assert objects(store) == before


def test_a_version_that_never_was_is_said_with_those_that_are(store: Store):
    for version in (4, -1):
        with pytest.raises(VersionNotFound, match=r"Versions are 0 to 3"):
            underlay.connect(store).table(SALES, version=version)


def test_older_versions_can_be_tagged(store: Store):
    table = underlay.connect(store).table(SALES)
    table.tag("older", 1)
    assert table.tags == {"good": 2, "older": 1}
    assert table.at(tag="older").count() == 1


def test_who_has_the_table_open_while_its_newest_root_is_damaged_reads_older_versions():
    world = World(memory())
    build_tiny(world)
    table = world.again().table(SALES)
    assert table.count() == 20
    world.lake.table(SALES).append(rows([30]))
    world.overwrite(Truth(world.store).root_keys[4], b"garbage")
    with pytest.raises(Damaged, match=r"00004\.root"):
        table.count()
    assert table.at(version=3).count() == 20


def test_a_registry_that_knows_the_damaged_root_hides_no_older_version(tmp_path: Path):
    store, registry = far_store(), f"sqlite:///{tmp_path}/registry.sqlite"
    lake = underlay.connect(store, registry=registry)
    table = lake.create_table(SALES, "id bigint not null, name string, value double")
    table.append(rows([1]))
    table.append(rows([2]))
    assert lake.registry is not None
    assert lake.registry.wait(120)
    store.put(Truth(store).root_keys[2], b"garbage")
    again = underlay.connect(store, registry=registry)
    assert again.table(SALES, version=1).count() == 1
    with pytest.raises(Damaged, match=r"00002\.root"):
        again.table(SALES).count()
    assert again.registry is not None
    assert again.registry.opening(SALES) is not None, "the registry was refused"


def test_a_time_before_the_newest_version_is_read(store: Store):
    lake = underlay.connect(store)
    for version in (0, 1, 2):
        assert lake.table(SALES, as_of=committed(store, version)).version == version
    with pytest.raises(VersionNotFound):
        lake.table(SALES, as_of="1969-12-31")


def test_a_time_that_may_be_the_newest_version_is_refused(store: Store):
    with pytest.raises(Damaged, match=r"00003\.root"):
        underlay.connect(store).table(SALES, as_of="2100-01-01")


def test_a_first_version_that_cannot_be_read_is_named():
    world = World(memory())
    world.create("id bigint")
    (key,) = world.keys(".root")
    world.overwrite(key, b"garbage")
    with pytest.raises(Damaged, match=r"00000\.root"):
        underlay.connect(world.store).table(SALES, as_of="2100-01-01")


def test_a_missing_root_before_the_newest_hides_no_other():
    world = World(memory())
    build_tiny(world)
    world.store.delete([Truth(world.store).root_keys[2]])
    lake = underlay.connect(world.store)
    assert [lake.table(SALES, version=version).count() for version in (0, 1)] == [0, 10]
    with pytest.raises(Inconsistent, match=r"00002\.root.*is missing"):
        lake.table(SALES, version=2)


def test_the_report_says_that_nothing_can_be_committed(store: Store):
    report = active(run(store))
    assert (report.newest_intact, report.newest_version, report.is_head_intact) == (2, 3, False)


def test_what_verify_advises_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERLAY_LAKE", str(tmp_path / "lake"))
    world = World(open_store(tmp_path / "lake"))
    build_tiny(world)
    key = Truth(world.store).root_keys[3]
    data = bytes(world.store.get(key)[0])
    world.store.put(key, data[:50])
    done = command("verify")
    assert done.code == 1
    assert f"{key} (version 3)" in done.text
    assert "Restore it from a copy, under the same key." in done.text
    assert "rollback" not in done.words
    advised = [line.split("#")[0].split()[1:] for line in done.text.splitlines() if line.startswith("    underlay ")]
    (scan, [*copy, to, file], create, append) = advised
    assert command(*scan, "--count").text == "15\n"
    assert (copy[:2], to) == (["scan", SALES], ">")
    (tmp_path / file).write_bytes(command(*copy).output)
    assert command(*create).code == command(*append).code == 0
    assert command("scan", append[1], "--count").text == "15\n"
    world.store.put(key, data)
    assert command("verify").code == 0
    assert command("scan", SALES, "--count").text == "20\n"


def test_a_rollback_is_advised_only_where_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UNDERLAY_LAKE", str(tmp_path / "lake"))
    world = World(open_store(tmp_path / "lake"))
    build_tiny(world)
    world.store.delete([Truth(world.store).own_files()[1]])
    done = command("verify")
    assert "rollback" in done.words
    assert command("rollback", SALES, 1, "--yes").code == 0
    assert command("scan", SALES, "--count").text == "10\n"
    assert f"{OTHER}: 2 versions, 1 file, 1 sidecar: all there" in done.text
