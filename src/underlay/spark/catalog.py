"""A lake's tables under their own names in a session's catalog: `spark.sql("select … from taxi.trips")`.

The catalog has an entry for each table, and beside it, in the cache where Spark looks first, the plan of one version.
The entry itself points to a guard: a folder with one file that is no Parquet, whose name says what to do. A plan that
was evicted is thus an error, never an empty answer.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from underlay.api.lake import Lake
from underlay.errors import InvalidRequest, Unsupported
from underlay.spark.columns import spark_schema
from underlay.spark.gateway import call, call_text, gateway_of, java_plan, java_session
from underlay.spark.relation import frame_of, pin

_CATALOG = "spark_catalog"
_IDENTIFIER = "org.apache.spark.sql.catalyst.TableIdentifier"
_NAME = "org.apache.spark.sql.catalyst.QualifiedTableName"
_GUARD_FILE = "RUN_underlay.spark.refresh_TO_READ_THIS_TABLE_AGAIN.parquet"
_OWNER = "underlay.lake"
"""The property that marks an entry as ours."""
_STRICT = " OPTIONS (ignoreCorruptFiles 'false', ignoreMissingFiles 'false')"
"""The guard must fail whatever the session says."""


def check_names(spark: SparkSession, names: list[str]) -> None:
    """Raises Unsupported when the session's catalog is a persistent one, InvalidRequest for names that it mixes up."""
    if spark.conf.get("spark.sql.catalogImplementation") != "in-memory":
        raise Unsupported(
            "this session's catalog is a persistent metastore, in which Underlay writes nothing",
            hint="Read with underlay.spark.read_table, or start Spark with spark.sql.catalogImplementation=in-memory.",
        )
    twins = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
    if twins:
        raise InvalidRequest("Spark's catalog does not tell upper from lower case", found=", ".join(sorted(twins)))


def register_table(spark: SparkSession, lake: Lake, guards: Path, name: str) -> DataFrame:
    """Make a table known to the session at its newest version; again to refresh it. Nothing of the lake is written.

    `guards` is a folder for what entries point to. Raises InvalidRequest when the session has another table of this
    name, and what `read_table` raises.
    """
    table = pin(lake.table(name))
    columns = spark_schema(table.snapshot().schema)
    frame_of(spark, table)  # raises before anything is changed
    dataset, short = name.lower().split(".", 1)
    _make_entry(spark, lake, guards / dataset / short, name, columns)
    gateway, catalog = gateway_of(spark), call(call(java_session(spark), "sessionState"), "catalog")
    ident = gateway.new(_IDENTIFIER, short, gateway.new("scala.Some", dataset))
    frame = frame_of(spark, table, call(catalog, "getTableMetadata", ident))
    qualified = gateway.new(_NAME, _CATALOG, dataset, short)
    call(catalog, "cacheTable", qualified, call(java_plan(frame), "analyzed"))
    return frame


def _make_entry(spark: SparkSession, lake: Lake, guard: Path, name: str, columns: StructType) -> None:
    """An entry of the catalog with the table's columns. One with other columns is made anew."""
    quoted = _quote(name)
    if spark.catalog.tableExists(quoted):
        _refuse_other(spark, lake, name)
        spark.sql(f"DROP TABLE {quoted}")
    guard.mkdir(parents=True, exist_ok=True)
    (guard / _GUARD_FILE).write_text("This is no Parquet file.")
    dataset = quoted.split(".", 1)[0]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {dataset} LOCATION {_text(guard.parent.as_uri())}")
    spark.sql(
        f"CREATE TABLE {quoted} ({_ddl(spark, columns)}) USING parquet{_STRICT} LOCATION {_text(guard.as_uri())}"
        f" TBLPROPERTIES ({_text(_OWNER)} = {_text(lake.url)})"
    )


def _refuse_other(spark: SparkSession, lake: Lake, name: str) -> None:
    rows = spark.sql(f"SHOW TBLPROPERTIES {_quote(name)}").collect()
    if dict(map(tuple, rows)).get(_OWNER) != lake.url:
        raise InvalidRequest(
            f"the session has another table {name}",
            place=lake.url,
            hint="Rename one of the two, or read this one with underlay.spark.read_table.",
        )


def _ddl(spark: SparkSession, columns: StructType) -> str:
    """The columns as SQL, every name quoted that must be."""
    found = gateway_of(spark).static("org.apache.spark.sql.types.DataType", "fromJson", columns.json())
    return call_text(found, "toDDL")


def _quote(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split(".", 1))


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
