"""The number of rows of a relation, for Spark's cost-based optimiser.

The exact size in bytes comes from the index. Rows reach the optimiser through the entry that the relation has in the
catalog, and only while one of the settings below is on; a relation without an entry gets one that no catalog has.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from underlay.spark.files.file_groups import Size
from underlay.spark.jvm.gateway import JavaObject, call, call_number, call_text, gateway_of
from underlay.spark.relation.catalog_table import CATALOG, TABLE, table_defaults

_SETTINGS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")


def uses_rows(spark: SparkSession) -> bool:
    """Whether the session's optimiser asks for numbers of rows."""
    return any(spark.conf.get(name, "false") == "true" for name in _SETTINGS)


def with_statistics(spark: SparkSession, entry: JavaObject, size: Size) -> JavaObject:
    """The same `CatalogTable` with the size and rows of a group of files."""
    count = call_number(entry, "productArity")
    fields = [call(entry, "productElement", at) for at in range(count)]
    names = [call_text(entry, "productElementName", at) for at in range(count)]
    fields[names.index("stats")] = gateway_of(spark).new("scala.Some", _statistics(spark, size))
    return call(entry, "copy", *fields)


def entry_without_catalog(spark: SparkSession, name: str, columns: JavaObject) -> JavaObject:
    """A `CatalogTable` of this name that no catalog knows."""
    gateway = gateway_of(spark)
    dataset, short = name.split(".", 1)
    ident = gateway.new("org.apache.spark.sql.catalyst.TableIdentifier", short, gateway.new("scala.Some", dataset))
    kind = call(gateway.module(f"{CATALOG}.CatalogTableType$"), "EXTERNAL")
    storage = call(gateway.module(f"{CATALOG}.CatalogStorageFormat$"), "empty")
    return gateway.new(TABLE, ident, kind, storage, columns, *table_defaults(gateway))


def _statistics(spark: SparkSession, size: Size) -> JavaObject:
    gateway = gateway_of(spark)
    make = call(gateway.module(f"{CATALOG}.CatalogStatistics$"), "curried")
    taking_rows = call(call(_some_number(spark, size.size_bytes), "map", make), "get")
    taking_columns = call(taking_rows, "apply", _some_number(spark, size.rows))
    return call(taking_columns, "apply", call(gateway.module("scala.collection.immutable.Map$"), "empty"))


def _some_number(spark: SparkSession, number: int) -> JavaObject:
    """`Some(BigInt(number))`, out of a plan of so many rows: a BigInt by itself becomes Python's on its way here."""
    companion = gateway_of(spark).module("org.apache.spark.sql.catalyst.plans.logical.Range$")
    return call(call(call(companion, "apply", 0, number, 1, 1), "stats"), "rowCount")
