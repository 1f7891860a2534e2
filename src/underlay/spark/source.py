"""The Python data source `underlay`: tables by options, also where Python has no gateway to the JVM (Spark Connect).

Spark prunes no columns of such a source, and no rows unless asked to, so a classic session reads faster by names, see
`session`.
"""

from __future__ import annotations

import warnings
from collections.abc import MutableMapping
from typing import ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from underlay.api.lake import Lake
from underlay.schema.record import from_record
from underlay.spark.address import StoreAddress
from underlay.spark.options import read_options
from underlay.spark.source_read import Pin, make_reader
from underlay.spark.source_rows import source_schema
from underlay.spark.source_write import TableWriter

_has_warned = False


class UnderlayDataSource(DataSource):
    """A table. The version is fixed when a DataFrame is made: what is committed later does not change it."""

    known: ClassVar[StoreAddress | None] = None
    """The lake, unless an option names one."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "underlay"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.settings = read_options(options, self.known)
        self._pin: Pin | None = None

    def schema(self) -> StructType:
        """The columns to read. Looks the table up, and fixes the version."""
        head = self.settings.open().read_head()
        self._pin = Pin.of(head)
        schema = from_record(head.root.definition.schema)
        return source_schema(schema, self.settings.columns or schema.names)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the version that was fixed."""
        pin = self._pin or Pin.of(self.settings.open().read_head())
        return make_reader(self.settings, pin, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writes rows with these columns. Raises SchemaMismatch before any task runs."""
        return TableWriter(self.settings, schema, is_overwrite=overwrite)


def register_source(spark: SparkSession, lake: Lake | None = None) -> None:
    """Make `format("underlay")` known to a session; tables are those of `lake` unless the option `lake` names another.

    Warns, once in a process, that conditions of a query do not prune what is read.
    """
    spark.dataSource.register(UnderlayDataSource if lake is None else _source_of(lake))
    _warn_once()


def _source_of(lake: Lake) -> type[UnderlayDataSource]:
    """The source with a lake of its own. Made here, so that it is sent to workers with what it knows."""

    class LakeDataSource(UnderlayDataSource):
        known = StoreAddress(url=lake.url, options=lake.options)

    return LakeDataSource


def _warn_once() -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            'format("underlay") reads all columns and rows that its options "columns" and "where" do not leave out: '
            "Spark does not tell a Python source which columns a query needs, and its filters only on request "
            '(option "push_filters")',
            stacklevel=3,
        )
