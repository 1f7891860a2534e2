"""Opens the Spark session for a lake: the caller's, the active one, or a new one, local or on a cluster."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

import pyspark
from pyspark.sql import SparkSession

from underlay.errors import InvalidRequest, Unsupported
from underlay.spark.start.java_home import cache_folder, find_java_home

OLDEST_SPARK = (4, 0)
_MEMORY_SHARE = 4
_MOST_MEMORY_MB = 8 << 10
_LEAST_MEMORY_MB = 512
_LOCAL = "local[*]"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable that shows that `spark-submit` started the program, with a JVM and its settings."""


def open_session(spark: SparkSession | None = None) -> SparkSession:
    """The caller's session, else the one active in this process, else a new one: local, or as `spark-submit` says.

    Raises Unsupported for Spark before 4.0, Unavailable without Java, InvalidRequest for a session that was stopped.
    """
    check_version(pyspark.__version__)
    found = spark if spark is not None else SparkSession.getActiveSession()
    if found is None and _SUBMITTED in os.environ:
        found = SparkSession.builder.getOrCreate()
    if found is None:
        return start_on(_LOCAL)
    if has_gateway(found) and not is_running(found):
        raise InvalidRequest("the Spark session was stopped", hint="Start another one, or omit the argument.")
    check_version(found.version)
    return found


def has_gateway(spark: SparkSession) -> bool:
    """Whether Python can reach the session's JVM. Over Spark Connect it cannot."""
    return hasattr(spark, "_jsparkSession")


def is_running(spark: SparkSession) -> bool:
    """Whether the application of a session with a gateway is still running."""
    found: object = spark.sparkContext._jsc
    return found is not None


def check_version(version: str) -> None:
    """Raises Unsupported for a Spark that is too old."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < OLDEST_SPARK:
        raise Unsupported(
            "this Spark is too old", expected="4.0 or later", found=version, hint="Run \"pip install 'pyspark>=4.0'\"."
        )


def start_on(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A new session on a master: `local[*]`, or a cluster's, such as `spark://host:7077`, for which this process is the
    driver. `settings` override those of `driver_settings`. If this process has a session already, it gets the new
    settings where Spark allows it, and keeps its master.

    Sets this process's JAVA_HOME, and PYSPARK_PYTHON unless it is set: there is no other way to tell Spark which Java
    to start, and that workers must run the Python that has Underlay. Also sets LOG4J_CONFIGURATION_FILE unless it is
    set: nothing else silences Spark while it starts.
    """
    os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("underlay")
    chosen = local_settings if is_local(master) else driver_settings
    for name, value in {**chosen(_machine_mb(), temporary_folder()), **(settings or {})}.items():
        builder = builder.config(name, value)
    _be_quiet()
    return builder.getOrCreate()


def _be_quiet() -> None:
    """Log only errors in the JVM, and none of PySpark's own records of refused statements, which are raised anyway."""
    os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(Path(__file__).with_name("log4j2.properties")))
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own process."""
    return master == "local" or master.startswith("local[")


def local_settings(machine_mb: int, folder: str) -> dict[str, str]:
    """The settings of a session that runs only on this machine, and that no other machine can reach."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**driver_settings(machine_mb, folder), **loopback}


def driver_settings(machine_mb: int, folder: str) -> dict[str, str]:
    """A quarter of the machine's memory, UTC, an in-memory catalog, no web page; its own files are in `folder`."""
    memory_mb = max(min(machine_mb // _MEMORY_SHARE, _MOST_MEMORY_MB), _LEAST_MEMORY_MB)
    return {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.datetime.java8API.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def temporary_folder() -> str:
    """A new folder for what Spark writes on this machine; it is deleted when this process ends."""
    found = mkdtemp(prefix="underlay-spark-")
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def _machine_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
