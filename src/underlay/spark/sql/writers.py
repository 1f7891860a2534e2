"""Writers of DataFrames that name a table of a lake: `df.writeTo`, `insertInto` and `saveAsTable`.

Spark lets them write to a table of a catalog only, not to a view. So the parser gives a writer that asks for a table of
a lake another name, of a catalog that is in Python. Spark resolves it, makes a command of it and runs that, until the
table is asked to take the rows. Then the command itself is read and run as a statement is (see `insert` and `create`):
how rows are matched with columns, what a condition means, and what is committed, is the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.errors import InvalidRequest, TableExists, TableNotFound, Unsupported
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.jvm.gateway import (
    GATEWAY_ERRORS,
    JavaObject,
    call,
    call_text,
    call_texts,
    gateway_of,
    java_session,
    scala_seq,
)
from underlay.spark.jvm.proxy import Delegating, JavaIdentity
from underlay.spark.ranged.table import source_table
from underlay.spark.sql.create import PROVIDER, find_lake_of_dataset, make
from underlay.spark.sql.insert import write
from underlay.spark.sql.nodes import NamedRelation, StatementScope, kind_of, option_of
from underlay.spark.sql.targets import SPARK_CATALOG, find_target, is_view, key_of_parts

CATALOG = "underlay"
"""The name of our catalog, as Spark shows it."""
_API = "org.apache.spark.sql.connector"
_WRITERS = ("DataFrameWriter.", "DataFrameWriterV2.")
_INSERTS, _SAVES = "DataFrameWriter.insertInto", "DataFrameWriter.saveAsTable"
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_EXECUTION = "spark.sql.execution.id"
_DEFAULT = "spark.sql.sources.default"
_CAPABILITIES = (
    "V1_BATCH_WRITE",
    "BATCH_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
    "ACCEPT_ANY_SCHEMA",
)
_NOTHING = "org.apache.spark.sql.execution.datasources.noop"
_numbers = count()


def name_for_writer(spark: SparkSession, names: Names, parts: list[str]) -> JavaObject | None:
    """The name that Spark is to use in place of this one: of our catalog, for a writer that asks, and a table of a lake
    or one that a lake may get. None for all others."""
    key = key_of_parts(spark, parts)
    gateway = gateway_of(spark)
    callers = gateway.callers()
    if key is None or not any(writer in callers for writer in _WRITERS):
        return None
    name = list(parts[-2:] if len(parts) > 1 else key)
    target = find_target(spark, names, NamedRelation(parts=parts, name=tuple(parts)))
    if target is None:
        is_new = _INSERTS not in callers and not names.has_database(key[0])
        is_other = (len(parts) == 1 and is_view(spark, parts[0])) or names.is_taken(key)
        if is_other or find_lake_of_dataset(names, key[0], is_new=is_new) is None:
            return None
    _install(spark, names)
    return scala_seq(gateway, [CATALOG, *name])


def _install(spark: SparkSession, names: Names) -> None:
    """Have our catalog among those of a session."""
    gateway = gateway_of(spark)
    manager = call(call(java_session(spark), "sessionState"), "catalogManager")
    try:
        catalogs = gateway.private(call(manager, "getClass"), "catalogs", manager)
    except GATEWAY_ERRORS as error:
        raise Unsupported(
            "this version of Spark cannot take Underlay's catalog, through which its writers reach tables of a lake",
            found=spark.version,
            hint="Call underlay.spark.append, overwrite or write, or INSERT and CREATE TABLE by spark.sql.",
        ) from error
    if not call(catalogs, "contains", CATALOG):
        call(catalogs, "put", CATALOG, WriterCatalog(spark, names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A command that makes a table, and the lake to make it in."""

    node: JavaObject
    lake: Lake


class WriterCatalog(JavaIdentity):
    """Spark's `StagingTableCatalog`, in which writers find tables of lakes. Nothing is read from it."""

    def __init__(self, spark: SparkSession, names: Names) -> None:
        super().__init__(f"{CATALOG} of {call_text(java_session(spark), 'sessionUUID')}")
        self._spark = spark
        self._names = names
        self._gateway = gateway_of(spark)

    def name(self) -> str:
        """What it is called."""
        return CATALOG

    def initialize(self, name: str, options: JavaObject) -> None:
        """Nothing to do."""

    def defaultNamespace(self) -> JavaObject:  # noqa: N802  # Spark's name
        """There is none."""
        return self._gateway.new_array("java.lang.String", 0)

    def capabilities(self) -> JavaObject:
        """It has none of those that Spark asks for."""
        return self._gateway.new("java.util.HashSet")

    tableStateOptionKeys = changelogStateOptionKeys = capabilities  # noqa: N815  # Spark's names

    def useNullableQuerySchema(self) -> bool:  # noqa: N802  # Spark's name
        """Columns of new tables take nulls."""
        return True

    def invalidateTable(self, identifier: JavaObject) -> None:  # noqa: N802  # Spark's name
        """Nothing is kept."""

    def supportedCustomMetrics(self) -> JavaObject:  # noqa: N802  # Spark's name
        """There are none."""
        return self._gateway.new_array(f"{_API}.metric.CustomMetric", 0)

    def loadTable(self, identifier: JavaObject, *_: object) -> WrittenTable:  # noqa: N802  # Spark's name
        """The table that rows go to. Raises TableNotFound; a writer that may make the table is told in Spark's way."""
        with self._gateway.raising_errors(is_parser=False):
            name = _name(identifier)
            entry = self._names.find(name)
            if entry is not None:
                return WrittenTable(self._spark, self._names, name, call(entry.view, "schema"))
            dataset = name.split(".")[0].lower()
            is_known = find_lake_of_dataset(self._names, dataset, is_new=False) is not None
            if is_known and _SAVES not in self._gateway.callers():
                raise TableNotFound("no such table", place=name, hint="writeTo(…).create() makes one.")
            raise self._gateway.passed(self._gateway.new(f"{_ANALYSIS}.NoSuchTableException", identifier))

    def tableExists(self, identifier: JavaObject) -> bool:  # noqa: N802  # Spark's name
        """Whether there is the table that a command is to make or replace. Raises TableExists and TableNotFound."""
        with self._gateway.raising_errors(is_parser=False):
            node, name = _running(self._spark), _name(identifier)
            is_there, is_new = self._names.find(name) is not None, kind_of(node).startswith("Create")
            if is_new and is_there and not call(node, "ignoreIfExists"):
                raise TableExists(
                    "the table already exists", place=name, hint="writeTo(…).createOrReplace() replaces it."
                )
            if not is_new and not is_there and not call(node, "orCreate"):
                raise TableNotFound("no such table", place=name, hint="Call createOrReplace().")
            return is_there

    def stageCreate(self, identifier: JavaObject, *_: object) -> WrittenTable:  # noqa: N802  # Spark's name
        """A table that the command makes when it hands over rows."""
        with self._gateway.raising_errors(is_parser=False):
            node, name = _running(self._spark), _name(identifier)
            schema = call(call(node, "query"), "schema")
            return WrittenTable(self._spark, self._names, name, schema, Making(node=node, lake=self._lake(node, name)))

    def _lake(self, node: JavaObject, name: str) -> Lake:
        """The lake that a command makes its table in."""
        dataset = name.split(".")[0].lower()
        found = option_of(call(call(node, "tableSpec"), "provider"))
        provider = None if found is None else str(found).lower()
        if provider not in (None, PROVIDER, str(self._spark.conf.get(_DEFAULT)).lower()):
            raise InvalidRequest(
                "the tables of this dataset are in a lake",
                place=name,
                expected=f'using("{PROVIDER}"), or none',
                found=provider,
            )
        lake = find_lake_of_dataset(self._names, dataset, is_new=provider == PROVIDER)
        if lake is None:  # as Spark says it: nobody mentioned Underlay
            missing = scala_seq(self._gateway, [SPARK_CATALOG, dataset])
            raise self._gateway.passed(self._gateway.new(f"{_ANALYSIS}.NoSuchNamespaceException", missing))
        return lake

    stageReplace = stageCreateOrReplace = stageCreate  # noqa: N815  # Spark's names

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_API}.catalog.StagingTableCatalog",)


class WrittenTable(Delegating, JavaIdentity):
    """A table that rows are written to, or one that a command makes when it hands over rows."""

    def __init__(
        self, spark: SparkSession, names: Names, name: str, columns: JavaObject, making: Making | None = None
    ) -> None:
        super().__init__(f"{CATALOG} {name} {next(_numbers)}")
        self._gateway = gateway_of(spark)
        self._inner = source_table(self._gateway, columns)
        self._write = TableWrite(spark, names, name, making)
        self._name = name

    def name(self) -> str:
        """What Spark's plans show."""
        return self._name

    def capabilities(self) -> JavaObject:
        """What writers may do. Rows of any columns are accepted: we match them with the table's, or say why not."""
        found = self._gateway.new("java.util.HashSet")
        for one in _CAPABILITIES:
            call(found, "add", self._gateway.static(f"{_API}.catalog.TableCapability", "valueOf", one))
        return found

    def newWriteBuilder(self, info: JavaObject) -> TableWrite:  # noqa: N802  # Spark's name
        """What takes the rows."""
        return self._write

    def reportDriverMetrics(self) -> JavaObject:  # noqa: N802  # Spark's name
        """There are none."""
        return self._gateway.new_array(f"{_API}.metric.CustomTaskMetric", 0)

    def commitStagedChanges(self) -> None:  # noqa: N802  # Spark's name
        """They are."""

    abortStagedChanges = commitStagedChanges  # noqa: N815  # Spark's name

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_API}.catalog.StagedTable", f"{_API}.catalog.SupportsWrite")


class TableWrite(Delegating, JavaIdentity):
    """The builder of a write, the write, and what takes its rows: the command says what each of them is to do."""

    def __init__(self, spark: SparkSession, names: Names, name: str, making: Making | None) -> None:
        super().__init__(f"{CATALOG} {name} {next(_numbers)}")
        self._inner = gateway_of(spark).module(f"{_NOTHING}.NoopWrite$")
        self._spark = spark
        self._names = names
        self._name = name
        self._making = making

    def canOverwrite(self, predicates: JavaObject) -> bool:  # noqa: N802  # Spark's name
        """Any condition may say which rows go."""
        return True

    def _itself(self, *_: object) -> TableWrite:
        return self

    overwrite = truncate = overwriteDynamicPartitions = _itself  # noqa: N815  # Spark's names
    build = toInsertableRelation = _itself  # noqa: N815  # Spark's names

    def toBatch(self) -> PartitionsWrite:  # noqa: N802  # Spark's name
        """What `overwritePartitions` asks for."""
        return PartitionsWrite(self)

    def insert(self, *_: object) -> None:
        """Run the command."""
        with gateway_of(self._spark).raising_errors(is_parser=False):
            scope = StatementScope(spark=self._spark, queries=None)
            if self._making is not None:
                make(scope, self._making.lake, self._name, self._making.node)
                return
            parts = self._name.split(".", 1)
            target = find_target(self._spark, self._names, NamedRelation(parts=parts, name=tuple(parts)))
            if target is None:
                raise TableNotFound("no such table", place=self._name)
            write(scope, _running(self._spark), target)

    class Java:
        """What py4j makes a proxy for."""

        implements = (
            f"{_API}.write.SupportsOverwriteV2",
            f"{_API}.write.SupportsDynamicOverwrite",
            f"{_API}.write.V1Write",
            "org.apache.spark.sql.sources.InsertableRelation",
        )


class PartitionsWrite(Delegating, JavaIdentity):
    """The write of `overwritePartitions`, for which Spark insists on tasks. They compute the rows and keep none; then
    the command is run."""

    def __init__(self, write: TableWrite) -> None:
        super().__init__(f"batch of {write.identity}")
        self._inner = gateway_of(write._spark).module(f"{_NOTHING}.NoopBatchWrite$")
        self._write = write

    def commit(self, *_: object) -> None:
        """Run the command."""
        self._write.insert()

    class Java:
        """What py4j makes a proxy for."""

        implements = (f"{_API}.write.BatchWrite",)


def _name(identifier: JavaObject) -> str:
    return ".".join([*call_texts(identifier, "namespace"), call_text(identifier, "name")])


def _running(spark: SparkSession) -> JavaObject:
    """The command that Spark runs in this thread."""
    gateway = gateway_of(spark)
    number = call(call(java_session(spark), "sparkContext"), "getLocalProperty", _EXECUTION)
    found = gateway.static("org.apache.spark.sql.execution.SQLExecution", "getQueryExecution", int(str(number)))
    return call(found, "analyzed")
