from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import underlay
from underlay.errors import InvalidRequest, TableNotFound
from underlay.local.sql.engine import Engine
from underlay.local.sql.kept_views import KeptViews

ROWS = pa.table({"id": [1, 2, 3]})


class _Answers(ds.Dataset):
    """Rows for DuckDB."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def scanner(self, *_: object, **__: object) -> ds.Scanner:  # type: ignore[override]  # what DuckDB asks for
        return ds.Scanner.from_batches(iter(self._rows.to_batches()), schema=self._rows.schema)


@pytest.fixture
def connection():
    engine = Engine(is_open=False, is_pushing=True, threads=1)
    yield engine.connect()
    engine.close()


def shown(name: str, rows: pa.Table) -> tuple[str, str, ds.Dataset]:
    schema, table = name.split(".")
    return schema, table, _Answers(rows)


def oids(connection) -> list[tuple[str, int]]:
    found = connection.execute("select schema_name, view_oid from duckdb_views() where not internal order by 1")
    return found.fetchall()


def test_a_query_of_the_same_tables_finds_their_views_and_its_own_rows(connection):
    views = KeptViews(connection)
    views.show([shown("a.t", ROWS), shown("b.t", ROWS)])
    before = oids(connection)
    assert [name for name, _ in before] == ["a", "b"]
    views.release()
    views.show([shown("b.t", pa.table({"id": [7]})), shown("a.t", ROWS)])
    assert oids(connection) == before
    assert connection.execute("select id from b.t").fetchall() == [(7,)]
    assert connection.execute("select count(id) from a.t").fetchall() == [(3,)]


@pytest.mark.parametrize(
    "others",
    [
        [shown("a.t", pa.table({"id": ["x"]}))],
        [shown("a.u", ROWS)],
        [shown("a.t", ROWS), shown("a.u", ROWS)],
        [shown("main.t", ROWS)],
        [],
    ],
)
@pytest.mark.parametrize("first", ["a.t", "main.t"])
def test_there_are_the_views_of_the_last_query_and_no_others(connection, first, others):
    views = KeptViews(connection)
    views.show([shown(first, ROWS)])
    views.show(others)
    names = connection.execute("select schema_name || '.' || view_name from duckdb_views() where not internal")
    wanted = sorted(f"{schema}.{table}" for schema, table, _ in others)
    assert sorted(name for (name,) in names.fetchall()) == wanted == sorted(views.names)
    schemas = connection.execute(
        "select schema_name from duckdb_schemas() where not internal and schema_name != 'main'"
    )
    assert {name for (name,) in schemas.fetchall()} == {name.split(".")[0] for name in wanted} - {"main"}


def test_no_query_finds_the_tables_of_another_lake(tmp_path: Path):
    with underlay.connect(tmp_path / "one") as one, underlay.connect(tmp_path / "two") as two:
        one.create_table("a.mine", data=ROWS)
        two.create_table("a.yours", data=ROWS)
        for _ in range(3):
            assert one.sql("select sum(id)::int from a.mine").fetchall() == [(6,)]
            with pytest.raises(TableNotFound):
                two.sql("select sum(id)::int from a.mine")
            assert two.sql("select table_name from information_schema.tables").fetchall() == [("yours",)]
            assert two.sql("select view_name from duckdb_views() where not internal").fetchall() == [("yours",)]


def test_a_table_that_was_made_anew_is_read_with_its_new_columns(tmp_path: Path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.t", data=ROWS)
        assert lake.sql("select * from a.t where id = 2").fetchall() == [(2,)]
        lake.drop_table("a.t")
        lake.create_table("a.t", data=pa.table({"id": ["2"], "more": [5]}))
        assert lake.sql("select * from a.t where id = '2'").fetchall() == [("2", 5)]


def test_now_is_another_moment_in_each_query(tmp_path: Path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.t", data=ROWS)
        moments = [lake.sql("select now() from a.t where id = 1").fetchall() for _ in range(2)]
    assert moments[0] < moments[1]


def test_an_engine_whose_query_failed_serves_the_next_one(tmp_path: Path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.t", data=ROWS)
        for _ in range(2):
            with pytest.raises(underlay.UnderlayError):
                lake.sql("select error('no') from a.t where id = 1").fetchall()
            assert lake.sql("select id from a.t where id = 1").fetchall() == [(1,)]


def test_a_statement_that_is_refused_is_refused_again_and_one_that_may_run_runs_again(tmp_path: Path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.t", data=ROWS)
        for _ in range(3):
            assert lake.sql("select id + abs(0) from a.t where id = 1").fetchall() == [(1,)]
            with pytest.raises(InvalidRequest, match="read_csv is not available"):
                lake.sql("select * from read_csv('/etc/passwd')")
            with pytest.raises(InvalidRequest, match="more than one statement"):
                lake.sql("select 1; select id + abs(0) from a.t where id = 1")


def test_many_and_long_statements_are_checked_alike(tmp_path: Path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.t", data=ROWS)
        for number in (*range(300), 0):
            assert lake.sql(f"select id + {number} from a.t where id = 1").fetchall() == [(number + 1,)]
        long = f"select id /* {'x' * 20_000} */ from a.t where id = 1"
        assert lake.sql(long).fetchall() == lake.sql(long).fetchall() == [(1,)]
