from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark import forget, refresh, session

pytestmark = pytest.mark.local_only

REFUSALS = (PySparkException, Py4JJavaError)
"""Spark fails while it words some of its refusals (DELETE, saveAsTable with the data source)."""
REFUSED = [
    "create table geo.towns (x int) using underlay",
    "create table geo.fresh (x int default 3) using underlay",
    "alter table geo.towns drop column nothing",
    "alter table geo.towns add column id int",
    "select * from geo.towns version as of 99",
    "explain delete from geo.towns",
    "insert into geo.towns values ('x', 'd')",
    "insert into geo.towns values (4)",
    "insert into geo.towns (id, nothing) values (4, 5)",
    "insert into geo.towns partition (id = 4) values ('d')",
    "insert into geo.towns replace where id > 3 values (1, 'd')",
    "update geo.towns set nothing = 1",
    "update geo.towns set id = nothing",
    "update geo.towns set id = default",
    "delete from geo.towns where nothing = 1",
    "merge into geo.towns t using (select 1 id union all select 1) s on t.id = s.id when matched then update set id=2",
    "merge into geo.towns t using (select 1 id) s on t.id = s.nothing when matched then delete",
    "merge with schema evolution into geo.towns t using (select 1 id) s on t.id = s.id when matched then update set *",
    "load data inpath '/nowhere' into table geo.towns",
    "alter table geo.towns set location '/nowhere'",
    "alter table geo.towns set tblproperties ('a' = 'b')",
    "create table geo.towns (x int) using parquet",
    "create or replace table geo.towns (x int) using parquet",
    "create or replace table geo.towns using parquet as select 1 x",
    "create view geo.towns as select 1 x",
    "create or replace view geo.towns as select 5 id",
    "msck repair table geo.towns",
    "analyze table geo.towns compute statistics",
]
HARMLESS = [
    "refresh table geo.towns",
    "refresh geo.towns",
    "cache table geo.towns",
    "uncache table geo.towns",
    "clear cache",
    "create table if not exists geo.towns (x int) using parquet",
    "create view if not exists geo.towns as select 1 x",
]
VIEWS = [
    "drop view geo.towns",
    "drop view if exists geo.towns",
    "alter view geo.towns as select 5 id",
    "alter view geo.towns set tblproperties ('a' = 'b')",
    "alter view geo.towns unset tblproperties ('a')",
    "alter view geo.towns rename to geo.other",
    "create or replace view geo.towns as select 5 id",
    "execute immediate 'drop view geo.towns'",
]
SCRIPTS = [
    "begin select 1; drop view geo.towns; end",
    "begin if true then drop table geo.towns; end if; end",
    "begin insert into geo.towns values (4, 'd'); end",
    "begin while false do alter view geo.towns as select 5 id; end while; end",
]


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path_factory.mktemp("statements") / "lake")
    table = found.create_table("geo.towns", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}))
    session(found, spark)
    yield found
    forget(spark, found)


@pytest.fixture
def unharmed(towns: Lake, spark: SparkSession) -> Callable[[str], None]:
    """Checks, after a statement, that the lake has the same objects and the name the same rows."""
    before, named = objects(towns), views(spark)

    def check(what: str) -> None:
        rows = sorted(tuple(row) for row in spark.table("geo.towns").collect())  # Spark would sort in another job
        assert rows == [(1, "a"), (2, "b"), (3, None)], what
        assert views(spark) == named, what
        assert objects(towns) == before, what

    return check


def views(spark: SparkSession) -> set[str]:
    found = {str(row.viewName) for row in spark.sql("show views in geo").collect()}
    assert "towns" in found
    return found


def objects(lake: Lake) -> set[tuple[Path, int]]:
    folder = Path(lake.url.removeprefix("file://"))
    return {(path, path.stat().st_size) for kind in ("*.parquet", "*.root", "*.json") for path in folder.rglob(kind)}


def test_statements_that_would_change_a_table_are_refused(spark: SparkSession, unharmed: Callable[[str], None]):
    for statement in REFUSED:
        with pytest.raises(REFUSALS):
            spark.sql(statement).collect()
        unharmed(statement)
    with pytest.raises(PySparkException, match="SCHEMA_NOT_EMPTY"):
        spark.sql("drop database geo")
    unharmed("drop database geo")


def test_harmless_statements_change_nothing(spark: SparkSession, unharmed: Callable[[str], None]):
    for statement in HARMLESS:
        spark.sql(statement)
        unharmed(statement)


def test_change_of_the_view_is_refused(spark: SparkSession, unharmed: Callable[[str], None]):
    for statement in VIEWS:
        with pytest.raises(PySparkException, match=r"geo\.towns: the name is a table of a lake"):
            spark.sql(statement)
        unharmed(statement)


def test_script_that_would_change_a_table_does_nothing(spark: SparkSession, unharmed: Callable[[str], None]):
    for statement in SCRIPTS:
        with pytest.raises(PySparkException, match="Run the statement alone"):
            spark.sql(statement)
        unharmed(statement)
    assert spark.sql("begin select count(*) as n from geo.towns; end").first().n == 3


def test_database_with_tables_of_a_lake_is_not_dropped(spark: SparkSession, unharmed: Callable[[str], None]):
    with pytest.raises(PySparkException, match=r"geo: the database has tables of a lake \(found geo\.towns\)"):
        spark.sql("drop database geo cascade")
    unharmed("drop database")
    spark.sql("create database geo_of_mine")
    spark.sql("drop database geo_of_mine cascade")


def test_views_of_others_are_dropped_and_altered(spark: SparkSession, unharmed: Callable[[str], None]):
    spark.sql("create view default.towns as select 1 as id")
    spark.sql("alter view default.towns as select 2 as id")
    spark.sql("create or replace view default.towns as select 3 as id")
    assert spark.table("default.towns").first().id == 3
    spark.sql("drop view default.towns")
    unharmed("drop view")


def test_dropped_plan_is_an_error_that_names_the_cure(
    spark: SparkSession, towns: Lake, unharmed: Callable[[str], None]
):
    hidden = [row.tableName for row in spark.sql("show tables in global_temp").collect()]
    for name in hidden:
        if name.startswith("geo.towns "):
            assert spark.catalog.dropGlobalTempView(name)
    with pytest.raises(PySparkException, match=r"made by underlay\.spark\.refresh"):
        spark.table("geo.towns")
    refresh(spark, towns)
    unharmed("dropped plan")


@pytest.mark.parametrize(
    "ask",
    [
        lambda spark: spark.sql("select * from geo.`towns@v1`"),
        lambda spark: spark.readStream.table("geo.towns"),
    ],
)
def test_older_versions_and_streams_by_sparks_own_words_are_refused(
    spark: SparkSession, towns: Lake, ask: Callable[[SparkSession], DataFrame]
):
    with pytest.raises(AnalysisException):
        ask(spark)
