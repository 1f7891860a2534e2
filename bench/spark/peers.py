"""Delta Lake and Iceberg as `bench.spark.systems` has them: of the very same files, tuned alike."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.spark.rows import SCHEMA, Dataset, link_files


class Peer:
    """Where the tables of a peer lie, see System; it appends in one way."""

    ways: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, folder: Path, source: Path, written: Path) -> None:
        self._folder = folder
        self._source = source
        self._written = written


class Delta(Peer):
    """Delta Lake by path, with two snapshot partitions: its 50 cost it seconds on two cores."""

    jars: ClassVar[str] = "io.delta_"

    def settings(self) -> dict[str, str]:
        """See System."""
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def adopt(self, spark: SparkSession, dataset: Dataset) -> None:
        """See System."""
        folder = self._folder / dataset.folder
        link_files(sorted((self._source / dataset.folder / "files").iterdir()), folder)
        spark.sql(f"CONVERT TO DELTA parquet.`{folder}`")

    def open(self, spark: SparkSession, dataset: Dataset) -> str:
        """See System."""
        return f"delta.`{self._folder / dataset.folder}`"

    def create(self, spark: SparkSession, name: str, columns: pa.Schema = SCHEMA) -> None:
        """See System."""
        _no_rows(spark, columns).write.format("delta").save(str(self._written / name))

    def append(self, frame: DataFrame, name: str, way: str) -> None:
        """See System."""
        frame.write.format("delta").mode("append").save(str(self._written / name))

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """See System."""
        return spark.read.format("delta").load(str(self._written / name))

    def remove(self, spark: SparkSession, name: str) -> None:
        """See System."""
        shutil.rmtree(self._written / name)

    def name_in_sql(self, name: str) -> str:
        """See System."""
        return f"delta.`{self._written / name}`"


class Iceberg(Peer):
    """Iceberg in a catalog that is a folder."""

    jars: ClassVar[str] = "org.apache.iceberg_"

    def settings(self) -> dict[str, str]:
        """See System."""
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(self._folder),
            "spark.sql.catalog.new": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.new.type": "hadoop",
            "spark.sql.catalog.new.warehouse": str(self._written),
        }

    def adopt(self, spark: SparkSession, dataset: Dataset) -> None:
        """See System."""
        name = f"bench.{self._short(dataset)}"
        spark.sql(f"DROP TABLE IF EXISTS ice.{name}")
        _no_rows(spark).writeTo(f"ice.{name}").using("iceberg").create()
        files = self._source / dataset.folder / "files"
        spark.sql(f"CALL ice.system.add_files(table => '{name}', source_table => '`parquet`.`{files}`')")

    def open(self, spark: SparkSession, dataset: Dataset) -> str:
        """See System."""
        return f"ice.bench.{self._short(dataset)}"

    def create(self, spark: SparkSession, name: str, columns: pa.Schema = SCHEMA) -> None:
        """See System."""
        made = _no_rows(spark, columns).writeTo(f"new.bench.{name}").using("iceberg")
        made.tableProperty("write.parquet.compression-codec", "zstd").tableProperty(
            "write.parquet.compression-level", "1"
        ).create()

    def append(self, frame: DataFrame, name: str, way: str) -> None:
        """See System."""
        frame.writeTo(f"new.bench.{name}").append()

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """See System."""
        return spark.table(f"new.bench.{name}")

    def remove(self, spark: SparkSession, name: str) -> None:
        """See System."""
        spark.sql(f"DROP TABLE new.bench.{name} PURGE")

    def name_in_sql(self, name: str) -> str:
        """See System."""
        return f"new.bench.{name}"

    @staticmethod
    def _short(dataset: Dataset) -> str:
        return dataset.folder.replace("-", "_")


def _no_rows(spark: SparkSession, columns: pa.Schema = SCHEMA) -> DataFrame:
    return spark.createDataFrame(columns.empty_table())
