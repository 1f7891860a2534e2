"""Disks that are full or read-only and credentials that are missing: clear errors, and nothing half done."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, as_new_process, copy, ids, memory, quick, rows
from tests.table.checker import Checker
from underlay.errors import CommitUnknown, Unavailable, UnderlayError
from underlay.store import Store
from underlay.store.local import LocalStore
from underlay.store.store import Data, Outcome
from underlay.store.testing.wrapper import Request, StoreWrapper
from underlay.table.versions.environment import wait_for_background


class FullStore(StoreWrapper):
    """A store with room for so many more objects."""

    def __init__(self, inner: Store, room: int) -> None:
        super().__init__(inner)
        self.room = room
        self.is_full = False

    def create(self, key: str, data: Data) -> Outcome:
        self._take(key)
        return self.inner.create(key, data)

    def put(self, key: str, data: Data) -> None:
        self._take(key)
        self.inner.put(key, data)

    def around(self, request: Request, call: Callable[[], object], received_bytes: object) -> object:  # type: ignore[override]  # reads only
        return call()

    def _take(self, key: str) -> None:
        if self.room == 0:
            self.is_full = True
            raise Unavailable(os.strerror(errno.ENOSPC), place=f"{self.url}/{key}")
        self.room -= 1


def test_a_store_that_is_full_at_any_write_keeps_the_table_as_it_was():
    template = memory()
    quick(template).create_table(NAME, SCHEMA).append(rows([1]))
    for room in count():
        store = FullStore(copy(template), room)
        error = attempt(lambda: quick(store).table(NAME).append(rows([2])))  # noqa: B023  # called at once
        assert (error is None) == (not store.is_full)
        if error is None:
            break
        assert isinstance(error, Unavailable)
        assert os.strerror(errno.ENOSPC) in str(error)
        assert ids(quick(store.inner).table(NAME)) == [1]
        Checker(store.inner).check()
        store.room = 100
        quick(store).table(NAME).append(rows([2]))
        assert ids(quick(store.inner).table(NAME)) == [1, 2]
    assert room == 3


def attempt(work: Callable[[], object]) -> UnderlayError | None:
    try:
        work()
    except UnderlayError as error:
        return error
    return None


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """The limit on file sizes stands in for a full disk: a write is cut short in the same place."""
    wait_for_background()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize("size_bytes", [100, 600, 1200])
def test_a_write_that_is_cut_short_adds_nothing(tmp_path: Path, size_bytes: int):
    """Room for no file, for the sidecar alone, for all but the root."""
    store = LocalStore(tmp_path / "lake")
    table = underlay.connect(store).create_table(NAME, SCHEMA)
    table.append(rows([1]))
    with largest_file(size_bytes), pytest.raises(Unavailable, match=os.strerror(errno.EFBIG)):
        table.append(rows([2]))
    assert ids(as_new_process(store)) == [1]
    assert not [name for path in tmp_path.rglob("*") if (name := path.name).startswith(".")]
    Checker(store).check()
    table.append(rows([2]))
    assert ids(table) == [1, 2]


class ReadOnlyStore(FullStore):
    """A store that may be read only."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner, 0)


def test_a_store_that_may_only_be_read_is_read():
    inner = memory()
    quick(inner).create_table(NAME, SCHEMA, key=["id"]).append(rows([1, 2]))
    lake = quick(ReadOnlyStore(inner))
    table = lake.table(NAME)
    assert ids(table, "id = 2") == [2]
    for work in (
        lambda: table.append(rows([3])),
        lambda: table.rollback(0),
        lambda: table.tag("a"),
        lambda: lake.create_table("another.table", SCHEMA),
        lambda: lake.drop_table(NAME),
    ):
        error = attempt(work)
        assert isinstance(error, Unavailable)
        assert not isinstance(error, CommitUnknown)
    assert ids(quick(inner).table(NAME)) == [1, 2]
    assert [found.name for found in quick(inner).tables()] == [NAME]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, which pytest's own are not."""
    with TemporaryDirectory(prefix="underlay-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_nobody(work: Callable[[], bool]) -> bool:
    """Whether `work` is true in a child without the rights of root, to whom every folder is open."""
    child = os.fork()
    if not child:
        code = 2
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def test_a_folder_that_may_only_be_read_is_read_and_not_written(open_folder: Path):
    store = LocalStore(open_folder / "lake")
    table = underlay.connect(store).create_table(NAME, SCHEMA, key=["id"])
    table.append(rows([1, 2]))
    assert ids(table, "id = 2") == [2]
    wait_for_background()
    for path in [store.root, *store.root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def work() -> bool:
        reader = underlay.connect(store.root).table(NAME)
        error = attempt(lambda: reader.append(rows([3])))
        is_refused = isinstance(error, Unavailable) and os.strerror(errno.EACCES) in str(error)
        return ids(reader, "id = 2") == [2] and is_refused

    assert as_nobody(work)
    assert ids(as_new_process(store)) == [1, 2]
    Checker(store).check()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnderlayError, match="file/lake"):
        underlay.connect(tmp_path / "file" / "lake").create_table(NAME, SCHEMA)


@pytest.mark.parametrize("verb", ["create_table", "table", "tables"])
def test_missing_credentials_are_said(verb: str, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    options = {"endpoint": "http://127.0.0.1:9", "region": "us-east-1", "max_retries": "0", "imdsv1_fallback": "false"}
    lake = underlay.connect("s3://bucket/lake", options=options | {"metadata_endpoint": "http://127.0.0.1:9"})
    arguments = {"create_table": (NAME, SCHEMA), "table": (NAME,), "tables": ()}[verb]
    with pytest.raises(Unavailable) as raised:
        getattr(lake, verb)(*arguments)
    assert "bucket" in str(raised.value)
