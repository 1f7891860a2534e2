"""Dirty input from end to end: each fault is a rejected row, or fails its source; nothing else is lost."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.lakes import COLUMNS, HEADER, NAME, ids, memory_lake, records, rejected, rows, run, write_csv
from underlay.change.define.define import define
from underlay.errors import InvalidRequest, TooManyRejected
from underlay.ingest.exactly_once.ledger import Ledger
from underlay.ingest.work import read_source
from underlay.ingest.work.progress import NoProgress
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create


@pytest.fixture
def lake() -> LakeCatalog:
    return memory_lake()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Good sources of all kinds, among which a bad one is put."""
    write_csv(tmp_path, "a.csv", [1, 2])
    (tmp_path / "m.csv.gz").write_bytes(gzip.compress((HEADER + "3,,,\n").encode()))
    (tmp_path / "n.jsonl.bz2").write_bytes(bz2.compress(b'{"id": 4, "note": "four"}\n'))
    pq.write_table(pa.table({"id": [5], "note": ["five"]}), tmp_path / "z.parquet")
    return tmp_path


GOOD = [1, 2, 3, 4, 5]


def reason_for(lake: LakeCatalog, folder: Path, name: str) -> str:
    """Why the one source failed, everything else being there."""
    done = run(lake, f"{folder}/*")
    assert ids(lake) == GOOD
    assert (done.ingested, done.failed, rejected(lake)) == (4, 1, [])
    assert done.failures[0].uri == (folder / name).as_uri()
    assert records(lake)[name].status == "failed"
    return done.failures[0].reason


def test_rows_that_are_none_are_rejected_with_their_places_and_the_others_come(lake: LakeCatalog, folder: Path):
    lines = [
        b"10,0.5,2024-02-29,good",
        b"11,0.5,2023-02-29,no such day",
        b"99999999999999999999,1,2024-01-01,too great",
        b"12,1,2024-01-01",
        b"13,1,2024-01-01,a,b",
        b"14,1,2024-01-01,\xff\xfe",
        b",1,2024-01-01,no id",
        b"15,1e999,2024-01-01,infinite",
        b'16,1,2024-01-01,"good, too"',
    ]
    (folder / "dirty.csv").write_bytes(HEADER.encode() + b"\n".join(lines) + b"\n")
    (folder / "dirty.jsonl").write_bytes(b'{"id": 20}\n{"id": 21.5}\nnonsense\n{"id": 22, "day": "2023-02-29"}\n')
    done = run(lake, f"{folder}/*")
    assert (done.failed, ids(lake)) == (0, [*GOOD, 10, 16, 20])
    bad = [(at, line) for at, line in enumerate(lines, 2) if b"good" not in line]
    assert rejected(lake) == [
        *(("dirty.csv", at, line) for at, line in sorted(bad, key=str)),
        ("dirty.jsonl", 2, b'{"id": 21.5}'),
        ("dirty.jsonl", 3, b"nonsense"),
        ("dirty.jsonl", 4, b'{"id": 22, "day": "2023-02-29"}'),
    ]
    reasons = {
        row["line"]: str(row["reason"]) for row in rows(lake, "taxi.trips_rejected") if "csv" in str(row["source"])
    }
    assert reasons[3] == "column day: '2023-02-29' is not a valid date"
    assert reasons[5] == "expected 4 fields, found 3"


def test_a_gzip_file_that_is_cut_short_fails_as_a_whole(lake: LakeCatalog, folder: Path):
    text = HEADER + "".join(f"{number},,,{number * 7919}\n" for number in range(100, 300_000))
    (folder / "cut.csv.gz").write_bytes(gzip.compress(text.encode())[:-100])
    assert "Truncated compressed stream" in reason_for(lake, folder, "cut.csv.gz")


def test_a_parquet_file_that_is_cut_short_fails_as_a_whole(lake: LakeCatalog, folder: Path):
    data = (folder / "z.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(data[:-50])
    assert "not a readable Parquet file" in reason_for(lake, folder, "cut.parquet")


def test_a_parquet_file_with_a_damaged_page_fails_as_a_whole(lake: LakeCatalog, folder: Path):
    path = folder / "torn.parquet"
    pq.write_table(pa.table({"id": range(200_000)}), path, row_group_size=10_000, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 5000] = bytes(5000)
    path.write_bytes(data)
    assert "not a readable Parquet file" in reason_for(lake, folder, "torn.parquet")


def test_an_empty_source_is_done_with_no_rows(lake: LakeCatalog, folder: Path):
    (folder / "empty.csv").touch()
    (folder / "empty.jsonl").touch()
    (folder / "blank.csv").write_text("\n\n")
    (folder / "header.csv").write_text(HEADER)
    (folder / "empty.csv.gz").write_bytes(gzip.compress(b""))
    done = run(lake, f"{folder}/*")
    assert (done.ingested, done.failed, ids(lake)) == (9, 0, GOOD)
    assert records(lake)["empty.csv"].status == "done"


def test_a_folder_is_refused_before_anything_happens(lake: LakeCatalog, folder: Path):
    with pytest.raises(InvalidRequest, match="is a folder"):
        run(lake, [f"{folder}/*.csv", folder])
    assert list(lake.store.list_objects("")) == []
    (folder / "below").mkdir()
    assert run(lake, f"{folder}/*").ingested == 4


@pytest.mark.parametrize("name", ["long.csv", "long.parquet"])
def test_a_source_that_changes_while_it_is_read_fails_as_a_whole_and_comes_next_time(
    name: str, lake: LakeCatalog, folder: Path
):
    path = folder / name
    if name.endswith(".csv"):
        write_csv(folder, name, range(1000, 200_000))
    else:
        table = pa.table({"id": range(1000, 300_000)})
        pq.write_table(table, path, row_group_size=100_000, use_dictionary=False, compression="none")
    is_changed = False

    class Meanwhile(NoProgress):
        def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
            nonlocal is_changed
            if read_bytes > 500_000 and not is_changed:
                path.touch()
                is_changed = True

    done = run(lake, f"{folder}/*", progress=Meanwhile())
    assert (done.failed, ids(lake)) == (1, GOOD)
    assert "changed since it was found" in done.failures[0].reason
    assert run(lake, f"{folder}/*").row_count > 100_000


def test_a_source_that_vanishes_before_it_is_read_fails(lake: LakeCatalog, folder: Path):
    path = write_csv(folder, "gone.csv", [9])

    class Meanwhile(NoProgress):
        def found(self, ledger: Ledger) -> None:
            path.unlink()

    done = run(lake, f"{folder}/*", progress=Meanwhile())
    assert (done.failed, done.failures[0].reason, ids(lake)) == (1, "no such file or directory", GOOD)


def test_a_source_whose_name_says_nothing_fails_unless_its_kind_is_given(lake: LakeCatalog, folder: Path):
    (folder / "notes").write_text(HEADER + "6,,,\n")
    assert "the format cannot be told from the name" in reason_for(lake, folder, "notes")
    assert run(lake, folder / "notes", kind="csv", retry_failed=True).ingested == 1
    assert ids(lake) == [*GOOD, 6]


def test_a_source_of_which_very_many_rows_do_not_fit_fails(
    lake: LakeCatalog, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_source, "REJECTED_ROWS", 100)
    write_csv(folder, "wrong.csv", [6], ["a|b"] * 101)
    reason = reason_for(lake, folder, "wrong.csv")
    assert reason.startswith("line 3: too many rows do not fit the table: 101 so far")
    assert "expected 4 fields, found 1" in reason
    with pytest.raises(TooManyRejected, match=r"101 of 101 rows .*wrong\.csv, line 3: too many rows do not fit"):
        run(lake, f"{folder}/*", retry_failed=True, max_rejected=100)


def test_a_table_with_partitions_and_an_order_is_filled_as_well(lake: LakeCatalog, folder: Path):
    lake.initialise()
    create(lake, NAME, define(COLUMNS, partition_by=["day"], sort_by=["-id"]))
    assert run(lake, f"{folder}/*").ingested == 4
    assert ids(lake) == GOOD
