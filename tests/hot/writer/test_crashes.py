"""A crash of the process or of the machine at any write or sync: acknowledged rows are there, others whole or not at
all, and the next writer continues."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import underlay as ul
from tests.gate import SEED, some
from tests.hot.recorded_disk import Crash, Disk, Op, RecordingDisk
from tests.hot.trips import Place, ids, trips
from underlay.api.table import Table
from underlay.change.update.edit import FileAccess
from underlay.errors import CommitUnknown, InvalidRequest, Unavailable
from underlay.hot.files import place_rows, version
from underlay.hot.seal.open import HotWriter, open_writer
from underlay.pm.file import read_sidecar

CRASHES: tuple[Crash, ...] = ("kill", "power cut", "power cut that keeps some")


def writer_of(table: Table, folder: Path, disk: RecordingDisk | None = None) -> HotWriter:
    context = table._context
    files = FileAccess(stores=context.stores, cache=context.cache)
    return open_writer(table.writable(), folder, files, disk=disk, reader_age_seconds=3600.0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a few rows reach them: blocks are joined, sidecars and files written anew."""
    monkeypatch.setattr(place_rows, "TOP_UP_ROWS", 6)
    monkeypatch.setattr(place_rows, "FAN", 3)
    monkeypatch.setattr(version, "DEAD_BYTES", 20_000)
    monkeypatch.setattr("underlay.hot.files.partition.SIDECAR_BYTES", 5_000)


@pytest.mark.usefixtures("small")
def test_a_crash_at_any_write_or_sync_loses_no_acknowledged_row(place: Place, tmp_path: Path):
    table = place.create()
    disk = RecordingDisk()
    rng = np.random.default_rng(SEED)
    place.hot.mkdir()
    writer = writer_of(table, place.partitions, disk)
    counts = [0]
    for number in range(24):
        late = rng.random() < 0.3
        times = rng.integers(0, 150_000, 5).tolist() if late else [100 * number + at for at in range(5)]
        if number % 9 == 8:
            writer.compact()
        writer.append(trips(times, counts[-1]))
        counts.append(counts[-1] + 5)
        disk.acknowledge(counts[-1])
    writer.close()
    kinds = {op.kind for op in disk.ops}
    assert {"link", "mkdir", "write", "sync", "sync directory"} <= kinds
    points = some([(end, crash) for end in range(len(disk.ops) + 1) for crash in CRASHES], 12)
    for at, (end, crash) in enumerate(points):
        left = Disk(disk.ops[:end], place.hot)
        target = tmp_path / f"crash{at}"
        target.mkdir()
        left.restore(target, crash, random.Random(f"{SEED} {end}"))
        check(place, target, left.acknowledged, f"{crash} at {end}: {disk.ops[end - 1].kind if end else 'nothing'}")


def check(place: Place, hot: Path, acknowledged: int, where: str) -> None:
    lake = ul.connect(place.folder / "lake", registry="none", hot=hot)
    table = lake.table("taxi.trips")
    found = ids(table)
    assert found in (list(range(acknowledged)), list(range(acknowledged + 5))), where
    folder = hot / "taxi" / "trips"
    writer = writer_of(table, folder)
    try:
        assert ids(table) == found, where
        writer.append(trips([7, 90_000], 1000))
        assert ids(table) == [*found, 1000, 1001], where
        for partition in writer.state.partitions:
            path = writer.commits.directory_of(partition)
            sidecar = read_sidecar(path / "_pm", parquet_size=partition.size_bytes)
            assert int(sidecar.num_rows.sum()) == partition.row_count, where
    finally:
        writer.close()


@pytest.mark.usefixtures("small")
def test_a_disk_that_fails_at_any_call_refuses_the_append_and_goes_on(place: Place):
    table = place.create()
    disk = RecordingDisk()
    writer = writer_of(table, place.partitions, disk)
    writer.append(trips([1, 2, 90_000]))
    expected = [0, 1, 2]
    failing = -1

    def fail(number: int, op: Op) -> None:
        nonlocal failing
        if op.kind not in ("truncate", "remove"):
            if failing == 0:
                raise OSError(28, "No space left on device")
            failing -= 1

    disk.fail = fail
    refused = unknown = 0
    for number in range(40):
        first = 100 + 10 * number
        failing = number % 20
        rows = trips([50 * number, 50 * number + 90_000], first)
        try:
            writer.append(rows)
            expected += [first, first + 1]
        except CommitUnknown:
            unknown += 1
            failing = -1
            with pytest.raises((CommitUnknown, InvalidRequest)):
                writer.append(rows)
            writer.close()
            found = ids(table)
            assert found in (expected, [*expected, first, first + 1])
            expected = found
            writer = writer_of(table, place.partitions, disk)
        except Unavailable:
            refused += 1
        failing = -1
        assert ids(table) == expected
    assert refused > 8
    writer.append(trips([5], 5000))
    assert ids(table) == [*expected, 5000]
    writer.close()


def test_a_failed_append_without_waiting_is_told_at_the_next_call(place: Place):
    table = place.create()
    disk = RecordingDisk()
    writer = writer_of(table, place.partitions, disk)
    writer.append(trips([1]))

    def fail(number: int, op: Op) -> None:
        raise OSError(28, "No space left on device")

    disk.fail = fail
    writer.append_nowait(trips([2], 1))
    with pytest.raises(Unavailable, match="No space"):
        writer.flush()
    disk.fail = lambda number, op: None
    writer.append_nowait(trips([3], 2))
    writer.close()
    assert ids(table) == [0, 2]
