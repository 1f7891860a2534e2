from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from underlay.change.rows.adopt import Prepared
from underlay.errors import SchemaMismatch
from underlay.index.entry import FileEntry, FileLayout
from underlay.spark.native.early_files import EarlyFiles

pytestmark = pytest.mark.local_only
LAYOUT = FileLayout(id="a", elements=b"", created_by=None, fields=())


class Files:
    """A job's folder, and what was prepared of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[bytes] = []
        self.is_bad = False

    def prepare(self, path: Path) -> Prepared | None:
        data = path.read_bytes()
        self.asked.append(data)
        if self.is_bad:
            raise SchemaMismatch("it does not fit")
        path.write_bytes(data + b" filter")
        return Prepared(entry=FileEntry(data.decode(), len(data), None, 0, 0, "a", b"", ()), layout=LAYOUT)

    def commit_task(self, task: int, data: bytes) -> Path:
        """What an attempt that won leaves."""
        attempt, place = self.folder / f"_temporary/0/_temporary/{task}", self.folder / f"_temporary/0/task_{task}"
        attempt.mkdir(parents=True)
        (attempt / f"part-{task}.parquet").write_bytes(data)
        for old in place.glob("*"):
            old.unlink()
        attempt.rename(place)
        return place / f"part-{task}.parquet"

    def commit_job(self, *paths: Path) -> list[Path]:
        return [path.rename(self.folder / path.name) for path in paths]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "job")


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def names(prepared: dict[Path, Prepared]) -> list[str]:
    return sorted(one.entry.location for one in prepared.values())


def test_files_are_prepared_once_while_others_are_written(files: Files):
    early = EarlyFiles(files.folder, files.prepare)
    with early:
        first = files.commit_task(1, b"first")
        wait_for(lambda: first.read_bytes().endswith(b"filter"))
        second = files.commit_task(2, b"second")
        wait_for(lambda: second.read_bytes().endswith(b"filter"))
        third = files.folder / "part-3.parquet"
        third.write_bytes(b"third")
    paths = [*files.commit_job(first, second), third]
    assert names(early.prepare_all(paths)) == ["first", "second", "third"]
    assert sorted(files.asked) == [b"first", b"second", b"third"]
    assert sorted(one.entry.location for one in early.made) == ["first", "second", "third"]


def test_of_a_task_that_ran_again_the_file_that_is_there_counts(files: Files):
    early = EarlyFiles(files.folder, files.prepare)
    with early:
        first = files.commit_task(1, b"first")
        wait_for(lambda: first.read_bytes().endswith(b"filter"))
        held = first.open("rb")  # so that its inode is not given to the next one
        first = files.commit_task(1, b"other")
    assert names(early.prepare_all(files.commit_job(first))) == ["other"]
    held.close()
    assert "first" in [one.entry.location for one in early.made]


def test_a_fault_is_told_in_the_end(files: Files):
    files.is_bad = True
    early = EarlyFiles(files.folder, files.prepare)
    with early:
        first = files.commit_task(1, b"first")
        wait_for(lambda: bool(files.asked))
    files.is_bad = False
    with pytest.raises(SchemaMismatch, match="it does not fit"):
        early.prepare_all(files.commit_job(first))
    assert (early.made, files.asked) == ([], [b"first"])


def test_nothing_is_looked_for_after_a_failure(files: Files):
    with pytest.raises(ValueError, match="a task failed"), EarlyFiles(files.folder, files.prepare) as early:
        raise ValueError("a task failed")
    assert early.prepare_all([]) == {}
