"""The Python data source `underlay`: tables by options. It also works without a gateway to the JVM (Spark Connect).

Spark prunes no columns of a Python source, and rows only on request, so a classic session reads faster by table name
(see `session`).
"""

from __future__ import annotations

import atexit
import shutil
import warnings
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import SparkSession, datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from underlay.api.lake import Lake
from underlay.errors import Unsupported
from underlay.schema.record import from_record
from underlay.spark.jvm.gateway import GATEWAY_ERRORS, call, gateway_of, java_session
from underlay.spark.source.driver_channel import DriverLine
from underlay.spark.source.options import read_options
from underlay.spark.source.pinned import Pin
from underlay.spark.source.read import make_reader
from underlay.spark.source.write import TableWriter
from underlay.spark.start.open_session import has_gateway
from underlay.spark.start.session_lakes import remember_source_lake
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.to_spark import source_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter

_WARNING = (
    'format("underlay") reads every column and row, unless its options "columns" and "where" say otherwise: Spark does '
    "not tell a Python source which columns a query needs, and passes filters only on request (option "
    '"push_filters"). A classic session reads only what a query needs: spark = underlay.spark.session(lake), '
    'spark.table("dataset.table")'
)

_USER_DEFINED = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


class UnderlayDataSource(DataSource):
    """One table. Its version is fixed when a DataFrame is made; later commits do not change it."""

    known: ClassVar[StoreAddress | None] = None
    """The lake, unless an option names one."""
    driver: ClassVar[DriverLine | None] = None
    """Workers ask the driver over it whether they may replace a version."""
    warned: ClassVar[str | None] = None
    """The path of a file that exists once a reader has warned."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "underlay"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.settings = read_options(options, self.known)
        self._pin: Pin | None = None

    def schema(self) -> StructType:
        """The columns to read. Looks up the table, and fixes the version."""
        head = self.settings.open().read_head()
        self._pin = Pin.of(head)
        schema = from_record(head.root.definition.schema)
        found = source_schema(schema, self.settings.columns or schema.names)
        if not self.settings.changes:
            return found
        from underlay.spark.stream.changes import with_change_columns  # only readers of changes need it

        return with_change_columns(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the version that was fixed, or the changes up to it."""
        if self.settings.changes:
            from underlay.spark.stream.changes import ChangesReader

            return ChangesReader(self.settings, schema, self._pin or Pin.of(self.settings.open().read_head()))
        if not (self.settings.columns or self.settings.where or self.settings.push_filters):
            _warn_once(self.warned)
        pin = self._pin or Pin.of(self.settings.open().read_head())
        return make_reader(self.settings, pin, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writes rows with these columns. Raises SchemaMismatch before any task runs."""
        return TableWriter(self.settings, schema, is_overwrite=overwrite, driver=self.driver)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """Writes a stream with these columns. Raises SchemaMismatch before any task runs, Unsupported on Spark 4.0."""
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):  # 4.0 passes rows one by one, and no Arrow
            raise Unsupported(
                'writing a stream with format("underlay") needs Spark 4.1 or later',
                hint="Write foreachBatch(underlay.spark.batch_writer(…)).",
            )
        from underlay.spark.stream.write import StreamWriter

        return StreamWriter(self.settings, schema, is_complete=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Reads rows that are appended to a table, or all of its changes."""
        if self.settings.changes:
            from underlay.spark.stream.changes import ChangesStreamReader

            return ChangesStreamReader(self.settings, schema)
        from underlay.spark.stream.read import make_stream_reader  # only workers of streams need it

        return make_stream_reader(self.settings, schema)


def register_source(spark: SparkSession, lake: Lake | None = None, driver: DriverLine | None = None) -> None:
    """Register `format("underlay")` with a session; tables are those of `lake` unless the option `lake` names another.

    The session becomes active in this thread: Spark finds Python sources only through the active session, and a new
    thread of the driver has none until it calls this, or `session`. The first read that options could have narrowed
    prints a warning to a worker's standard error.
    """

    # The class is made here, so that workers get it with these values.
    class RegisteredDataSource(UnderlayDataSource):
        known = None if lake is None else StoreAddress(url=lake.url, options=lake.options)
        warned = _marker()

    RegisteredDataSource.driver = driver
    if not has_gateway(spark):
        spark.dataSource.register(RegisteredDataSource)
        return
    _register(spark, RegisteredDataSource)
    remember_source_lake(java_session(spark), None if lake is None else lake.url)
    gateway_of(spark).static("org.apache.spark.sql.classic.SparkSession", "setActiveSession", java_session(spark))


def _register(spark: SparkSession, source: type[DataSource]) -> None:
    """Does what `spark.dataSource.register` does, except for its search for installed sources, which starts a Python
    process: that is left to the first use.
    """
    gateway = gateway_of(spark)
    wrap: Any = _wrap_function  # it has no types
    try:
        manager = call(call(java_session(spark), "sessionState"), "dataSourceManager")
        known = gateway.private(call(manager, "getClass"), "runtimeDataSourceBuilders", manager)
        call(known, "put", source.name(), gateway.new(_USER_DEFINED, wrap(spark.sparkContext, source)))
    except GATEWAY_ERRORS:
        spark.dataSource.register(source)


@cache
def _marker() -> str:
    """The path of a file for this process that does not exist yet."""
    folder = mkdtemp(prefix="underlay-source-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Path(folder) / "warned")


def _warn_once(marker: str | None) -> None:
    """Warn, unless the marker file exists. Readers are made in separate processes, which share nothing else."""
    if marker is not None:
        try:
            Path(marker).touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:  # on another host than the registering one each process warns for itself
            pass
    warnings.warn(_WARNING, stacklevel=3)
