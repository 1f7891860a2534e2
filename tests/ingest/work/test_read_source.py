"""Compressed sources, Parquet, and sources that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import io
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.source_reading import reading, take
from underlay.errors import NotFound, Replaced, SchemaMismatch, SourceUnreadable
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.read_source import read_source

ID = pa.field("id", pa.int64(), nullable=False)
COUNT = 5_000
CSV = b"id\n" + b"".join(b"%d\n" % (at * 7919 % 10007) for at in range(COUNT))


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


COMPRESS = {".gz": gzip.compress, ".zst": zstd, ".bz2": bz2.compress}


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_sources_are_read_by_name_and_by_their_first_bytes(ending: str):
    compress = COMPRESS[ending]
    members = compress(CSV[:9_000]) + compress(CSV[9_000:])
    for name in (f"a.csv{ending}", "a.csv"):
        for data in (compress(CSV), members):
            rows, rejected = take(data, reading(ID, block_bytes=4096), name=name)
            assert (len(rows), rejected) == (COUNT, [])


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_compressed_source_that_is_cut_short_is_an_error_with_its_place(ending: str):
    whole = COMPRESS[ending](CSV)
    twice = whole + COMPRESS[ending](b"8\n")
    for data in (whole[:-1], whole[: len(whole) // 2], whole[:5], b"", twice[: len(whole) + 4], whole + b"garbage"):
        with pytest.raises(SourceUnreadable, match=rf"a\.csv{ending}"):
            take(data, reading(ID, block_bytes=4096), name=f"a.csv{ending}")
    with pytest.raises(SourceUnreadable, match=f"byte {len(whole) - 1}, after [0-9]+ plain bytes"):
        take(whole[:-1], reading(ID), name=f"a.csv{ending}")


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def test_parquet_is_read_by_name_and_widened():
    table = pa.table({"zone": ["JFK", None, "EWR"], "id": pa.array([1, None, 3], pa.int16()), "tip": [1, 2, 3]})
    fields = (ID, ("zone", pa.string()), ("fare", pa.float64()), ("_source", pa.string()))
    data = parquet(table.drop(["tip"]), row_group_size=2)
    rows, rejected = take(data, reading(*fields, source_column="_source"), FileFormat.PARQUET, "a.parquet")
    assert rows == [
        {"id": 1, "zone": "JFK", "fare": None, "_source": "a.parquet"},
        {"id": 3, "zone": "EWR", "fare": None, "_source": "a.parquet"},
    ]
    assert [(one.line, one.offset, one.reason) for one in rejected] == [
        (2, None, "column id: null in a required column")
    ]
    with pytest.raises(SchemaMismatch, match=r"a\.parquet: the table has no column tip"):
        take(parquet(table), reading(*fields), FileFormat.PARQUET, "a.parquet")


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_old_times_of_parquet_are_whole_microseconds_or_rejected(unit: str):
    given = {"ns": [1_700_000_000_000_001_000, None, 1], "us": [1_700_000_000_000_001, None, 253_402_300_799_000_000]}
    table = pa.table({"at": pa.array(given[unit], pa.timestamp(unit))})
    data = parquet(table, use_deprecated_int96_timestamps=True)
    rows, rejected = take(data, reading(("at", pa.timestamp("us"))), FileFormat.PARQUET)
    late = [] if unit == "ns" else [datetime(9999, 12, 31, 23, 59, 59)]
    assert [row["at"] for row in rows] == [datetime(2023, 11, 14, 22, 13, 20, 1), None, *late]
    finer = [(3, "column at: a time finer than microseconds")] if unit == "ns" else []
    assert [(one.line, one.reason) for one in rejected] == finer


def test_parquet_of_another_type_is_refused_with_the_column_and_both_types():
    for found in ([True], ["1"], pa.array([1], pa.timestamp("us"))):
        with pytest.raises(SchemaMismatch, match=r"a\.parquet: id: .*expected int64, found (boolean|string|timestamp)"):
            take(parquet(pa.table({"id": found})), reading(ID), FileFormat.PARQUET, "a.parquet")


def test_parquet_values_that_do_not_fit_are_rejected_with_their_rows():
    seconds = pa.array([0, 2**62, 5, None], pa.int64()).cast(pa.timestamp("ms"))
    part = pa.field("s", pa.struct([pa.field("x", pa.int8(), nullable=False)]))
    table = pa.table(
        {"at": seconds, "s": pa.array([{"x": 1}, {"x": 1}, {"x": None}, None], pa.struct([("x", pa.int8())]))}
    )
    rows, rejected = take(parquet(table), reading(("at", pa.timestamp("ns")), part), FileFormat.PARQUET)
    assert [row["s"] for row in rows] == [{"x": 1}, None]
    assert [(one.line, one.reason.partition(":")[0]) for one in rejected] == [(2, "column at"), (3, "column s.x")]


def test_a_parquet_source_that_is_cut_short_is_unreadable():
    data = parquet(pa.table({"id": list(range(5_000))}), row_group_size=1_000)
    for cut in (data[:-1], data[: len(data) // 2], data[:3], b"", data[:40] + b"\x00" * 4_000 + data[4_040:]):
        with pytest.raises(SourceUnreadable, match=r"a\.parquet"):
            take(cut, reading(ID), FileFormat.PARQUET, "a.parquet")


class Changing(io.RawIOBase):
    """A source of which another is there after some reads."""

    def __init__(self, data: bytes, reads: int) -> None:
        self._data = io.BytesIO(data)
        self._reads = reads

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()

    def readinto(self, buffer) -> int:
        self._reads -= 1
        if self._reads < 0:
            raise Replaced("the source changed while it was read", place="a")
        return self._data.readinto(buffer)


def test_a_source_that_changes_while_it_is_read_is_the_openers_error():
    table = pa.table({"id": list(range(COUNT))})
    for kind, data in (
        (FileFormat.CSV, CSV),
        (FileFormat.CSV, gzip.compress(CSV)),
        (FileFormat.PARQUET, parquet(table)),
    ):
        file = io.BufferedReader(Changing(data, 2), 512)
        with pytest.raises(Replaced, match="changed while it was read"):
            list(read_source(file, kind, reading(ID, block_bytes=512), name="a"))


class Folder(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        raise IsADirectoryError(21, "Is a directory")


def test_a_directory_is_refused(tmp_path: Path):
    with pytest.raises(NotFound, match="is a directory"):
        list(read_source(io.BufferedReader(Folder()), FileFormat.CSV, reading(ID), name=str(tmp_path)))


def arrow(table: pa.Table, *, is_file: bool, rows: int = 2) -> bytes:
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("is_file", [True, False])
def test_arrow_is_read_by_name_and_widened_batch_by_batch(is_file: bool):
    table = pa.table({"zone": ["JFK", None, "EWR"], "id": pa.array([1, 2, None], pa.int16())})
    fields = (ID, ("zone", pa.string()), ("fare", pa.float64()), ("_source", pa.string()))
    data = arrow(table, is_file=is_file)
    rows, rejected = take(data, reading(*fields, source_column="_source"), FileFormat.ARROW, "a.arrow")
    assert [(row["id"], row["zone"], row["_source"]) for row in rows] == [(1, "JFK", "a.arrow"), (2, None, "a.arrow")]
    assert [(one.line, one.reason) for one in rejected] == [(3, "column id: null in a required column")]
    with pytest.raises(SchemaMismatch, match=r"a\.arrow: id: .*expected int64, found string"):
        take(arrow(pa.table({"id": ["1"]}), is_file=is_file), reading(ID), FileFormat.ARROW, "a.arrow")


def test_a_compressed_arrow_stream_is_read_and_a_truncated_one_is_unreadable():
    data = arrow(pa.table({"id": list(range(5_000))}), is_file=False, rows=500)
    assert len(take(gzip.compress(data), reading(ID), FileFormat.ARROW, "a.arrow.gz")[0]) == 5_000
    for cut in (data[:-20], data[: len(data) // 2], b"ARROW1", b"text", b""):
        with pytest.raises(SourceUnreadable, match=r"a\.arrow"):
            take(cut, reading(ID), FileFormat.ARROW, "a.arrow")
