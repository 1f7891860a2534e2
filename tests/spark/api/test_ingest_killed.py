"""A driver that is killed while its tasks ingest, and the same call at once by another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.ingest_sources import COLUMNS, ROWS, check_once, write_sources
from underlay.ingest.work.progress import NoProgress
from underlay.spark import ingest
from underlay.spark.start.open_session import start_on
from underlay.spark.tasks import collect as small

NAME = "some.rows"
COUNT = 8
BATCH = 3


class _Killed(NoProgress):
    """Ends the process when a part of the second batch was read, and the first is committed."""

    def __init__(self) -> None:
        self._is_committed = False

    def committed(self, version: int) -> None:
        self._is_committed = True

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        if self._is_committed and rows:
            os.kill(os.getpid(), signal.SIGKILL)


def _ingest_until_killed(folder: Path) -> None:
    lake = ul.connect(folder / "lake")
    small.SMALL_SOURCE_BYTES = -1
    ingest(NAME, f"{folder}/in/*", lake=lake, spark=start_on("local[2]"), batch_sources=BATCH, progress=_Killed())


@pytest.mark.own_jvm
@pytest.mark.local_only
def test_driver_killed_between_commits_is_made_good_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_sources(tmp_path / "in", COUNT)
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table(NAME, COLUMNS)
    command = [sys.executable, "-m", "tests.spark.api.test_ingest_killed", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert table.count() == BATCH * ROWS
    monkeypatch.setattr(small, "SMALL_SOURCE_BYTES", -1)
    done = ingest(table, f"{tmp_path}/in/*", spark=spark)
    assert done.ingested + done.known == COUNT
    assert done.known == BATCH
    check_once(lake, NAME, COUNT)


if __name__ == "__main__":
    _ingest_until_killed(Path(sys.argv[1]))
