"""Appending to hot partitions, and reading them in every way."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.hot.trips import DAY, START, Place, ids, trips, writing
from underlay.errors import Inconsistent, InvalidRequest, LeaseHeld, SchemaMismatch
from underlay.hot.txn.file import TXN_NAME, read_txn
from underlay.pm.file import read_sidecar
from underlay.pm.verify import verify


def test_rows_are_there_when_an_append_returns_in_every_way_of_reading(place: Place):
    table = place.create()
    with writing(table) as hot:
        assert hot.append(trips(range(0, 90_000, 1000), 0)).row_count == 90
        other = place.lake()
        seen = other.table("taxi.trips")
        assert (len(seen), seen.count(), seen.count("id < 10")) == (90, 90, 10)
        assert ids(seen) == list(range(90))
        assert other.sql("select count(*) n, max(id) m from taxi.trips where zone = 'JFK'").to_arrow().to_pylist() == [
            {"n": 30, "m": 87}
        ]
        assert seen.dataset().to_table(columns=["id"], filter=pc.field("id") > 80).num_rows == 9
        assert seen.plan(where="ts >= '2024-01-02'").kept.files == 1
        assert seen.head(3).num_rows == 3


def test_without_the_directory_only_sealed_rows_are_seen_and_explain_says_so(place: Place):
    table = place.create()
    table.append(trips([1, 2, 3], 100))
    with writing(table) as hot:
        hot.append(trips([5, 6]))
    assert ids(place.table(with_hot=False)) == [100, 101, 102]
    assert "rows in hot partitions are not seen here" in place.table(with_hot=False).plan().explain()
    assert ids(place.table()) == [0, 1, 100, 101, 102]
    shown = place.table().plan(where="id < 50").explain()
    assert "1 block of 2024-01-01.2" in shown
    assert "not seen" not in shown
    told = str(place.lake().sql("explain select * from taxi.trips where id < 50"))
    assert "1 block of 2024-01-01.2" in told


def test_a_version_that_is_asked_for_has_sealed_rows_only(place: Place):
    table = place.create()
    table.append(trips([1], 100))
    with writing(table) as hot:
        hot.append(trips([5, 6]))
    assert ids(table.at(version=1)) == [100]
    assert ids(table.at(as_of="2999-01-01")) == [100]
    pinned = place.table().pinned()
    with writing(table) as hot:
        hot.append(trips([7], 7))
    assert ids(pinned) == [0, 1, 100]
    assert ids(place.table()) == [0, 1, 7, 100]


def test_many_threads_share_commits_and_each_sees_its_own_rows(place: Place):
    table = place.create()
    with writing(table) as hot:

        def append(thread: int) -> None:
            for number in range(12):
                first = 1000 * thread + 10 * number
                hot.append(trips([first + at for at in range(10)], first))
                assert table.count(f"id between {first} and {first + 9}") == 10

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(append, range(6)))
        assert hot.version <= 6 * 12 + 2
        assert len(ids(table)) == 6 * 12 * 10


def test_rows_of_append_nowait_are_there_after_flush_and_after_close(place: Place):
    table = place.create()
    with writing(table, commit_interval_ms=3_600_000) as hot:
        hot.append_nowait(trips([1, 2]))
        assert ids(table) == []
        hot.flush()
        assert ids(table) == [0, 1]
        hot.append_nowait(trips([3], 2))
    assert ids(table) == [0, 1, 2]


def test_appends_wait_when_too_much_waits_and_none_is_lost(place: Place):
    table = place.create()
    with writing(table, commit_interval_ms=3_600_000, most_pending_bytes=4096) as hot:
        for number in range(40):
            hot.append_nowait(trips([number] * 20, 20 * number))
    assert ids(table) == list(range(800))


def test_rows_that_come_late_are_in_the_order_of_time(place: Place):
    table = place.create()
    rng = np.random.default_rng(7)
    with writing(table) as hot:
        for number in range(30):
            hot.append(trips(rng.integers(0, 200_000, 50).tolist(), 50 * number))
        state = hot.writer.state
        folders = [hot.writer.commits.directory_of(partition) for partition in state.partitions]
    assert ids(table) == list(range(1500))
    for partition, folder in zip(state.partitions, folders, strict=True):
        shutil.copy(folder / "data.parquet", folder / "copy")
        os.truncate(folder / "copy", partition.size_bytes or 0)
        moments = pq.read_table(folder / "copy").column("ts").cast(pa.int64()).to_pylist()
        assert moments == sorted(moments)
        assert len(moments) == partition.row_count
        begin = partition.timestamp
        assert all(begin <= one < begin + DAY for one in moments)


def test_of_rows_with_equal_keys_the_last_one_stays(place: Place):
    table = place.create(key=["zone", "ts"])
    with writing(table, dedup=True) as hot:
        hot.append(trips([10, 10, 10, 20], 0))
        hot.append(trips([20, 10, 30], 3))
        hot.append(trips([10], 6))
    # 6 replaces 0 (JFK at 10), the second 3 the first (JFK at 20), 4 replaces 1 (LGA at 10)
    assert ids(table) == [2, 3, 4, 5, 6]


def test_deduplication_needs_a_key_with_the_time(place: Place):
    table = place.create(key=["id"])
    with pytest.raises(InvalidRequest, match="key"):
        table.hot(dedup=True)
    assert not place.partitions.exists()


def test_a_row_without_a_timestamp_or_of_another_type_changes_nothing(place: Place):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1]))
        bad = trips([1, 2]).set_column(0, "ts", pa.array([None, START], pa.timestamp("us")))
        with pytest.raises(SchemaMismatch, match="without a timestamp") as caught:
            hot.append(bad)
        assert "row 0" in str(caught.value)
        for rows in ([{"ts": "soon", "id": 1}], [{"nonsense": 1}], [{"ts": None}]):
            with pytest.raises((SchemaMismatch, InvalidRequest)):
                hot.append(rows)
        hot.append(trips([2], 1))
        assert hot.append([]).row_count == 0
    assert ids(table) == [0, 1]


def test_a_time_whose_partition_has_no_name_is_refused(place: Place):
    table = place.create()
    far = trips([0]).set_column(0, "ts", pa.array([2**62], pa.timestamp("us")))
    with writing(table) as hot:
        with pytest.raises(InvalidRequest, match="years 1 to 9999"):
            hot.append(far)
        hot.append(trips([1]))
    assert ids(table) == [0]


def test_there_is_one_writer_and_the_next_one_continues(place: Place):
    table = place.create()
    with writing(table) as hot:
        with pytest.raises(LeaseHeld, match="another writer"):
            place.table().hot()
        hot.append(trips([1]))
    with writing(place.table()) as hot:
        hot.append(trips([2], 1))
    assert ids(table) == [0, 1]
    with pytest.raises(InvalidRequest, match="closed"):
        hot.append(trips([3]))
    hot.close()


def test_another_cut_of_the_same_directory_is_refused(place: Place):
    table = place.create()
    with writing(table, partition="day"):
        pass
    with pytest.raises(Inconsistent, match="another partition"):
        table.hot(partition="hour")
    with writing(table) as hot:
        assert hot.writer.identity.partition == "day"


def test_a_new_table_of_the_same_name_has_no_rows_of_the_old_one(place: Place):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1]))
    lake = place.lake()
    with writing(table) as hot:
        replaced = place.create(replaces=table.version)
        with pytest.raises(Inconsistent, match="was replaced since"):
            hot.writer._conformed([trips([2])], 0.0)
    assert ids(replaced) == []
    with pytest.raises(Inconsistent, match="earlier table"):
        replaced.hot()
    lake.drop_table("taxi.trips")
    again = place.create()
    assert ids(again) == []
    with writing(again) as hot:
        hot.append(trips([1], 5))
    assert ids(again) == [5]


def test_a_renamed_table_keeps_its_hot_rows(place: Place):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1]))
    lake = place.lake()
    lake.rename_table("taxi.trips", "taxi.rides")
    assert ids(lake.table("taxi.rides")) == [0]


def test_columns_that_change_while_rows_are_hot(place: Place):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips(range(5)))
        with table.evolve() as change:
            change.add_column("tip", "double", default=0.5)
            change.rename_column("zone", "area")
        assert set(place.table().to_arrow()["tip"].to_pylist()) == {0.5}
        newer = [{"ts": row["ts"], "id": 7, "area": "EWR", "tip": 2.0} for row in trips([9]).to_pylist()]
        hot.append(newer)
        with table.evolve() as change:
            change.drop_column("fare")
        found = place.table().to_arrow()
        assert found.column_names == ["ts", "id", "area", "tip"]
        assert sorted(found["tip"].to_pylist()) == [0.5] * 5 + [2.0]
        hot.append([{"ts": newer[0]["ts"], "id": 8}])
        assert ids(place.table()) == [0, 1, 2, 3, 4, 7, 8]
        hot.seal(everything=True)
    assert ids(place.table(with_hot=False)) == [0, 1, 2, 3, 4, 7, 8]


def test_a_sidecar_and_a_data_file_are_sound_at_every_version(place: Place):
    table = place.create()
    rng = np.random.default_rng(3)
    versions = []
    with writing(table, partition="none") as hot:
        for number in range(40):
            late = rng.random() < 0.3
            times = (
                rng.integers(0, 1000 * number + 1, 40).tolist() if late else [1000 * number + at for at in range(40)]
            )
            hot.append(trips(sorted(times), 40 * number))
            (partition,) = hot.writer.state.partitions
            versions.append((number + 1, partition))
    for count, partition in versions:
        folder = place.partitions / f"default.{partition.name_txn}"
        sidecar = read_sidecar(folder / "_pm", parquet_size=partition.size_bytes)
        assert int(sidecar.num_rows.sum()) == 40 * count == partition.row_count
        shutil.copy(folder / "data.parquet", folder / "copy")
        os.truncate(folder / "copy", partition.size_bytes or 0)
        assert pq.read_metadata(folder / "copy").num_rows == 40 * count
        found = pq.read_table(folder / "copy", columns=["id"]).column("id").to_pylist()
        assert sorted(found) == list(range(40 * count))
    assert [str(error) for error in verify(folder / "_pm", parquet=folder / "copy", deep=True)] == []
    sizes = [partition.size_bytes or 0 for _, partition in versions]
    assert all(a < b for a, b in pairwise(sizes))


def test_a_missing_or_damaged_sidecar_is_made_anew(place: Place):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1, 2]))
    (path,) = place.partitions.glob("*/_pm")
    for damage in (lambda: path.unlink(), lambda: path.write_bytes(b"nonsense" * 20), lambda: os.truncate(path, 100)):
        damage()
        assert len(ids(place.table())) >= 2, "readers need it not"
        with writing(place.table()) as hot:
            hot.append(trips([3], 9))
        partition = read_txn(place.partitions / TXN_NAME).partitions[0]
        assert int(read_sidecar(path, parquet_size=partition.size_bytes).num_rows.sum()) == partition.row_count


def test_types_that_questdb_does_not_have(place: Place):
    schema = pa.schema(
        [
            ("day", pa.date32()),
            ("u", pa.uint64()),
            ("l", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("d", pa.decimal128(30, 4)),
            ("t", pa.time64("ns")),
            ("n", pa.timestamp("ns", "Europe/Zurich")),
            ("f", pa.float16()),
            ("b", pa.binary(4)),
        ]
    )
    lake = place.lake()
    table = lake.create_table("a.b", schema)
    row = {
        "day": date(2024, 2, 3),
        "u": 2**64 - 1,
        "l": [{"a": 1, "b": None}, None],
        "m": [("k", 5)],
        "d": None,
        "t": None,
        "n": None,
        "f": np.float16(1.5),
        "b": b"abcd",
    }
    with table.hot(column="day", partition="month") as hot:
        for _ in range(3):
            hot.append(pa.Table.from_pylist([row], schema=schema))
        before = table.to_arrow()
        hot.seal(everything=True)
    assert before.equals(table.to_arrow())
    assert before.num_rows == 3
    assert before["u"].to_pylist() == [2**64 - 1] * 3


def test_nanoseconds_and_hours(place: Place):
    lake = place.lake()
    table = lake.create_table("a.b", pa.schema([("ts", pa.timestamp("ns")), ("id", pa.int64())]))
    moments = np.array([START * 1000 + 7, (START + DAY // 24) * 1000 + 1], "M8[ns]")
    with table.hot(partition="hour") as hot:
        hot.append(pa.table({"ts": moments, "id": [1, 2]}))
        assert [hot.writer.commits.name_of(one.timestamp) for one in hot.writer.state.partitions] == [
            "2024-01-01T00",
            "2024-01-01T01",
        ]
    assert table.to_arrow()["ts"].to_numpy().tolist() == moments.astype("i8").tolist()


def test_a_lake_without_hot_says_how_to_get_a_writer(place: Place):
    table = ul.connect(place.folder / "lake", registry="none").create_table("a.b", trips([]).schema)
    with pytest.raises(InvalidRequest, match="hot="):
        table.hot()


def test_the_environment_names_the_directory(place: Place, monkeypatch: pytest.MonkeyPatch):
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1]))
    monkeypatch.setenv("UNDERLAY_HOT", str(place.hot))
    assert ids(ul.connect(place.folder / "lake", registry="none").table("taxi.trips")) == [0]
