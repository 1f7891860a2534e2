"""`_txn` on a disk: readers while a writer commits, and what a crash leaves."""

from __future__ import annotations

import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from underlay.errors import ChecksumMismatch, Damaged, Inconsistent, NotFound, Truncated, Unavailable
from underlay.hot.txn.file import TxnWriter, create_txn, read_txn, slot_of
from underlay.hot.txn.record import TxnPartition, TxnRecord


def state(version: int, count: int = 2) -> TxnRecord:
    partitions = tuple(
        TxnPartition(timestamp=day * 86_400_000_000, row_count=version, name_txn=day, size_bytes=1000 + version)
        for day in range(count)
    )
    return TxnRecord(version=version, partitions=partitions, writer_epoch=1, sealed_epoch=version)


def commit(writer: TxnWriter, record: TxnRecord) -> None:
    writer.prepare(record)
    writer.sync()
    writer.publish(record)
    writer.sync()


def rows(record: TxnRecord) -> list[int]:
    return [one.row_count for one in record.partitions]


def test_each_commit_is_read_and_the_record_in_use_is_never_overwritten(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(0))
    with TxnWriter(path) as writer:
        for version in range(1, 60):
            before = path.read_bytes()
            slot = slot_of(before, version - 1)
            record = state(version, count=1 + version * 7 % 5)
            writer.prepare(record)
            after = path.read_bytes()
            assert (
                after[slot.offset : slot.offset + slot.size_bytes + 16]
                == before[slot.offset : slot.offset + slot.size_bytes + 16]
            )
            assert read_txn(path).version == version - 1
            writer.publish(record)
            assert rows(read_txn(path)) == rows(record)
    assert path.stat().st_size < 2000


def test_a_prepared_version_that_was_never_published_is_overwritten_by_the_next_writer(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(0))
    with TxnWriter(path) as writer:
        writer.prepare(state(1, count=3))
    with TxnWriter(path) as writer:
        assert writer.newest.version == 0
        commit(writer, state(1, count=1))
    assert rows(read_txn(path)) == [1]


def test_readers_see_whole_versions_while_a_writer_commits(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(0))
    stopped = Event()

    def read() -> int:
        newest = -1
        while not stopped.is_set():
            found = read_txn(path)
            assert set(rows(found)) <= {found.version}
            assert found.sealed_epoch == found.version
            assert found.version >= newest
            newest = found.version
        return newest

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        with TxnWriter(path) as writer:
            for version in range(1, 300):
                commit(writer, state(version, count=1 + version % 4))
        stopped.set()
        assert all(reader.result() >= 0 for reader in readers)


def test_a_torn_record_is_an_error_with_its_place(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(4))
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(ChecksumMismatch, match="version 4, record at byte 64") as caught:
        read_txn(path, wait_ms=0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("size", [0, 8, 63, 64, 100])
def test_a_file_cut_short_is_an_error(tmp_path: Path, size: int):
    path = tmp_path / "_txn"
    create_txn(path, state(4))
    os.truncate(path, size)
    with pytest.raises(Truncated):
        read_txn(path, wait_ms=0)


def test_a_slot_with_impossible_numbers_is_an_error(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(4))
    for at, value in ((8, 3), (8, -5), (12, 7), (16, 33), (16, -32), (12, 2**30)):
        data = bytearray(path.read_bytes())
        struct.pack_into("<i", data, at, value)
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(Damaged):
            read_txn(tmp_path / "bad", wait_ms=0)


def test_a_missing_file_or_a_folder_is_an_error(tmp_path: Path):
    with pytest.raises(NotFound):
        read_txn(tmp_path / "_txn")
    with pytest.raises(NotFound):
        read_txn(tmp_path)


def test_a_second_writer_is_noticed_and_writes_nothing(tmp_path: Path):
    path = tmp_path / "_txn"
    create_txn(path, state(0))
    with TxnWriter(path) as first, TxnWriter(path) as second:
        commit(first, state(1))
        before = path.read_bytes()
        with pytest.raises(Inconsistent, match="another writer"):
            second.prepare(state(1, count=3))
        assert path.read_bytes() == before


def test_a_new_file_replaces_none(tmp_path: Path):
    create_txn(tmp_path / "_txn", state(0))
    with pytest.raises(Unavailable):
        create_txn(tmp_path / "_txn", state(9))
    assert read_txn(tmp_path / "_txn").version == 0
    assert [path.name for path in tmp_path.iterdir()] == ["_txn"]
