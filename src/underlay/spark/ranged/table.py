"""A version of a table for Catalyst that the ranged reader reads: it learns which columns and rows a query needs.

Spark's own table of a Python source passes on no columns, and reuses what was planned with one query's conditions for
other queries. So Catalyst gets these objects instead: each query makes its own scan, which is Spark's scan of a Python
source with that query's columns and conditions. These objects delegate to Spark's whatever they do not answer
themselves. The JVM calls them, on any thread, by Spark's method names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from secrets import token_hex

import pyarrow as pa
from msgspec.structs import replace as replace_fields
from pyspark.sql import SparkSession

from underlay.api.table import Table
from underlay.plan.chunks import fetch_bytes
from underlay.prune import TRUE, Predicate
from underlay.runtime.locks import cached_property
from underlay.scan.query import Query
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.spark.files.one_version import VersionGuard
from underlay.spark.filters.applicable import applied_part
from underlay.spark.filters.catalyst import read_filters
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, close_forgotten, field_names
from underlay.spark.jvm.proxy import Delegating, JavaIdentity
from underlay.spark.ranged.read import READ_OPTION, RangedRead
from underlay.spark.types.to_spark import source_schema

_CATALOG = "org.apache.spark.sql.connector.catalog"
_READ = "org.apache.spark.sql.connector.read"
_PREDICATE = "org.apache.spark.sql.connector.expressions.filter.Predicate"
_PYTHON_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2"
_NO_WIDTH = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource:
    """A Python source, by the name under which a session knows it."""

    gateway: Gateway
    name: str

    def table(self, read: RangedRead, schema: TableSchema) -> JavaObject:
        """Spark's table of the source that reads just this. Does not call Python yet."""
        columns = source_schema(schema, read.columns).json()
        made = self.gateway.static("org.apache.spark.sql.types.DataType", "fromJson", columns)
        return source_table(self.gateway, made, self.name)

    def scan(self, read: RangedRead, schema: TableSchema) -> JavaObject:
        """Spark's scan of the source that reads just this."""
        options = self.gateway.new("java.util.HashMap")
        call(options, "put", READ_OPTION, read.to_text())
        given = self.gateway.new("org.apache.spark.sql.util.CaseInsensitiveStringMap", options)
        return call(call(self.table(read, schema), "newScanBuilder", given), "build")


def source_table(gateway: Gateway, columns: JavaObject, source: str = "") -> JavaObject:
    """Spark's table of a Python source, with these columns."""
    made = gateway.new(_PYTHON_SOURCE)
    call(made, "setShortName", source)
    transforms = gateway.new_array("org.apache.spark.sql.connector.expressions.Transform", 0)
    return call(made, "getTable", columns, transforms, gateway.new("java.util.HashMap"))


class RangedTable(VersionGuard, Delegating):
    """Some files of a version."""

    def __init__(
        self, spark: SparkSession, source_name: str, table: Table, read: RangedRead, *, is_asked_for: bool
    ) -> None:
        super().__init__(spark, table, f"Underlay {source_name} {read.to_text()}", is_asked_for=is_asked_for)
        self.source = PythonSource(gateway=self.gateway, name=source_name)
        self.read = read
        self.schema_of_table = table.snapshot().schema
        self._inner = self.source.table(read, self.schema_of_table)

    def name(self) -> str:
        """The name that Spark's plans show."""
        return f"{self.table.name}@v{self.read.pin.version}"

    def capabilities(self) -> JavaObject:
        """The table can only be read."""
        capability = self.gateway.static(f"{_CATALOG}.TableCapability", "valueOf", "BATCH_READ")
        return self.gateway.static("java.util.Collections", "singleton", capability)

    def newScanBuilder(self, _options: JavaObject) -> RangedScanBuilder:  # noqa: N802  # Spark's name
        """Called once for each query, before Spark passes columns and conditions."""
        with self.gateway.raising_errors():
            close_forgotten(self.gateway)
            self.refuse_other_versions()
            return RangedScanBuilder(self)

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_CATALOG}.SupportsRead",)


class RangedScanBuilder(JavaIdentity):
    """Collects what a query needs. No two builders are equal."""

    def __init__(self, table: RangedTable) -> None:
        super().__init__(f"a builder of Underlay, {token_hex(16)}")
        self._table = table
        self._columns = table.read.columns
        self._predicate: Predicate = TRUE
        self._filters: JavaObject | None = None

    def pushFilters(self, filters: JavaObject) -> JavaObject:  # noqa: N802  # Spark's name
        """The conditions that Spark must apply: all of them, whatever we apply already."""
        gateway = self._table.gateway
        self._filters = filters
        self._predicate = applied_part(read_filters(gateway, filters), self._table.schema_of_table)
        return filters

    def pushedFilters(self) -> JavaObject:  # noqa: N802  # Spark's name
        """The conditions that Spark need not apply: none."""
        return self._table.gateway.new_array(_PREDICATE, 0)

    def pruneColumns(self, required: JavaObject) -> None:  # noqa: N802  # Spark's name
        """The columns to read. Without any, Spark would not learn how many rows there are, so then it is the narrowest
        one.
        """
        schema = self._table.schema_of_table
        asked = set(field_names(required))
        found = tuple(name for name in self._table.read.columns if name in asked)
        self._columns = found or (_narrowest(schema, self._table.read.columns),)

    def build(self) -> RangedScan:
        """The scan."""
        read = replace_fields(self._table.read, columns=self._columns).with_predicate(self._predicate)
        return RangedScan(self._table, read, self._predicate, self._filters)

    class Java:
        """What py4j makes a proxy for."""

        implements = (
            f"{_READ}.SupportsPushDownRequiredColumns",
            "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters",
        )


class RangedScan(JavaIdentity, Delegating):
    """What one query reads. `filters` are Catalyst's conditions; `predicate` is the part of them that we apply."""

    def __init__(self, table: RangedTable, read: RangedRead, predicate: Predicate, filters: JavaObject | None) -> None:
        super().__init__(f"{table.source.name} {read.to_text()}")
        self.table = table
        self.read = read
        self.predicate = predicate
        self.filters = filters
        self._inner = table.source.scan(read, table.schema_of_table)

    @cached_property
    def query(self) -> Query:
        """The same as a query in this process."""
        found = self.table.table.query(self.read.columns, self.predicate)
        return replace(found, snapshot=self.read.chosen_of(found.snapshot))

    def description(self) -> str:
        """The name that Spark's plans show."""
        return f"by Underlay's ranged reader, where {self.predicate}"

    def estimateStatistics(self) -> ScanStatistics:  # noqa: N802  # Spark's name
        """Exact for the rows that are read, to which Spark applies its conditions."""
        with self.table.gateway.raising_errors():
            plan = self.query.plan
        return ScanStatistics(self.table.gateway, rows=plan.kept.rows, size_bytes=fetch_bytes(plan))

    def estimateSizeInBytes(self) -> JavaObject:  # noqa: N802  # Spark's name, since 4.3
        """The bytes, without counting rows."""
        return self.estimateStatistics().sizeInBytes()

    def reflectsFullyPushedDownFilters(self) -> bool:  # noqa: N802  # Spark's name, since 4.3
        """Whether the statistics are those of the rows that match."""
        return False

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_READ}.SupportsReportStatistics",)


class ScanStatistics:
    """Rows and bytes of a scan."""

    def __init__(self, gateway: Gateway, *, rows: int, size_bytes: int) -> None:
        self._gateway = gateway
        self._rows = rows
        self._size_bytes = size_bytes

    def numRows(self) -> JavaObject:  # noqa: N802  # Spark's name
        """An OptionalLong."""
        return self._gateway.static("java.util.OptionalLong", "of", self._rows)

    def sizeInBytes(self) -> JavaObject:  # noqa: N802  # Spark's name
        """An OptionalLong."""
        return self._gateway.static("java.util.OptionalLong", "of", self._size_bytes)

    def columnStats(self) -> JavaObject:  # noqa: N802  # Spark's name
        """None."""
        return self._gateway.new("java.util.HashMap")

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_READ}.Statistics",)


def _narrowest(schema: TableSchema, columns: tuple[str, ...]) -> str:
    return min(columns, key=lambda name: _bit_width(to_arrow(schema).field(name).type))


def _bit_width(given: pa.DataType) -> int:
    try:
        return given.bit_width
    except ValueError:
        return _NO_WIDTH
