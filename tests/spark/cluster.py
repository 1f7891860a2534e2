"""A standalone Spark cluster on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Thread

import pyspark
from pyspark.sql import SparkSession

from underlay.spark.java import cache_folder, find_java_home
from underlay.spark.start import local_settings, open_session

MASTER = "UNDERLAY_TEST_MASTER"
"""The environment variable with the master that tests run on; without it they run in a local session."""
WORKERS = 2
WORKER_MB = 1024
_HOME = Path(pyspark.__file__).parent
_ROOT = Path(__file__).parents[2]
_DAEMON = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dspark.worker.cleanup.enabled=false")
_EXECUTOR = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")
_END_SECONDS = 20


@contextmanager
def running_cluster() -> Iterator[str]:
    """The URL of a cluster that has all its workers, and is gone afterwards with everything that it started."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="underlay-cluster-", ignore_cleanup_errors=True))
        master = stack.enter_context(_running("master.Master"))
        url = master.wait_for(_STARTED)
        place = ("--cores", "1", "--memory", f"{WORKER_MB}m", "--work-dir", folder, url)
        workers = [stack.enter_context(_running("worker.Worker", *place)) for _ in range(WORKERS)]
        for worker in workers:
            worker.wait_for(_REGISTERED)
        yield url


def open_on_cluster(master: str) -> SparkSession:
    """A session as `open_session` starts one, but for its master and its executors."""
    os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("underlay")
    settings = {
        **local_settings(4 * WORKER_MB, mkdtemp(prefix="underlay-spark-")),
        "spark.cores.max": str(WORKERS),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{WORKER_MB}m",
        "spark.executor.extraJavaOptions": _EXECUTOR,
        "spark.executorEnv.PYTHONPATH": str(_ROOT),  # functions of tests are pickled by name
        "spark.executorEnv.UNDERLAY_REGISTRY": "none",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return open_session(session)


class _Daemon:
    """A running daemon; what it says is read as it comes, and the end of it kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: deque[str] = deque(maxlen=40)

    def wait_for(self, wanted: re.Pattern[str]) -> str:
        """The first group of the first line that matches, or the match."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)
            if found := wanted.search(line):
                Thread(target=self._said.extend, args=(self.process.stderr,), daemon=True).start()
                return found[found.re.groups]
        raise AssertionError(f"{self.process.args!r} ended: {''.join(self._said)}")


@contextmanager
def _running(name: str, *arguments: str) -> Iterator[_Daemon]:
    home = find_java_home(os.environ, cache_folder(os.environ))
    command = [str(home / "bin" / "java"), *_DAEMON, "-cp", f"{_HOME}/jars/*", f"org.apache.spark.deploy.{name}"]
    place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    settings = {"JAVA_HOME": str(home), "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **settings, "SPARK_SCALA_VERSION": "2.13"}  # else it looks for a build of Spark
    process = subprocess.Popen(
        [*command, *place, *arguments], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield _Daemon(process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """A worker ends its executors when it is asked to end; what is left of the group is killed."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
