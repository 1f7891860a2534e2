"""Spark's `FileIndex` of one version of a table: Catalyst asks it which files to read.

The JVM calls it, on any thread, by Spark's method names. The version is fixed, so its answers never change; equality is
by version, so that Spark shares cached and reused results only among equal scans.

Eight guards stand between a filter and the list of files, in this order:

| guard | without it |
|---|---|
| `may_skip_row_groups`, when the relation is made | Spark loses rows by skipping row groups of old dates, -0.0, NaN … |
| `rootPaths` is empty | Spark takes them for folders of its own, overwrites them and deletes their files |
| `raising_errors` | our errors reach the user as a traceback of Python inside an error of py4j |
| `close_forgotten` | every JVM thread that ever asked keeps a connection, and a thread of Python |
| `refuse_other_versions` | a query mixes two versions of a table, or overwrites newer rows with older ones |
| `read_filters`, with Opaque for the unknown | a condition that only Spark understands drops matching rows |
| `VersionFiles.choose`, by what the planner takes | a literal that does not fit its column fails the query |
| `check_unchanged` | Spark reads another file that was put in the place of a registered one |

Then the files are passed to the JVM with the hosts of the executors that are alive.
"""

from __future__ import annotations

from urllib.parse import quote
from zlib import crc32

from pyspark.sql import SparkSession

from underlay.prune import TRUE
from underlay.runtime.locks import cached_property
from underlay.spark.files.file_groups import Group
from underlay.spark.files.file_statuses import hand_over
from underlay.spark.files.located_files import hand_over_located
from underlay.spark.files.one_version import VersionGuard
from underlay.spark.files.preferred_hosts import Hosts, executor_hosts
from underlay.spark.files.version_files import Files, VersionFiles, check_unchanged
from underlay.spark.filters.catalyst import read_filters
from underlay.spark.jvm.gateway import JavaObject, call, close_forgotten

_NOTHING = "scala.collection.immutable.Nil$"
_ROW = "org.apache.spark.sql.catalyst.InternalRow$"
_DIRECTORY = "org.apache.spark.sql.execution.datasources.PartitionDirectory$"


class TableFileIndex(VersionGuard):
    """The files of one group of a version. `names` maps the files' column names to the table's; None when they are the
    same. With `first_number`, files are numbered from it; else, in a group with deleted rows, from 0.
    """

    def __init__(
        self,
        spark: SparkSession,
        version: VersionFiles,
        group: Group,
        *,
        is_asked_for: bool,
        first_number: int | None = None,
    ) -> None:
        numbered = "" if first_number is None else f" from {first_number}"
        identity = f"Underlay {version.identity} {crc32(repr(group).encode()):08x}{numbered}"
        super().__init__(spark, version.table, identity, is_asked_for=is_asked_for)
        self.version = version
        self.group = group
        self.is_numbered = first_number is not None
        self._first_number = first_number
        reading = group.reading
        self.names = None if reading is None or reading.is_by_name else reading.names(version.snapshot.schema)
        self._everything: tuple[Hosts, JavaObject] | None = None

    @cached_property
    def all_files(self) -> Files:
        """Every file of the group."""
        return self.version.choose(self.group)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each file among all: it tells rows of files apart."""
        return {path: number for number, path in enumerate(self.all_files.paths, self._first_number or 0)}

    def rootPaths(self) -> JavaObject:  # noqa: N802  # Spark's name
        """None: Spark would take them for folders that it may overwrite, and delete every file in them."""
        return self.gateway.module(_NOTHING)

    def listFiles(self, _partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:  # noqa: N802  # Spark's
        """The files that may hold a row that passes the filters, as one partition without partition values.

        What Underlay raises here is raised by Spark, in our words.
        """
        with self.gateway.raising_errors():
            close_forgotten(self.gateway)
            self.refuse_other_versions()
            predicate = read_filters(self.gateway, data_filters, self.names)
            files = self.all_files if predicate == TRUE else self.version.choose(self.group, predicate)
            check_unchanged(files.registered)
            hosts = executor_hosts(self._context)
            return self._hand_over_all(hosts) if files is self.all_files else self._hand_over(files, hosts)

    def _hand_over_all(self, hosts: Hosts) -> JavaObject:
        """All files, passed to the JVM once for as long as the hosts stay the same."""
        known = self._everything
        if known is None or known[0] != hosts:
            known = self._everything = (hosts, self._hand_over(self.all_files, hosts))
        return known[1]

    def _hand_over(self, files: Files, hosts: Hosts) -> JavaObject:
        gateway = self.gateway
        is_numbered = self.group.has_deletes or self.is_numbered
        numbers = [self._numbers[path] for path in files.paths] if is_numbered else None
        if len(hosts) > 1:
            array = hand_over_located(gateway, files.paths, files.sizes, numbers, hosts)
        else:
            array = hand_over(gateway, files.paths, files.sizes, numbers)
        directory = call(gateway.module(_DIRECTORY), "apply", gateway.constant(_ROW, "empty"), array)
        return call(gateway.module(_NOTHING), "$colon$colon", directory)

    def inputFiles(self) -> JavaObject:  # noqa: N802  # Spark's name
        """The paths of all files."""
        gateway, mark = self.gateway, "\n"
        paths = mark.join(quote(path, safe=":/") for path in self.all_files.paths)
        if not paths:
            return gateway.new_array("java.lang.String", 0)
        return call(gateway.static("java.util.regex.Pattern", "compile", mark), "split", paths)

    def sizeInBytes(self) -> int:  # noqa: N802  # Spark's name
        """The exact size of all files."""
        return self.version.groups.size_bytes.get(self.group, 0)

    def partitionSchema(self) -> JavaObject:  # noqa: N802  # Spark's name
        """No columns: the files contain the partition columns too."""
        return self.gateway.new("org.apache.spark.sql.types.StructType")

    def metadataOpsTimeNs(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Not measured."""
        return self.gateway.module("scala.None$")

    def isTimeTravel(self) -> bool:  # noqa: N802  # Spark's name, since 4.3
        """Called when Spark refreshes its cache for some path; never for one of ours, see `rootPaths`."""
        return False

    def refresh(self) -> None:
        """A version never changes."""

    class Java:
        """What py4j makes a proxy for."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)
