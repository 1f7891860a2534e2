"""A standalone Spark cluster on loopback: a master and two workers, each a process and a host of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pyspark
from pyspark.sql import SparkSession

from underlay.spark.start.java_home import cache_folder, find_java_home
from underlay.spark.start.open_session import open_session, start_on

MASTER = "UNDERLAY_TEST_MASTER"
"""The environment variable with the master that tests run on; without it they run in a local session."""
HOSTS = ("127.0.0.1", "127.0.0.2")
"""The workers' hosts: both are this machine."""
WORKER_MB = 1024
_HOME = Path(pyspark.__file__).parent
_ROOT = Path(__file__).parents[3]
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
        master = stack.enter_context(_running("master.Master", HOSTS[0]))
        url = master.wait_for(_STARTED)
        place = ("--cores", "1", "--memory", f"{WORKER_MB}m", "--work-dir", folder, url)
        workers = [stack.enter_context(_running("worker.Worker", host, *place)) for host in HOSTS]
        for worker in workers:
            worker.wait_for(_REGISTERED)
        yield url


def open_on_cluster(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session of which the driver is this process."""
    every = {
        "spark.driver.memory": f"{WORKER_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.cores.max": str(len(HOSTS)),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{WORKER_MB}m",
        "spark.executor.extraJavaOptions": _EXECUTOR,
        "spark.executorEnv.PYTHONPATH": str(_ROOT),  # functions of tests are pickled by name
        "spark.executorEnv.UNDERLAY_REGISTRY": "none",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
        "spark.locality.wait": "15s",  # else a slow host's tasks go to another
        **(settings or {}),
    }
    return open_session(start_on(master, every))


class _Daemon:
    """A running daemon; what it says is read as it comes, and the end of it kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: deque[str] = deque(maxlen=40)
        self._listening: Thread | None = None

    def wait_for(self, wanted: re.Pattern[str]) -> str:
        """The first group of the first line that matches, or the match."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)
            if found := wanted.search(line):
                self._listening = Thread(target=self._said.extend, args=(self.process.stderr,), daemon=True)
                self._listening.start()
                return found[found.re.groups]
        raise AssertionError(f"{self.process.args!r} ended: {''.join(self._said)}")

    def close(self) -> None:
        """Read what an ended process said to its end."""
        if self._listening is not None:
            self._listening.join()
        if self.process.stderr is not None:
            self.process.stderr.close()


@contextmanager
def _running(name: str, host: str, *arguments: str) -> Iterator[_Daemon]:
    home = find_java_home(os.environ, cache_folder(os.environ))
    command = [str(home / "bin" / "java"), *_DAEMON, "-cp", f"{_HOME}/jars/*", f"org.apache.spark.deploy.{name}"]
    place = ["--host", host, "--port", "0", "--webui-port", "0"]
    settings = {"JAVA_HOME": str(home), "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": host}
    environment = {**os.environ, **settings, "SPARK_SCALA_VERSION": "2.13"}  # else it looks for a build of Spark
    environment.pop("LOG4J_CONFIGURATION_FILE", None)  # with that of a session in this process it would say nothing
    process = subprocess.Popen(
        [*command, *place, *arguments], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    daemon = _Daemon(process)
    try:
        yield daemon
    finally:
        _end(process)
        daemon.close()


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
