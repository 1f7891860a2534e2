"""A driver in a process of its own that streams into a table, and is killed by signal 9 at one step of one epoch.

`python -m tests.spark.own_jvm.killed_stream FOLDER STEP EPOCH`, where a step is `staged`, before the epoch's commit, or
`committed`, after it and before Spark notes that the epoch is done.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import underlay as ul
from tests.spark.streams import Feed, run, sink_of
from underlay.spark.api.data_source import UnderlayDataSource
from underlay.spark.start.java_home import cache_folder, find_java_home
from underlay.spark.start.open_session import local_settings
from underlay.spark.stream.write import StreamWriter
from underlay.spark.tasks.store_address import StoreAddress

NAME = "some.table"


def run_and_kill(folder: Path, step: str, epoch: int) -> int:
    """Stream what is in `folder` until the driver is killed; how its process ended."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.spark.own_jvm.killed_stream", str(folder), step, str(epoch)]
    with (folder / f"errors of {step}").open("w") as errors:
        return subprocess.run(command, env=environment, stderr=errors, timeout=800, check=False).returncode


class KillingSource(UnderlayDataSource):
    """The data source, whose commit of one epoch kills the driver, and itself with it."""

    victims: ClassVar[tuple[int, ...]] = ()
    step: ClassVar[str] = ""
    epoch: ClassVar[int] = -1

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802  # Spark's name
        return KillingWriter(self, schema, is_complete=overwrite)


class KillingWriter(StreamWriter):
    def __init__(self, source: KillingSource, schema: StructType, *, is_complete: bool) -> None:
        super().__init__(source.settings, schema, is_complete=is_complete)
        self.source = source

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        self._kill_at("staged", batchId)
        super().commit(messages, batchId)
        self._kill_at("committed", batchId)

    def _kill_at(self, step: str, epoch: int) -> None:
        if (step, epoch) == (self.source.step, self.source.epoch):
            for process in (*self.source.victims, os.getpid()):
                os.kill(process, signal.SIGKILL)


def _stream(folder: Path, step: str, epoch: int) -> None:
    os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
    builder = SparkSession.builder.master("local[2]")
    for name, value in local_settings(2048, str(folder / "spark")).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    java = spark.sparkContext._gateway.proc.pid

    class Source(KillingSource):  # made here, so that it is sent to workers with what it knows
        known = StoreAddress(url=str(folder / "lake"))
        victims = (os.getpid(), java)

    Source.step, Source.epoch = step, epoch
    spark.dataSource.register(Source)
    table = ul.connect(folder / "lake").table(NAME)
    run(sink_of(Feed(folder / "in").stream(spark), table, folder / "checkpoint"))


if __name__ == "__main__":
    _stream(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
