"""A file system that is mounted read-only under a live writer: it is said, answers stay right, and writing goes on when
it is mounted for writing again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

import underlay
from tests.disk.mounted import mount, mounted
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.table.checker import Checker
from underlay.errors import CommitUnknown, Unavailable, UnderlayError
from underlay.store import open_store

WAIT_SECONDS = 600


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=64M") as folder:
        yield folder


def remount(disk: Path, mode: str) -> None:
    """Mount it read-only or for writing. The kernel refuses the former while a file is open for writing, which a commit
    has for a moment."""
    for _ in range(100_000):
        problem = mount("-o", f"remount,{mode}", str(disk))
        if "busy" not in problem:
            assert not problem
            return
    raise AssertionError("a file stays open for writing")


class Writer:
    """Appends 0, 1, 2 … in a thread, each until it is acknowledged; after an error when it is told to go on."""

    def __init__(self, table: underlay.Table) -> None:
        self._table = table
        self.acknowledged: list[int] = []
        self.errors: list[UnderlayError] = []
        self.has_begun, self.has_failed, self.may_go_on = Event(), Event(), Event()
        self._is_ended = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not (self._is_ended and self.errors):
            number = len(self.acknowledged)
            try:
                self._table.append(rows([number]), token=f"row {number}")
            except UnderlayError as error:
                self.errors.append(error)
                self.has_failed.set()
                self.may_go_on.wait(WAIT_SECONDS)
                continue
            self.acknowledged.append(number)
            if number == 5:
                self.has_begun.set()

    def end(self) -> None:
        """After the append that is under way."""
        self._is_ended = True
        self.may_go_on.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()


def test_a_writer_under_whom_the_file_system_turns_read_only_says_so_and_goes_on_later(disk: Path):
    with underlay.connect(disk / "lake", registry="none") as lake:
        writer = Writer(lake.create_table(NAME, SCHEMA))
        assert writer.has_begun.wait(WAIT_SECONDS)
        remount(disk, "ro")
        assert writer.has_failed.wait(WAIT_SECONDS)
        known = list(writer.acknowledged)
        for reader in (lake, underlay.connect(disk / "lake", registry="none"), underlay.connect(disk / "lake")):
            found = ids(reader.table(NAME))
            assert found in (known, [*known, len(known)])  # the last one may be there although it is not known
            assert reader.sql('from "some"."table"').to_arrow().num_rows == len(found)
            with pytest.raises(Unavailable, match=r"Read-only file system.*mounted read-only.*mount it for writing"):
                reader.table(NAME).delete("id = 0")
        remount(disk, "rw")
        writer.end()
        assert len(writer.acknowledged) >= len(known)
        lake.table(NAME).append(rows([-1]))
        assert ids(lake.table(NAME)) == [-1, *writer.acknowledged]
    for error in writer.errors:
        assert "Read-only file system" in str(error) or isinstance(error, CommitUnknown)
        assert error.hint
    Checker(open_store(disk / "lake")).check()


def test_a_lake_on_a_read_only_file_system_is_read_with_the_registry_that_lies_in_it(disk: Path):
    with underlay.connect(disk / "lake") as lake:
        table = lake.create_table(NAME, SCHEMA)
        table.append(rows([1, 2]))
        table.append(rows([3]))
    remount(disk, "ro")
    with underlay.connect(disk / "lake") as lake:
        assert [one.name for one in lake.tables()] == [NAME]
        assert ids(lake.table(NAME)) == [1, 2, 3]
        assert ids(lake.table(NAME, version=1)) == [1, 2]
        assert [one.version for one in lake.table(NAME).history()] == [2, 1, 0]
        with pytest.raises(Unavailable, match="Read-only file system"):
            lake.create_table("another.table", SCHEMA)
        with pytest.raises(Unavailable, match="Read-only file system"):
            lake.drop_table(NAME)
    assert ids(underlay.connect(disk / "lake").table(NAME)) == [1, 2, 3]


def test_care_of_a_lake_on_a_read_only_file_system_is_refused_with_what_to_do(disk: Path):
    with underlay.connect(disk / "lake", registry="none") as lake:
        table = lake.create_table(NAME, SCHEMA)
        for number in range(4):
            table.append(rows([number]))
    remount(disk, "ro")
    with underlay.connect(disk / "lake", registry="none") as lake:
        table = lake.table(NAME)
        for work in (
            table.compact,
            lambda: table.expire("0s", 1, dry_run=False),
            lambda: lake.sweep(dry_run=False),
            lambda: table.vacuum(dry_run=False),
            lambda: lake.vacuum(dry_run=False),
        ):
            with pytest.raises(Unavailable, match=r"Read-only file system.*mounted read-only.*mount it for writing"):
                work()
        assert table.compact(dry_run=True).files_before == 4
        assert table.health().version_count == 5
        assert (table.version, ids(table)) == (4, [0, 1, 2, 3])
