"""What needs a process of its own: other settings of Spark, Ctrl-C, a session that is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.local_only, pytest.mark.own_jvm]

PROGRAM = """
import os
import signal
import sys
import threading
import time
from functools import reduce
from pathlib import Path

import underlay as ul
from underlay.errors import InvalidRequest
from underlay.spark import append, session
from underlay.spark.native import write as native_write, write_jobs
from underlay.spark.tasks import collect as small
from underlay.spark.jvm.gateway import GATEWAY_ERRORS, call

write_jobs._MOST_SECONDS = 600  # a busy machine plans for longer than users are kept waiting
lake = ul.connect(sys.argv[1])
table = lake.create_table("some.rows", "id bigint, text string")
spark = session(lake)
frame = spark.range(0, 40, 1, 4).selectExpr("id", "repeat(cast(id as string), 200000) as text")
assert small.is_small(frame)
assert small.collect_small(frame) is None
print("huge rows:", append(frame, table).row_count, table.count())


def call_and_tell(target, method, *arguments):
    if method == "parquet":
        told.set()
    return call(target, method, *arguments)


def interrupt():
    told.wait()
    time.sleep(0.1)  # Spark plans 150 scans longer than that
    running.append(len(spark.sparkContext.statusTracker().getActiveJobsIds()))
    os.kill(os.getpid(), signal.SIGINT)


told = threading.Event()
native_write.call = call_and_tell
small.SMALL_BYTES = -1
many = reduce(lambda one, other: one.union(other), [spark.range(5).selectExpr("id", "'x' as text")] * 150)
running = []
while len(running) < 5 and 0 not in running:  # a slow machine may come too late
    told.clear()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        append(many, table)
    except KeyboardInterrupt:
        print("interrupted")
print("running:", min(running))
spark.range(2).write.format("underlay").mode("append").save("some.rows")
print("next:", append(spark.range(3).selectExpr("id"), table).row_count, table.count())
print("came to its end:", [str(path) for path in Path(sys.argv[1]).rglob("_staging/*/*.parquet")], list(lake.jobs()))


def stop():
    told.wait()
    time.sleep(1)
    spark.stop()


told.clear()
threading.Thread(target=stop, daemon=True).start()
try:
    slept = "concat(ifnull(java_method('java.lang.Thread', 'sleep', 300L), ''), id) as text"
    append(spark.range(0, 200, 1, 200).selectExpr(slept), table)
except GATEWAY_ERRORS:
    print("stopped:", table.count())
try:
    session(lake, spark)
except InvalidRequest as error:
    print(error)
"""


def test_huge_rows_are_written_by_tasks_ctrl_c_ends_what_is_only_planned_and_a_stopped_session_is_refused(
    tmp_path: Path,
):
    settings = {"PYSPARK_SUBMIT_ARGS": "--conf spark.driver.maxResultSize=1m pyspark-shell"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert list(dict.fromkeys(ran.stdout.splitlines())) == [
        "huge rows: 40 40",
        "interrupted",
        "running: 0",
        "next: 3 45",
        "came to its end: [] []",
        "stopped: 45",
        "the Spark session was stopped. Start another one, or omit the argument.",
    ]
