from __future__ import annotations

from threading import Barrier, Thread

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import underlay
from underlay.errors import InvalidRequest, SchemaMismatch, TableExists

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})
DEFINED = {
    "schema": "id bigint not null, s string",
    "key": ["id"],
    "sort_by": ["-s"],
    "partition_by": ["bucket(4, id)"],
}


@pytest.fixture
def lake(tmp_path):
    with underlay.connect(tmp_path / "lake") as lake:
        yield lake


@pytest.mark.parametrize(
    "frame",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.schema,
        ROWS.to_pandas(),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).schema,
        duckdb.arrow(ROWS),
    ],
    ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}",
)
def test_a_frame_is_a_schema(lake, frame):
    table = lake.create_table("a.b", frame)
    assert [(field.name, str(field.type)) for field in table.schema] == [("id", "int64"), ("s", "string")]
    assert len(table) == 0


@pytest.mark.parametrize(
    "data",
    [ROWS, ROWS.to_batches(), ROWS.to_reader(), ROWS.to_pandas(), pl.DataFrame(ROWS), duckdb.arrow(ROWS)],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_rows_make_a_table_that_has_them(lake, data):
    table = lake.create_table("a.b", data=data, key=["id"])
    assert table.scan().to_arrow().sort_by("id").to_pydict() == ROWS.to_pydict()
    assert lake["a.b"].count("id = 2") == 1


def test_names_of_keys_and_columns_need_no_quotes(lake):
    rows = pa.table({"naïve name": [1, 2], "a b": [[1], [2]]})
    table = lake.create_table("a.b", data=rows, key=["naïve name"], sort_by=["naïve name"])
    assert table.scan(["naïve name"]).to_arrow().column_names == ["naïve name"]
    with pytest.raises(InvalidRequest, match="not the name of a column"):
        lake.create_table("a.c", rows.schema, key=["naïve name, a"])


def test_rows_are_conformed_to_a_schema_that_is_given(lake):
    table = lake.create_table("a.b", "id double, s string, t int", data=ROWS.set_column(0, "id", pa.array([1.0, 2.0])))
    assert table.to_arrow().to_pydict() == {"id": [1.0, 2.0], "s": ["a", None], "t": [None, None]}


def test_rows_that_do_not_fit_leave_no_table(lake):
    with pytest.raises(SchemaMismatch):
        lake.create_table("a.b", "id bigint, s string not null", data=ROWS)
    assert lake.tables() == []
    assert len(lake.create_table("a.b", "id bigint, s string", data=ROWS)) == 2
    assert lake.verify().is_sound


def test_no_rows_make_a_table_without_rows(lake):
    assert len(lake.create_table("a.b", data=ROWS.slice(0, 0))) == 0


def test_what_is_no_data_is_refused(lake):
    with pytest.raises(InvalidRequest, match="not rows"):
        lake.create_table("a.b", data=7)
    with pytest.raises(InvalidRequest, match="needs a schema"):
        lake.create_table("a.b")
    with pytest.raises(InvalidRequest, match="cannot be combined"):
        lake.create_table("a.b", data=ROWS, exist_ok=True)
    assert lake.tables() == []


def test_data_for_a_table_that_exists_is_refused_and_the_table_stays(lake):
    lake.create_table("a.b", data=ROWS)
    with pytest.raises(TableExists):
        lake.create_table("a.b", data=ROWS)
    assert len(lake["a.b"]) == 2


def test_the_registry_knows_a_table_that_came_with_rows(tmp_path):
    places = {"url": tmp_path / "lake", "registry": f"sqlite:///{tmp_path}/registry.sqlite"}
    with underlay.connect(**places) as lake:
        lake.create_table("a.b", data=ROWS)
        with pytest.raises(SchemaMismatch):
            lake.create_table("a.c", "id bigint not null, s string not null", data=ROWS)
        assert lake.registry is not None
        assert lake.registry.wait(10)
        assert lake.verify("a.b").findings == ()
    with underlay.connect(**places) as other:
        assert len(other["a.b"]) == 2


def test_a_table_that_exists_is_the_answer_when_it_is_defined_alike(lake):
    first = lake.create_table("a.b", exist_ok=True, **DEFINED)
    first.append(ROWS)
    first.comment("what it is")
    assert len(lake.create_table("a.b", exist_ok=True, **DEFINED)) == 2
    with pytest.raises(TableExists):
        lake.create_table("a.b", **DEFINED)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema": "id bigint, s string"}, "id is int64 not null, not int64"),
        ({"schema": "id bigint not null, s string, t int"}, "it has no column t"),
        ({"schema": "id bigint not null", "sort_by": []}, "it has a column s too"),
        ({"schema": "s string, id bigint not null"}, "its columns are in the order id, s"),
        ({"key": []}, r"key is \['id'\], not \[\]"),
        ({"sort_by": ["s"]}, r"sort_by is \['s desc'\], not \['s'\]"),
        ({"partition_by": ["bucket(8, id)"]}, r"partition_by is \['bucket\(id, 4\)'\], not \['bucket\(id, 8\)'\]"),
        ({"properties": {"codec": "snappy"}}, "properties is {}, not {'codec': 'snappy'}"),
        ({"comment": "other"}, "comment is None, not other"),
    ],
)
def test_a_table_that_is_defined_otherwise_is_refused_with_what_differs(lake, changed, said):
    lake.create_table("a.b", **DEFINED)
    with pytest.raises(TableExists, match=said):
        lake.create_table("a.b", exist_ok=True, **(DEFINED | changed))


def test_many_that_create_the_same_table_get_it(tmp_path):
    barrier, found = Barrier(4), []

    def create() -> None:
        with underlay.connect(tmp_path / "lake", registry="none") as lake:
            lake.initialise()
            barrier.wait()
            found.append(lake.create_table("a.b", exist_ok=True, **DEFINED).revision)

    threads = [Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_pandas_categories_and_polars_enums_are_their_values(lake):
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y"])})
    assert lake.create_table("a.b", data=frame).to_arrow().to_pydict() == {"c": ["x", "y"]}
    polars = pl.DataFrame({"c": pl.Series(["x"], dtype=pl.Categorical)})
    assert lake.create_table("a.c", polars).schema.field("c").type == pa.string()
