"""Sources that were met before: the same bytes, other bytes, other options, and asked for once more."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gate import every_third
from tests.ingest.lakes import (
    COLUMNS,
    NAME,
    data_files,
    ids,
    lake_at,
    memory_lake,
    records,
    rejected,
    rows,
    run,
    write_csv,
)
from tests.store.servers import S3Server
from tests.table.coordination.owners import LaterStore
from underlay.api.lake import Lake
from underlay.change.define.define import define
from underlay.change.define.evolution import add_columns
from underlay.errors import CommitUnknown, InvalidRequest, NotFound, SourceChanged, Unavailable
from underlay.index.operation import Operation
from underlay.index.root import SourceRecord
from underlay.ingest.run.dry_run import dry_run
from underlay.ingest.source.find import find_sources
from underlay.ingest.work.settings import make_settings
from underlay.ingest.work.workers import Workers
from underlay.store import Store
from underlay.store.testing.faulty import Fault, at_every_request
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.commit import commit
from underlay.table.open_table import OpenTable


def nobody(_size_bytes: int, _count: int) -> Workers:
    raise AssertionError("there is nothing to read")


def touch(path: Path) -> None:
    """The same bytes under another inode and time, as a restored or copied file has."""
    other = path.with_suffix(".copy")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(1, 1))
    other.replace(path)


def version(lake: LakeCatalog) -> int:
    return OpenTable(lake_at(lake.store), NAME).head().root.version


def with_source_column() -> Store:
    lake = memory_lake()
    lake.initialise()
    create(lake, NAME, define(f"{COLUMNS}, _source string"))
    return lake.store


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "jsonl"])
def test_a_touched_source_with_the_same_bytes_is_known(lake: LakeCatalog, tmp_path: Path, kind: str):
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"id": [1, 2]}), path)
    elif kind == "jsonl":
        path.write_text('{"id": 1}\n{"id": 2}\n')
    else:
        path.write_bytes((gzip.compress if kind.endswith("gz") else bytes)(b"id\n1\n2\n"))
    assert run(lake, path).row_count == 2
    touch(path)
    done = run(lake, path, workers=nobody)
    assert (done.known, done.changed, ids(lake)) == (1, 0, [1, 2])


def test_a_touched_source_is_hashed_once_and_then_known_by_its_new_identity(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1, 2])
    run(lake, path)
    touch(path)
    run(lake, path, workers=nobody)
    [found] = find_sources([str(path)])
    assert records(lake)["a.csv"].identity == found.identity
    after = version(lake)
    assert run(lake, path, workers=nobody).known == 1
    assert version(lake) == after


def test_what_the_dry_run_finds_touched_stays_as_it_is(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    run(lake, path)
    before = version(lake)
    touch(path)
    ledger = dry_run(lake, NAME, make_settings(path)).ledger
    assert (len(ledger.known), len(ledger.touched), version(lake)) == (1, 1, before)


def test_other_bytes_of_the_same_size_are_a_change(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1, 2])
    run(lake, path)
    write_csv(tmp_path, "a.csv", [1, 3])
    with pytest.raises(SourceChanged, match=r"a\.csv.*--changed skip.*--changed replace"):
        run(lake, path)
    assert ids(lake) == [1, 2]


def test_a_source_that_is_known_without_a_hash_is_told_apart_by_its_identity(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    run(lake, path)
    table = OpenTable(lake, NAME)
    transaction = table.begin(table.head(), Operation("test"))
    [found] = find_sources([str(path)])
    transaction.add_source(SourceRecord(uri=found.uri, identity=found.identity, version=0, row_count=1))
    commit(transaction)
    assert run(lake, path, workers=nobody).known == 1
    touch(path)
    with pytest.raises(SourceChanged):
        run(lake, path)


def test_a_changed_source_is_reported_and_the_new_ones_are_ingested(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    run(lake, path)
    write_csv(tmp_path, "a.csv", [1, 2])
    write_csv(tmp_path, "b.csv", [7])
    with pytest.raises(SourceChanged, match=r"a\.csv.*Another source was ingested"):
        run(lake, f"{tmp_path}/*")
    assert ids(lake) == [1, 7]
    with pytest.raises(SourceChanged):
        run(lake, f"{tmp_path}/*", workers=nobody)


def test_a_source_that_was_empty_is_ingested_once_it_has_rows(lake: LakeCatalog, tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("")
    assert run(lake, path).ingested == 1
    write_csv(tmp_path, "a.csv", [1])
    assert (run(lake, path).ingested, ids(lake)) == (1, [1])


def test_a_source_whose_rows_are_all_rejected_failed_and_its_rows_can_be_seen(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [], ["x,1,2024-01-01,n", "y,1,2024-01-01,n"])
    done = run(lake, path)
    assert (done.ingested, done.failed, done.row_count, done.rejected_count) == (0, 1, 0, 2)
    assert "all of its 2 rows were rejected; line 2: column id: 'x' is not a valid" in done.failures[0].reason
    assert [line for _, line, _ in rejected(lake)] == [2, 3]
    again = run(lake, path, workers=nobody)
    assert (again.failed_before, records(lake)["a.csv"].status) == (1, "failed")
    write_csv(tmp_path, "a.csv", [5])
    assert (run(lake, path).ingested, ids(lake), rejected(lake)) == (1, [5], [])


def test_other_options_retry_what_failed_and_the_same_ones_do_not(lake: LakeCatalog, tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("id|fare\n1|0.5\n")
    run(lake, write_csv(tmp_path, "b.csv", [9]))
    assert run(lake, path, dialect={"delimiter": ","}).failed == 1
    assert run(lake, path, dialect={"delimiter": ","}, workers=nobody).failed_before == 1
    assert run(lake, path, dialect={"delimiter": ";"}).failed == 1
    assert run(lake, path).ingested == 1
    assert ids(lake) == [1, 9]


def test_another_column_of_the_table_retries_what_failed(lake: LakeCatalog, tmp_path: Path):
    run(lake, write_csv(tmp_path, "b.csv", [9]))
    path = tmp_path / "a.csv"
    path.write_text("id,tip\n1,0.5\n")
    assert run(lake, path).failed == 1
    assert run(lake, path, workers=nobody).failed_before == 1
    add_columns(OpenTable(lake, NAME), pa.schema([("tip", pa.float64())]))
    assert run(lake, path).ingested == 1


def test_a_source_is_read_again_in_place_of_its_rows(tmp_path: Path):
    lake = lake_at(with_source_column())
    write_csv(tmp_path, "a.csv", [1, 2])
    write_csv(tmp_path, "b.csv", [5])
    run(lake, f"{tmp_path}/*")
    done = run(lake, f"{tmp_path}/*", again=tmp_path / "a.csv", dialect={"nulls": ("n1",)})
    assert (done.ingested, done.replaced, done.known) == (1, 1, 1)
    assert ids(lake) == [1, 2, 5]
    assert sorted(str(row["note"]) for row in rows(lake)) == ["None", "n2", "n5"]
    alone = run(lake, [], again=[tmp_path / "b.csv"])
    assert (alone.sources, alone.replaced, ids(lake)) == (1, 1, [1, 2, 5])


def test_a_source_with_rows_that_cannot_be_found_is_not_read_again(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    run(lake, path)
    write_csv(tmp_path, "b.csv", [2])
    with pytest.raises(InvalidRequest, match="does not record which source a row came from"):
        run(lake, f"{tmp_path}/*", again=path)
    assert ids(lake) == [1]


def test_a_source_without_rows_can_always_be_read_again(lake: LakeCatalog, tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("id\n")
    assert run(lake, path).ingested == 1
    assert run(lake, path, again=path).ingested == 1
    (tmp_path / "b.parquet").write_bytes(b"nonsense")
    assert run(lake, [], again=[tmp_path / "b.parquet"]).failed == 1
    assert run(lake, [], again=[tmp_path / "b.parquet"]).failed == 1
    with pytest.raises(NotFound):
        run(lake, [], again=[tmp_path / "c.csv"])


@pytest.mark.parametrize("fault", [Fault.LOST_RESPONSE, Fault.LATE])
def test_reading_again_over_a_store_that_fails_neither_loses_nor_doubles_a_row(fault: Fault, tmp_path: Path):
    paths = [write_csv(tmp_path, f"{number}.csv", [number, number + 10]) for number in range(2)]

    def ingested() -> Store:
        store = with_source_column()
        run(lake_at(store), f"{tmp_path}/*")
        return store

    tried = 0
    for store in at_every_request(ingested, [fault], **every_third()):
        tried += 1
        touch(paths[1])
        with suppress(CommitUnknown, Unavailable):
            run(lake_at(store), f"{tmp_path}/*", again=paths[0])
        store.release()
        lake = lake_at(store.inner)
        assert ids(lake) == [0, 1, 10, 11]
        again = run(lake_at(LaterStore(store.inner)), f"{tmp_path}/*", again=paths[0])
        assert (again.ingested, again.known, again.changed) == (1, 1, 0)
        assert ids(lake) == [0, 1, 10, 11]
    assert tried > 5


def test_files_of_a_source_that_was_read_again_in_vain_do_not_stay(tmp_path: Path):
    lake = lake_at(with_source_column())
    path = write_csv(tmp_path, "a.csv", [1])
    run(lake, path)
    before = data_files(lake)
    path.write_text("nonsense\n1\n")
    assert run(lake, path, changed="replace").failed == 1
    assert (data_files(lake), ids(lake), records(lake)["a.csv"].row_count) == (before, [1], 1)


def test_sources_that_are_read_again_have_the_options_of_the_lake_s_store(moto: S3Server):
    store = moto.open()
    lake = Lake(store, options=moto.options)
    store.put("in/a.csv", b"id\n1\n")
    url = f"{store.url}/in/a.csv"
    lake.create_table(NAME, "id bigint, _source string")
    assert lake.ingest(NAME, url).ingested == 1
    assert (lake.ingest(NAME, [], again=url).replaced, lake.table(NAME).count()) == (1, 1)
    store.put("in/a.csv", b"id\n2\n")
    assert lake.ingest(NAME, [], again=url).replaced == 1
    assert lake.runs(NAME, most=1)[0].state == "done"
