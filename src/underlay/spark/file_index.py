"""Spark's `FileIndex` of one version of a table: Catalyst asks it which files to read.

It is called from the JVM, on any thread, under Spark's names. The version is fixed, so that what it answers never
changes; equality is by version, so that Spark shares cached and reused results among equal scans and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from urllib.parse import quote
from zlib import crc32

from underlay.api.table import Table
from underlay.errors import BadPredicate, UnknownColumn
from underlay.plan.plan import Plan
from underlay.prune import TRUE, Predicate
from underlay.prune.predicate import And
from underlay.spark.file_groups import Files, Group, files_of
from underlay.spark.file_list import encode_files, hand_over
from underlay.spark.filters import conjuncts, read_filters
from underlay.spark.gateway import Gateway, JavaObject, call, call_text
from underlay.spark.place import hadoop_folder

_NOTHING = "scala.collection.immutable.Nil$"
_ROW = "org.apache.spark.sql.catalyst.InternalRow$"
_DIRECTORY = "org.apache.spark.sql.execution.datasources.PartitionDirectory$"


class TableFileIndex:
    """The files of one group of a version. `table` is opened at that version for good."""

    def __init__(self, gateway: Gateway, table: Table, group: Group) -> None:
        self._gateway = gateway
        self._table = table
        self._snapshot = table.snapshot()
        self.group = group
        root = self._snapshot.root
        place = f"{self._snapshot.store.url}/{self._snapshot.keys.folder}"
        self._identity = f"Underlay {table.name}@v{root.version} {group.name} {place} {root.commit_id}"
        self._folder = hadoop_folder(self._snapshot.store.url, self._snapshot.keys.folder)

    @cached_property
    def all_files(self) -> Files:
        """Every file of the group."""
        return files_of(self._snapshot, self._plan(TRUE), self.group)

    def choose(self, predicate: Predicate) -> Files:
        """The files that may hold a matching row."""
        return self.all_files if predicate == TRUE else files_of(self._snapshot, self._plan(predicate), self.group)

    def _plan(self, predicate: Predicate) -> Plan:
        """The plan by as much of the predicate as the planner takes: Spark applies all of it to the rows."""
        try:
            return self._table.query((), predicate).plan
        except (BadPredicate, UnknownColumn):
            kept = tuple(part for part in conjuncts(predicate) if self._is_understood(part))
            return self._table.query((), And(kept)).plan

    def _is_understood(self, predicate: Predicate) -> bool:
        try:
            return self._table.query((), predicate).plan is not None
        except (BadPredicate, UnknownColumn):
            return False

    def _numbers_of(self, files: Files) -> Sequence[int]:
        """The number of each file among all: where rows are deleted, it tells them apart. Elsewhere nobody asks."""
        if self.group is not Group.DELETED:
            return [0] * len(files.names)
        return [self._numbers[name] for name in files.names]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.all_files.names)}

    def rootPaths(self) -> JavaObject:  # noqa: N802  # Spark's name
        """None: Spark would take them for folders that it may overwrite, and delete every file in them."""
        return self._gateway.module(_NOTHING)

    def listFiles(self, _partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:  # noqa: N802  # Spark's
        """The files that may hold a row that passes the filters, as one partition without values."""
        files = self.choose(read_filters(data_filters))
        return self._everything if files is self.all_files else self._hand_over(files)

    @cached_property
    def _everything(self) -> JavaObject:
        return self._hand_over(self.all_files)

    def _hand_over(self, files: Files) -> JavaObject:
        gateway = self._gateway
        encoded = encode_files(self._folder, files.names, files.sizes, self._numbers_of(files))
        array = hand_over(gateway, encoded, len(files.names))
        row = call(gateway.module(_ROW), "empty")
        directory = call(gateway.module(_DIRECTORY), "apply", row, array)
        return call(gateway.module(_NOTHING), "$colon$colon", directory)

    def inputFiles(self) -> JavaObject:  # noqa: N802  # Spark's name
        """The paths of all files."""
        gateway, mark = self._gateway, "\n"
        folder = quote(self._folder, safe=":/")
        paths = mark.join(f"{folder}/{name}" for name in self.all_files.names)
        if not paths:
            return gateway.new_array("java.lang.String", 0)
        return call(gateway.static("java.util.regex.Pattern", "compile", mark), "split", paths)

    def sizeInBytes(self) -> int:  # noqa: N802  # Spark's name
        """The exact size of all files."""
        return self.all_files.size_bytes

    def partitionSchema(self) -> JavaObject:  # noqa: N802  # Spark's name
        """No columns: those that the table is partitioned by lie in the files too."""
        return self._gateway.new("org.apache.spark.sql.types.StructType")

    def metadataOpsTimeNs(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Not measured."""
        return self._gateway.module("scala.None$")

    def refresh(self) -> None:
        """A version never changes."""

    def toString(self) -> str:  # noqa: N802  # Java's name
        """Names the version: two of them are equal when this is."""
        return self._identity

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """Equal for equal versions."""
        return crc32(self._identity.encode()) >> 1

    def equals(self, other: JavaObject | None) -> bool:
        """Whether this is the same version of the same table. py4j gives the other one as an object of the JVM."""
        return other is not None and call_text(other, "toString") == self._identity

    class Java:
        """What py4j makes a proxy for."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)
