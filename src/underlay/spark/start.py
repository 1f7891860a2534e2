"""Which Spark session a lake is read with: the caller's, the active one, or a new one on this machine."""

from __future__ import annotations

import os
import sys
from tempfile import mkdtemp

import pyspark
from pyspark.sql import SparkSession

from underlay.errors import Unsupported
from underlay.spark.java import cache_folder, find_java_home

OLDEST_SPARK = (4, 0)
_MEMORY_SHARE = 4
_MOST_MEMORY_MB = 8 << 10
_LEAST_MEMORY_MB = 512


def open_session(spark: SparkSession | None = None) -> SparkSession:
    """The caller's session, else the one that is active in this process, else a new local one.

    Raises Unsupported for Spark before 4.0, Unavailable without a Java.
    """
    check_version(pyspark.__version__)
    found = spark if spark is not None else SparkSession.getActiveSession()
    if found is None:
        return start_local()
    check_version(found.version)
    return found


def has_gateway(spark: SparkSession) -> bool:
    """Whether Python reaches the session's JVM. Over Spark Connect it does not."""
    return hasattr(spark, "_jsparkSession")


def is_running(spark: SparkSession) -> bool:
    """Whether the application of a session that has a gateway was not stopped."""
    found: object = spark.sparkContext._jsc
    return found is not None


def check_version(version: str) -> None:
    """Raises Unsupported for a Spark that is too old."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < OLDEST_SPARK:
        raise Unsupported(
            "this Spark is too old", expected="4.0 or later", found=version, hint="Run \"pip install 'pyspark>=4.0'\"."
        )


def start_local() -> SparkSession:
    """A session in this process: all cores, a quarter of the memory, UTC, an in-memory catalog, no web page.

    Sets JAVA_HOME of this process, and PYSPARK_PYTHON unless it is set: there is no other way to tell Spark which Java
    to start, and that its workers run the Python that has Underlay.
    """
    os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("underlay")
    for name, value in local_settings(_machine_mb(), mkdtemp(prefix="underlay-spark-")).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def local_settings(machine_mb: int, folder: str) -> dict[str, str]:
    """The settings of a local session on a machine with so much memory, which keeps its own files in `folder`."""
    memory_mb = max(min(machine_mb // _MEMORY_SHARE, _MOST_MEMORY_MB), _LEAST_MEMORY_MB)
    return {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def _machine_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
