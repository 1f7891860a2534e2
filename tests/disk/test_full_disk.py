"""A file system that is full, of bytes or of names, under a live writer: it is said, what was acknowledged is read, and
writing goes on when there is room again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import underlay
from tests.disk.mounted import mounted
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.table.checker import Checker
from underlay.errors import CommitUnknown, Unavailable
from underlay.store import open_store

FULL = {"bytes": "size=6M,nr_inodes=3000", "names": "size=64M,nr_inodes=700"}


@pytest.fixture(params=FULL)
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    with mounted(tmp_path / "disk", FULL[request.param]) as folder:
        yield folder


def fill(disk: Path) -> list[Path]:
    """Take all the room that is left, of bytes and of names."""
    (disk / "ballast").mkdir()
    made = []
    with suppress(OSError):
        while True:
            made.append(disk / "ballast" / f"name {len(made)}")
            made[-1].touch()
    with suppress(OSError), made[0].open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return made


@pytest.mark.parametrize("registry", ["none", "default"])
def test_a_writer_on_a_full_file_system_says_so_loses_nothing_and_goes_on_when_there_is_room(disk: Path, registry: str):
    lake = underlay.connect(disk / "lake", **({} if registry == "default" else {"registry": registry}))
    table = lake.create_table(NAME, SCHEMA)
    for number in range(5):
        table.append(rows([number]))
    filled = fill(disk)
    for verb in (
        lambda: table.append(rows([5]), token="row 5"),
        lambda: table.delete("id = 0"),
        lambda: table.upsert(rows([1]), "id"),
        lambda: lake.create_table("another.table", SCHEMA),
    ):
        with pytest.raises(Unavailable, match=r"No space left on device") as caught:
            verb()
        assert caught.value.hint
    for reader in (lake, underlay.connect(disk / "lake", registry="none"), underlay.connect(disk / "lake")):
        assert ids(reader.table(NAME)) == [0, 1, 2, 3, 4]
        assert reader.sql('select count(*) from "some"."table"').to_arrow()[0].to_pylist() == [5]
    for path in filled:
        path.unlink(missing_ok=True)
    table.append(rows([5]), token="row 5")
    table.delete("id = 0")
    lake.create_table("another.table", SCHEMA)
    assert ids(table) == [1, 2, 3, 4, 5]
    lake.close()
    Checker(open_store(disk / "lake")).check()


def append_until_full(table: underlay.Table) -> tuple[int, Unavailable | CommitUnknown]:
    """How many appends of a hundred rows were acknowledged, and what the next one raised."""
    for number in range(2000):
        try:
            table.append(rows(range(number * 100, number * 100 + 100)))
        except (Unavailable, CommitUnknown) as error:
            return number, error
    raise AssertionError("the file system was never full")


def test_appends_until_the_file_system_is_full_are_there_or_were_refused(disk: Path):
    table = underlay.connect(disk / "lake", registry="none").create_table(NAME, SCHEMA)
    acknowledged, error = append_until_full(table)
    assert isinstance(error, CommitUnknown) or "No space left on device" in str(error)
    assert error.hint
    unknown = 100 if isinstance(error, CommitUnknown) else 0
    for lake in (underlay.connect(disk / "lake", registry="none"), underlay.connect(disk / "lake")):
        found = ids(lake.table(NAME))
        assert found[: acknowledged * 100] == list(range(acknowledged * 100))
        assert len(found) - acknowledged * 100 in (0, unknown)
    Checker(open_store(disk / "lake")).check()
