"""What reading and writing ask of the store: how many requests, in which sequence, and how many bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, rows
from underlay.cache.settings import memory_cache
from underlay.index.root import encode_root
from underlay.store.local import LocalStore
from underlay.store.store import Data
from underlay.store.testing.counting import CountingStore, Served
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.versions.chain import HINT_EVERY
from underlay.table.versions.environment import wait_for_background
from underlay.values.ranges import ByteRange

COLD_OPEN = 21
"""Most requests of a cold open: catalog and root by their hints, a search among the commits since each hint, and beside
each of the two a look at the one before it."""
COMMITS = 400
WAIT_SECONDS = 240


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(LocalStore(tmp_path / "lake"))


@pytest.fixture
def table(store: CountingStore) -> underlay.Table:
    return underlay.connect(store).create_table(NAME, SCHEMA, key=["id"], sort_by=["id"])


def settle(store: CountingStore) -> None:
    """From here on only what is asked for counts."""
    wait_for_background()
    store.reset()


def cold(store: CountingStore, **options: float) -> underlay.Table:
    """The table in a process that has nothing in memory; what it asks for is counted from here on."""
    memory_cache().start_afresh()
    settle(store)
    return underlay.connect(store, **options).table(NAME)


def calls(store: CountingStore, part: str) -> list[Served]:
    return [served for served in store.log if any(part in key for key in served.request.keys)]


def test_a_warm_plan_asks_only_whether_the_head_moved(store: CountingStore, table: underlay.Table):
    table.append(rows(range(100)))
    table.plan(where="value > 3")
    settle(store)
    assert table.plan(where="value > 3").kept.rows == 100
    assert [served.request.op for served in store.log] == [StoreMethod.HEAD]


def test_a_warm_plan_within_the_staleness_asks_nothing(store: CountingStore, table: underlay.Table):
    table.append(rows(range(100)))
    reader = cold(store, max_staleness_seconds=3600.0)
    reader.plan(where="value > 3")
    store.reset()
    assert reader.plan(where="value > 3").kept.rows == 100
    assert reader.count() == 100
    assert store.log == ()


def test_a_count_of_all_rows_reads_no_file(store: CountingStore, table: underlay.Table):
    table.append(rows(range(100)))
    reader = cold(store)
    assert reader.count("id >= 0") == 100
    assert not calls(store, ".parquet")


class MeetingStore(LocalStore):
    """A store in which a put ends only after so many are under way at once."""

    meeting: Barrier | None = None

    def put(self, key: str, data: Data) -> None:
        if self.meeting is not None:
            self.meeting.wait(WAIT_SECONDS)
        super().put(key, data)


@pytest.mark.parametrize("tokens", [(None, None), ("a", "b")])
def test_an_append_waits_for_two_writes_in_sequence(tmp_path: Path, tokens: tuple[str | None, str | None]):
    inner = MeetingStore(tmp_path / "lake")
    store = CountingStore(inner)
    table = underlay.connect(store).create_table(NAME, SCHEMA, key=["id"])
    table.append(rows([1]), token=tokens[0])
    settle(store)
    inner.meeting = Barrier(2)  # the file and its sidecar
    table.append(rows([2]), token=tokens[1])
    assert store.longest_chain() == 2
    assert [served.request.op for served in store.log].count(StoreMethod.CREATE) == 1
    assert store.request_count() == 6  # is there a newer head; the base and its parent are there; file; sidecar; root


class FarStore(LocalStore):
    """Says that it is remote. A put ends, and so does a read of ids, only after so many requests are under way."""

    is_remote = True
    meeting: Barrier | None = None

    def put(self, key: str, data: Data) -> None:
        if self.meeting is not None:
            self.meeting.wait(WAIT_SECONDS)
        super().put(key, data)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], **options: Any) -> Sequence[memoryview]:
        if self.meeting is not None and key.endswith(".root"):
            self.meeting.wait(WAIT_SECONDS)
        return super().get_ranges(key, ranges, **options)


def test_the_base_of_a_commit_is_looked_at_beside_the_uploads(tmp_path: Path):
    inner = FarStore(tmp_path / "lake")
    table = underlay.connect(inner).create_table(NAME, SCHEMA, key=["id"])
    table.append(rows([1]))
    wait_for_background()
    inner.meeting = Barrier(4)  # the file, its sidecar, the base, and the parent of the base
    table.append(rows([2]))
    assert table.count() == 2


def test_many_commits_leave_the_root_the_writes_and_the_opening_small(store: CountingStore, table: underlay.Table):
    sent: list[int] = []
    opened: dict[int, int] = {}
    for number in range(COMMITS):
        if number in (3 * HINT_EVERY - 1, COMMITS - 1):
            cold(store).plan(where="value > 1e9")
            opened[number] = store.request_count() - 2 * len(calls(store, ".arrow"))
            assert not [
                served
                for served in store.log
                if served.request.op in (StoreMethod.LIST_OBJECTS, StoreMethod.LIST_FOLDERS)
            ]
        settle(store)
        table.append(rows([number]))
        sent.append(sum(served.request.sent_bytes for served in calls(store, "_index/")))
    early, late = opened.values()
    assert late <= early, "opening takes more requests after many commits"
    assert early <= COLD_OPEN
    root = table.snapshot().root
    assert len(encode_root(root)) < 64 << 10
    assert len(root.segments) <= 24
    assert sum(sent) / COMMITS < 32 << 10
    assert table.count() == COMMITS


def test_a_cold_plan_fetches_of_each_surviving_segment_once_and_its_columns_only(store: CountingStore, tmp_path: Path):
    names = [f"c{number}" for number in range(20)]
    lake = underlay.connect(store)
    table = lake.create_table(NAME, pa.schema([(name, pa.int64()) for name in names]), sort_by=["c0"])
    for number in range(200):
        data = pa.table({name: np.arange(10 * number, 10 * number + 10) for name in names})
        pq.write_table(data, tmp_path / f"{number:04}.parquet")
    table.register(str(tmp_path / "*.parquet"))
    reader = cold(store)
    opening = store.request_count()
    assert reader.plan(where="c7 < 100").kept.files == 10
    (fetched,) = calls(store, ".arrow")
    (ref,) = reader.snapshot().root.segments
    assert opening <= COLD_OPEN
    assert fetched.received_bytes < ref.size_bytes / 4


def test_a_cold_plan_fetches_nothing_of_a_segment_that_the_root_rules_out(
    store: CountingStore, table: underlay.Table, tmp_path: Path
):
    for number in range(100):
        pq.write_table(rows(range(10 * number, 10 * number + 10)), tmp_path / f"{number:04}.parquet")
    table.register(str(tmp_path / "*.parquet"))
    reader = cold(store)
    assert len(reader.snapshot().root.segments) == 1
    assert reader.plan(where="id < 0").kept.files == 0
    assert not calls(store, ".arrow")


def wide_table(store: CountingStore) -> underlay.Table:
    """Twelve columns, one of them null, and blocks of 2,000 rows."""
    chance = np.random.default_rng(5)
    columns = {f"c{number}": chance.normal(size=20_000) for number in range(10)}
    data = pa.table({"id": np.arange(20_000), **columns, "empty": pa.nulls(20_000, pa.int64())})
    table = underlay.connect(store).create_table(NAME, data.schema, sort_by=["id"], properties={"block_rows": "2000"})
    table.append(data)
    return table


def chunk_bytes(store: CountingStore, key: str, columns: list[str], blocks: list[int]) -> int:
    """What the file's own footer says of these chunks."""
    footer = pq.read_metadata(io.BytesIO(store.inner.get(key)[0]))
    sizes = [
        footer.row_group(block).column(place).total_compressed_size
        for block in blocks
        for place in range(footer.num_columns)
        if footer.row_group(block).column(place).path_in_schema in columns
    ]
    assert len(sizes) == len(columns) * len(blocks)
    return sum(sizes)


@pytest.mark.parametrize(
    ("columns", "where", "blocks"),
    [
        (["c3"], "id >= 4000 and id < 8000", [2, 3]),
        (["id", "c0", "c9"], "id >= 4000 and id < 8000", [2, 3]),
        (["c1", "c2", "c3"], "id between 0 and 19999", list(range(10))),
        (["c5", "empty"], "id in (1, 19999)", [0, 9]),
    ],
)
def test_a_scan_reads_the_bytes_that_it_needs(store: CountingStore, columns: list[str], where: str, blocks: list[int]):
    table = wide_table(store)
    scan = table.scan(columns, where)
    assert scan.plan.kept.blocks == len(blocks)
    settle(store)
    scan.to_arrow()
    (read,) = calls(store, ".parquet")
    needed = chunk_bytes(store, read.request.keys[0], sorted({"id", *columns} - {"empty"}), blocks)
    assert needed <= read.received_bytes <= 1.02 * needed
    assert len(store.log) == 1


def test_a_column_of_nulls_is_not_fetched(store: CountingStore):
    table = wide_table(store)
    settle(store)
    assert table.scan(["empty"]).to_arrow().num_rows == 20_000
    assert not calls(store, ".parquet")


def test_a_scan_asks_each_file_once(store: CountingStore, table: underlay.Table):
    for number in range(5):
        table.append(rows(range(10 * number, 10 * number + 10)))
    settle(store)
    assert table.scan().to_arrow().num_rows == 50
    assert len(calls(store, ".parquet")) == 5
    assert store.request_count() == 6
