"""A Spark session in a process of its own, which tries tasks four times and does what its standard input says.

It has no pandas, which tables do not need. A line of the input is a scenario, how to write, a table and the first of
its rows; the answer is a line: `done`, or an error's text.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from threading import Thread

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark.api.data_source import register_source
from underlay.spark.api.write import append
from underlay.spark.start.java_home import cache_folder, find_java_home
from underlay.spark.start.open_session import local_settings
from underlay.spark.tasks import collect as small
from underlay.spark.tasks.map_in_arrow import map_in_arrow

ROWS = 1000
Batches = Iterator[pa.RecordBatch]


class FaultySession:
    """The other process. Its tables are those of a lake in `folder`."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "tests.spark.own_jvm.faulty_session", str(folder)]
        make_pipes(folder)
        self._errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment
        )

    def begin(self, scenario: str, way: str, table: str, begin: int) -> None:
        """Have the rows from `begin` written."""
        assert self.process.stdin is not None
        print(scenario, way, table, begin, file=self.process.stdin, flush=True)

    def end(self) -> str:
        """What became of it."""
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().strip()
        if not answer:
            self._errors.seek(0)
            raise AssertionError(f"the other session is gone: {self._errors.read()[-3000:]}")
        return answer

    def run(self, scenario: str, way: str, table: str, begin: int) -> str:
        """Have the rows written, and what became of it."""
        self.begin(scenario, way, table, begin)
        return self.end()

    def close(self) -> None:
        """End the process."""
        self.process.communicate(timeout=240)
        self._errors.close()


def make_pipes(folder: Path) -> None:
    """Those at which a task tells that it has begun, and waits until it may go on."""
    for pipe in ("begun", "go_on"):
        os.mkfifo(folder / pipe)


def _as_it_is(batches: Batches) -> Batches:
    yield from batches


def _fails_once(batches: Batches) -> Batches:
    yield from batches
    if _attempt() == 0:
        raise ValueError("the first attempt fails")


def _killed_once(batches: Batches) -> Batches:
    yield next(batches)
    if _attempt() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    yield from batches


def _fails_always(batches: Batches) -> Batches:
    yield from batches
    if _context().partitionId() == 1:
        raise ValueError("every attempt fails")


def _pausing(folder: str) -> Callable[[Batches], Batches]:
    """The first task tells at one pipe that it has begun, and waits at another one."""

    def pause(batches: Batches) -> Batches:
        yield from batches
        if _context().partitionId() == 0:
            Path(folder, "begun").write_text("begun")
            Path(folder, "go_on").read_text()

    return pause


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _attempt() -> int:
    return _context().attemptNumber()


FUNCTIONS = {"plain": _as_it_is, "fails once": _fails_once, "killed once": _killed_once, "fails always": _fails_always}


def write_rows(spark: SparkSession, lake: Lake, folder: Path, scenario: str, way: str, table: str, begin: int) -> None:
    """Write the rows from `begin`, in two tasks. `folder` has the pipes."""
    frame = spark.range(begin, begin + ROWS, 1, 2)
    if scenario == "cancelled":
        spark.sparkContext.setJobGroup("doomed", "is cancelled", interruptOnCancel=True)
        Thread(target=_cancel_when_begun, args=(spark, folder), daemon=True).start()
    _save(map_in_arrow(frame, FUNCTIONS.get(scenario) or _pausing(str(folder)), frame.schema), lake, way, table)


def _cancel_when_begun(spark: SparkSession, folder: Path) -> None:
    (folder / "begun").read_text()
    spark.sparkContext.cancelJobGroup("doomed")


def _save(frame: DataFrame, lake: Lake, way: str, table: str) -> None:
    if way == "append":
        append(frame, table, lake=lake)
    else:
        frame.write.format("underlay").mode("append").option("lake", lake.url).save(table)


class _NoPandas(MetaPathFinder):
    """Has pandas not be there."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def _serve(folder: Path) -> None:
    sys.meta_path.insert(0, _NoPandas())
    os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
    builder = SparkSession.builder.master("local[2,4]").config("spark.python.task.killTimeout", "100ms")
    for name, value in local_settings(2048, str(folder / "spark")).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    small.SMALL_BYTES = -1
    lake = ul.connect(folder / "lake")
    register_source(spark, lake)
    for line in sys.stdin:
        *scenario, way, table, begin = line.split()
        try:
            write_rows(spark, lake, folder, " ".join(scenario), way, table, int(begin))
            answer = "done"
        except Exception as error:  # noqa: BLE001  # whatever Spark raises is the answer
            answer = " ".join(str(error).split())
        print(answer or "an error", flush=True)
    spark.stop()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
