"""A lake that an older Underlay wrote reads as ever, and goes on in its own format until something new is in it."""

from __future__ import annotations

import zipfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import underlay as ul

FIXTURE = Path(__file__).parents[1] / "fixtures" / "lake_before_specs.zip"
FIRST = datetime(2024, 1, 1)


@pytest.fixture
def lake(tmp_path: Path) -> ul.Lake:
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path)
    return ul.connect(tmp_path)


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [
        {
            "id": n,
            "name": f"n{n}",
            "at": FIRST + timedelta(hours=n, milliseconds=n),
            "sec": FIRST + timedelta(hours=n),
            "price": Decimal(n) / 4,
        }
        for n in range(first, first + count)
    ]


def plain(table: pa.Table) -> list[dict[str, object]]:
    found = [row | {"sec": row["sec"].replace(tzinfo=None)} for row in table.to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def test_an_old_lake_reads_as_ever(lake: ul.Lake):
    table = lake.table("old.rows")
    found = plain(table.to_arrow())
    (gone,) = {row["id"] for row in rows(0, 90)} - {row["id"] for row in found}
    assert found == [row for row in rows(0, 90) if row["id"] != gone]
    assert table.snapshot().root.format == 1
    assert not lake.verify(deep=True).findings


@pytest.mark.parametrize("wanted", [0, 17, 44, 89])
def test_buckets_of_an_old_lake_are_pruned_by_their_own_hash(lake: ul.Lake, wanted: int):
    table = lake.table("old.rows")
    moment = FIRST + timedelta(hours=wanted, milliseconds=wanted)
    for where in (f"id = {wanted}", f"name = 'n{wanted}'", f"at = '{moment}'", f"price = {wanted / 4}"):
        assert table.scan(where=where).to_arrow().column("id").to_pylist() == [wanted]
    assert table.plan(where=f"id = {wanted}").kept.files == 1
    text = lake.table("old.text")
    assert text.scan(["name"], where=f"name = 'w{wanted % 20}'").to_arrow().to_pylist() == [{"name": f"w{wanted % 20}"}]


def test_new_rows_of_an_old_table_go_into_its_old_buckets(lake: ul.Lake):
    table = lake.table("old.rows")
    before = table.count()
    table.append(pa.Table.from_pylist(rows(100, 30), table.schema))
    assert (table.count(), table.snapshot().root.format) == (before + 30, 1)
    assert {file.spec for file in table.snapshot().files()} == {0}
    for wanted in (5, 107, 129):
        assert table.scan(["id"], where=f"id = {wanted}").to_arrow().to_pylist() == [{"id": wanted}]
    assert not lake.verify(deep=True).findings


def test_the_old_lake_keeps_its_history(lake: ul.Lake):
    counts = [lake.table("old.rows", version=version).count() for version in range(6)]
    assert counts == [0, 30, 60, 60, 90, 89]
    lake.table("old.rows").rollback(version=2)
    assert lake.table("old.rows").count() == 60
