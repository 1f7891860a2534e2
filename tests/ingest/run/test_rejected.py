"""Rows that do not fit their table, and the table that holds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.lakes import (
    NAME,
    data_files,
    ids,
    lake_at,
    rejected,
    rows,
    run,
    write_csv,
)
from underlay.change.define.define import define
from underlay.errors import InvalidRequest, TooManyRejected
from underlay.index.operation import Operation
from underlay.ingest.rows.reading import Dialect
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.commit import commit
from underlay.table.open_table import OpenTable


def test_too_many_rejected_rows_commit_none_of_the_batch_and_free_its_sources(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "a.csv", [1, 2], ["x", "y"])
    write_csv(tmp_path, "b.csv", [3], ["z"])
    with pytest.raises(TooManyRejected, match=r"3 of 6 rows .* line 4: expected 4 fields.* taxi\.trips_rejected"):
        run(lake, f"{tmp_path}/*", max_rejected="49%")
    assert ids(lake) == []
    assert data_files(lake) == []
    assert rejected(lake) == [("a.csv", 4, b"x"), ("a.csv", 5, b"y"), ("b.csv", 3, b"z")]
    with pytest.raises(TooManyRejected):
        run(lake, f"{tmp_path}/*", max_rejected=2)
    done = run(lake, f"{tmp_path}/*", max_rejected=3)
    assert (done.row_count, done.rejected_count, ids(lake)) == (3, 3, [1, 2, 3])
    assert len(rejected(lake)) == 3


def test_rows_that_were_rejected_when_read_wrongly_are_forgotten_when_they_are_read_well(
    lake: LakeCatalog, tmp_path: Path
):
    (tmp_path / "a.csv").write_text("id;fare;day;note\n1;0,5;2024-01-01;x\n2;1.5;2024-01-01;y\n")
    with pytest.raises(TooManyRejected):
        run(lake, tmp_path / "a.csv", max_rejected=0)
    assert rejected(lake) == [("a.csv", 2, b"1;0,5;2024-01-01;x")]
    lake = lake_at(lake.store)
    done = ids_after_text_fare(lake, tmp_path)
    assert (done, rejected(lake)) == ([1, 2], [])


def ids_after_text_fare(lake: LakeCatalog, folder: Path) -> list[int]:
    """What the table holds once the column that did not fit is one of text."""
    table = OpenTable(lake, NAME)
    head = table.head()
    transaction = table.begin(head, Operation("test"))
    transaction.set_definition(define("id bigint not null, fare string, day date, note string"))
    commit(transaction)
    run(lake, folder / "a.csv", max_rejected=0)
    return ids(lake)


def test_rejected_rows_are_those_of_the_last_run_that_met_them(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "a.csv", [1], ["2,x,2024-01-01,n", "3,NA,2024-01-01,n"])
    with pytest.raises(TooManyRejected):
        run(lake, f"{tmp_path}/*", max_rejected=0, dialect=Dialect(nulls=("NA",)))
    done = run(lake, f"{tmp_path}/*", dialect=Dialect(nulls=("x",)))
    found = rows(lake, f"{NAME}_rejected")
    assert [(row["line"], row["run"]) for row in found] == [(4, done.run)]
    assert done.rejected_count == 1


OLD_REJECTED = (
    "source string not null, identity string not null, line bigint, byte_offset bigint, reason string not null, "
    "raw binary, run string not null, at timestamptz not null"
)


def test_rejected_rows_are_text_and_bytes_only_where_they_are_none(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(b"id,note\n1,n\nx,\xc3\xa4\ny,\xff\n")
    run(lake, tmp_path / "a.csv")
    found = sorted(rows(lake, f"{NAME}_rejected"), key=lambda row: str(row["line"]))
    assert [(row["raw"], row["raw_bytes"]) for row in found] == [("x,ä", None), ("y,\ufffd", b"y,\xff")]
    assert all(row["rejected_at"] is not None for row in found)


def test_a_table_of_rejected_rows_that_older_software_made_keeps_its_columns(lake: LakeCatalog, tmp_path: Path):
    lake.initialise()
    create(lake, f"{NAME}_rejected", define(OLD_REJECTED))
    (tmp_path / "a.csv").write_bytes(b"id,note\n1,n\nx,\xc3\xa4\ny,\xff\n")
    run(lake, tmp_path / "a.csv")
    found = sorted(rows(lake, f"{NAME}_rejected"), key=lambda row: str(row["line"]))
    assert [row["raw"] for row in found] == ["x,ä".encode(), b"y,\xff"]
    assert all(row["at"] is not None for row in found)
    assert "rejected_at" not in found[0]


def test_a_table_of_another_kind_in_the_place_of_the_rejected_rows_is_named(lake: LakeCatalog, tmp_path: Path):
    lake.initialise()
    create(lake, f"{NAME}_rejected", define("note string"))
    write_csv(tmp_path, "a.csv", [1], ["bad"])
    with pytest.raises(InvalidRequest, match=f"{NAME}_rejected: .*rejected rows"):
        run(lake, f"{tmp_path}/*")
