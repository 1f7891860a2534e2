"""Plain Parquet, Underlay, Delta Lake and Iceberg on Spark: the same verbs for each, tuned alike.

Each runs in a JVM of its own, since a peer's extensions take part in every query of a session. All have two cores, the
same memory, two shuffle partitions and zstd of level 1, which is what Underlay writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.spark.peers import Delta, Iceberg
from bench.spark.rows import SCHEMA, Dataset
from underlay.api.lake import Lake, connect
from underlay.spark import append, read_table, session
from underlay.spark.start.open_session import driver_settings, start_on
from underlay.store import open_store
from underlay.store.testing import CountingStore

_MACHINE_MB = 12 << 10
"""What the machine is taken to have, so that all get the same memory: a quarter of it."""
_EVERY = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
}


class System(Protocol):
    """A way to keep tables. Datasets lie in `source`, what it makes of them in `folder`, new tables in `written`."""

    ways: ClassVar[tuple[str, ...]]
    """How rows are appended."""
    jars: ClassVar[str]
    """What the names of its jars begin with; empty when it needs none."""

    def __init__(self, folder: Path, source: Path, written: Path) -> None: ...

    def settings(self) -> dict[str, str]:
        """What its session is started with, beyond what all have."""

    def adopt(self, spark: SparkSession, dataset: Dataset) -> None:
        """Make a table of the files. Done once, in a process of its own."""

    def open(self, spark: SparkSession, dataset: Dataset) -> str:
        """Make the adopted table known to the session; what SQL calls it."""

    def create(self, spark: SparkSession, name: str, columns: pa.Schema = SCHEMA) -> None:
        """A new empty table to append to."""

    def append(self, frame: DataFrame, name: str, way: str) -> None:
        """Add rows, in one of its ways."""

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """A table that was appended to, as it is now."""

    def remove(self, spark: SparkSession, name: str) -> None:
        """Delete a table that was appended to and is not used again."""

    def name_in_sql(self, name: str) -> str:
        """What SQL calls a table that was appended to."""


class Plain:
    """Spark's own Parquet: a folder of files, known as a view."""

    ways: ClassVar[tuple[str, ...]] = ("",)
    jars: ClassVar[str] = ""

    def __init__(self, folder: Path, source: Path, written: Path) -> None:
        self._source = source
        self._written = written

    def settings(self) -> dict[str, str]:
        """See System."""
        return {}

    def adopt(self, spark: SparkSession, dataset: Dataset) -> None:
        """See System. Files are all it has."""

    def open(self, spark: SparkSession, dataset: Dataset) -> str:
        """See System."""
        spark.read.parquet(str(self._source / dataset.folder / "files")).createOrReplaceTempView(dataset.name)
        return dataset.name

    def create(self, spark: SparkSession, name: str, columns: pa.Schema = SCHEMA) -> None:
        """See System. A folder comes with the first rows."""

    def append(self, frame: DataFrame, name: str, way: str) -> None:
        """See System."""
        frame.write.mode("append").parquet(str(self._written / name))

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """See System."""
        return spark.read.parquet(str(self._written / name))

    def remove(self, spark: SparkSession, name: str) -> None:
        """See System."""
        shutil.rmtree(self._written / name)

    def name_in_sql(self, name: str) -> str:
        """See System."""
        return f"parquet.`{self._written / name}`"


class Underlay:
    """Tables by name in a session, and both ways to append."""

    ways: ClassVar[tuple[str, ...]] = ("append", "source")
    jars: ClassVar[str] = ""

    def __init__(self, folder: Path, source: Path, written: Path) -> None:
        self._source = source
        self._written = written
        self._lake: Lake | None = None
        self._stores: list[CountingStore] = []

    def settings(self) -> dict[str, str]:
        """See System."""
        return {}

    def adopt(self, spark: SparkSession, dataset: Dataset) -> None:
        """See System. It wrote the files."""

    def open(self, spark: SparkSession, dataset: Dataset) -> str:
        """See System."""
        session(self._connect(self._source / dataset.folder / "lake"), spark)
        return dataset.table

    def create(self, spark: SparkSession, name: str, columns: pa.Schema = SCHEMA) -> None:
        """See System."""
        self.new_tables(spark).create_table(f"bench.{name}", columns, key=["id"])

    def append(self, frame: DataFrame, name: str, way: str) -> None:
        """See System."""
        lake = self.new_tables(frame.sparkSession)
        if way == "append":
            append(frame, f"bench.{name}", lake=lake)
        else:
            frame.write.format("underlay").option("lake", lake.url).mode("append").save(f"bench.{name}")

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """See System."""
        return read_table(spark, self.new_tables(spark), f"bench.{name}")

    def remove(self, spark: SparkSession, name: str) -> None:
        """See System."""
        self.new_tables(spark).drop_table(f"bench.{name}")
        shutil.rmtree(self._written / "lake" / "bench" / name)

    def name_in_sql(self, name: str) -> str:
        """See System."""
        return f"bench.{name}"

    def new_tables(self, spark: SparkSession) -> Lake:
        """The lake of tables that are appended to."""
        if self._lake is None:
            self._lake = self._connect(self._written / "lake")
            self._lake.initialise()
            session(self._lake, spark)
        return self._lake

    def request_count(self) -> int:
        """Requests of this process to its lakes so far."""
        return sum(store.request_count() for store in self._stores)

    def _connect(self, folder: Path) -> Lake:
        store = CountingStore(open_store(folder))
        self._stores.append(store)
        return connect(store)


SYSTEMS: dict[str, type[System]] = {"plain": Plain, "underlay": Underlay, "delta": Delta, "iceberg": Iceberg}
PEERS = ("delta", "iceberg")


def start_spark(system: System, jars: Sequence[Path], folder: Path) -> SparkSession:
    """A local session on two cores."""
    settings = {**driver_settings(_MACHINE_MB, str(folder)), **_EVERY, "spark.local.dir": f"{folder}/local"}
    if system.jars:
        own = [str(jar) for jar in jars if jar.name.startswith(system.jars)]
        settings["spark.driver.extraClassPath"] = ":".join(own)
    return start_on("local[2]", settings | system.settings())
