"""Checks: conditions that every row fulfils, whoever writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from underlay.change.files.row_checks import RowChecks
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.schema.convert.arrow import from_arrow

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float64()), ("zone", pa.string())])
GOOD = pa.table({"id": [1, 2, 3], "fare": [0.0, None, float("nan")], "zone": ["a", None, "JFK"]}, SCHEMA)


@pytest.fixture
def lake() -> ul.Lake:
    return ul.connect(f"memory://{os.urandom(6).hex()}")


@pytest.fixture
def table(lake: ul.Lake) -> ul.Table:
    found = lake.create_table("t.rows", SCHEMA, key=["id"])
    found.append(GOOD)
    with found.evolve() as change:
        change.add_check("not negative", "fare >= 0")
        change.add_check("short", "length(zone) < 10 -- letters")
    return found


def row(id_: int, fare: float | None, zone: str | None) -> pa.Table:
    return pa.table({"id": [id_], "fare": pa.array([fare], pa.float64()), "zone": pa.array([zone], pa.string())})


def test_a_check_computes_with_half_floats_as_sql_does(lake: ul.Lake):
    found = lake.create_table("t.halves", "h float16")
    with found.evolve() as change:
        change.add_check("small", "h * 2 < 100")
    half = pa.array([1.5, None, 50], pa.float32()).cast(pa.float16())
    found.append(pa.table({"h": half.slice(0, 2)}))
    with pytest.raises(SchemaMismatch, match="the check small fails in row 2"):
        found.append(pa.table({"h": half}))


def test_null_passes_a_check_of_a_cut_time(lake: ul.Lake):
    found = lake.create_table("t.times", "day date")
    with found.evolve() as change:
        change.add_check("not that year", "date_trunc('year', day) <> date '2020-01-01'")
    found.append(pa.table({"day": pa.array([None], pa.date32())}))
    with found.evolve() as change:
        change.add_check("never", "date_trunc('year', day) = date '2020-05-05'")
    assert found.count() == 1


def test_null_passes_a_check_and_nan_is_the_greatest_number(table: ul.Table):
    table.append(row(4, None, None))
    table.append(row(5, float("nan"), "b"))
    assert len(table) == 5


@pytest.mark.parametrize(("bad", "words"), [(row(9, -0.5, "a"), "not negative"), (row(9, 1.0, "z" * 10), "short")])
def test_rows_that_contradict_a_check_are_refused(table: ul.Table, bad: pa.Table, words: str):
    version = table.version
    with pytest.raises(SchemaMismatch, match=f"the check {words} fails in row 1") as caught:
        table.append(pa.concat_tables([GOOD.slice(0, 1), bad]))
    assert "'id': 9" in str(caught.value.found)
    with pytest.raises(SchemaMismatch, match=words):
        table.overwrite(bad)
    assert table.version == version


def test_every_verb_that_writes_rows_is_checked(table: ul.Table):
    bad = row(1, -0.5, "a")
    verbs = (
        lambda: table.upsert(bad),
        lambda: table.update({"fare": "-1"}, where="id = 1"),
        lambda: table.merge(bad, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update_all().execute(),
    )
    version = table.version
    for verb in verbs:
        with pytest.raises(SchemaMismatch, match="not negative"):
            verb()
    assert table.version == version
    table.update({"fare": "fare + 1"}, where="id = 1")
    assert table.count("fare = 1") == 1


def test_a_dropped_check_checks_nothing(table: ul.Table):
    with table.evolve() as change:
        change.drop_check("not negative")
    table.append(row(9, -0.5, "a"))
    with pytest.raises(SchemaMismatch, match="1 row contradicts"), table.evolve() as change:
        change.add_check("not negative", "fare >= 0")


def test_a_checked_column_is_changed_with_its_check(table: ul.Table):
    for change_it in (lambda c: c.rename_column("fare", "price"), lambda c: c.drop_column("fare")):
        with pytest.raises(InvalidRequest, match="check not negative names"), table.evolve() as change:
            change_it(change)
    with table.evolve() as change:
        change.drop_check("not negative")
        change.rename_column("fare", "price")
        change.add_check("not negative", "price >= 0")
    with pytest.raises(SchemaMismatch, match="not negative"):
        table.append(pa.table({"id": [9], "price": [-1.0]}))


def test_a_check_reads_only_what_may_contradict_it(lake: ul.Lake):
    many = lake.create_table("t.many", SCHEMA, properties={"block_rows": 10})
    many.append(pa.table({"id": range(100), "fare": [1.0] * 100, "zone": ["a"] * 100}, SCHEMA))
    plan = many.plan(where="not (id >= 0)")
    assert plan.kept.blocks == 0
    with many.evolve() as change:
        change.add_check("ids", "id >= 0")
    assert many.definition.checks == {"ids": "id >= 0"}


def test_a_table_with_checks_needs_a_new_root_format(table: ul.Table):
    assert table.snapshot().root.format == 3
    assert table.at(version=1).snapshot().root.format == 1


CSV = b"id,fare,zone\n1,1.5,a\n2,-1.5,b\nx,1.0,c\n3,2.5,c\n4,-7,d\n"
JSON = b"\n".join(
    b'{"id": %d, "fare": %s, "zone": "z"}' % (n, fare)
    for n, fare in ((1, b"1.5"), (2, b"-1.5"), (3, b"2.5"), (4, b"-7"))
)


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "fare": [1.5, -1.5, 2.5, -7.0]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(("name", "data"), [("in.csv", CSV), ("in.json", JSON), ("in.parquet", _parquet())])
def test_ingested_rows_that_contradict_a_check_are_rejected(tmp_path: Path, name: str, data: bytes):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("t.rows", SCHEMA)
    with table.evolve() as change:
        change.add_check("not negative", "fare >= 0")
        change.add_check("small", "id + 1 < 100")
    (tmp_path / name).write_bytes(data)
    lake.ingest("t.rows", str(tmp_path / name), max_rejected=100)
    assert table.scan(["id"]).to_arrow().column(0).to_pylist() == [1, 3]
    reasons = [row["reason"] for row in lake.table("t.rows_rejected").to_arrow().to_pylist()]
    assert sum("check not negative" in reason for reason in reasons) == 2


@pytest.mark.parametrize("text", ["a > 0", "a + 0 > 0", "a in (1, 2, 'NaN'::double)", "not (a <= 0)", "abs(a) > 0"])
def test_both_engines_find_the_same_rows(lake: ul.Lake, text: str):
    """A check of new rows, one of rows that there are, and a scan agree."""
    rows = pa.table({"a": [1.0, -1.0, 0.0, -0.0, float("nan"), None, float("inf"), 2.0]})
    failing = set(RowChecks({"c": text}, from_arrow(rows.schema)).failures(rows))
    table = lake.create_table("t.a", data=rows.append_column("n", pa.array(range(8))))
    scanned = table.scan(["n"], f"not ({text})").to_arrow().column(0).to_pylist()
    assert failing == set(scanned)


def test_a_check_reaches_nothing_of_the_machine(tmp_path: Path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    check = RowChecks({"c": f"id in (select a from '{tmp_path}/secret.csv')"}, from_arrow(SCHEMA))
    with pytest.raises(InvalidRequest, match="cannot be applied"):
        check.verify(GOOD)
