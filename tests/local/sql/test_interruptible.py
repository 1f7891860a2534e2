from __future__ import annotations

import signal
import subprocess
import sys
from threading import Event, Thread, current_thread, main_thread

import pytest

from underlay.local.sql.interruptible import Worker

LONG_QUERY = """
import sys
import pyarrow as pa
import underlay
from underlay.scan.query import Query

lake = underlay.connect(sys.argv[1])
rows = pa.table({"g": range(100_000)})
lake.create_table("a.t", data=rows)
lake.create_table("a.not_pushed", data=rows.append_column("at_ns", rows["g"].cast(pa.timestamp("ns", "UTC"))))
batches = Query.batches

def told(query):
    for batch in batches(query):
        print("started", flush=True)
        yield batch

Query.batches = told
try:
    lake.sql(sys.argv[2]).fetchall()
except KeyboardInterrupt:
    print(lake.sql("select 'still here'").fetchall(), flush=True)
    raise
"""

EARLY_SIGNAL = """
import signal, threading
from underlay.local.sql.interruptible import Worker

def start(thread, begin=threading.Thread.start):
    threading.Thread.start = begin
    begin(thread)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

worker = Worker()
threading.Thread.start = start
try:
    worker.call(lambda: None, lambda: None)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()


def unwanted() -> None:
    raise AssertionError("interrupted")


def test_calls_of_the_main_thread_are_made_by_one_other_thread(worker):
    first, second = (worker.call(current_thread, unwanted) for _ in range(2))
    assert first is second
    assert first is not main_thread()


def test_calls_of_other_threads_are_made_by_themselves(worker):
    found: list[Thread] = []
    thread = Thread(target=lambda: found.append(worker.call(current_thread, unwanted)))
    thread.start()
    thread.join()
    assert found == [thread]


@pytest.mark.parametrize("kind", [StopIteration, ValueError])
def test_an_error_comes_out_as_itself(worker, kind):
    def fail() -> None:
        raise kind("no")

    with pytest.raises(kind, match="no"):
        worker.call(fail, unwanted)


def test_a_signal_interrupts_the_call_and_waits_for_its_end(worker):
    interrupted, ended = Event(), Event()

    def work() -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        interrupted.wait()
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        worker.call(work, interrupted.set)
    assert ended.is_set()
    assert worker.call(lambda: 7, unwanted) == 7


@pytest.mark.parametrize("wanted", ["count(*)", "x.g", "count(x.at_ns)"])
def test_ctrl_c_ends_a_long_query(tmp_path, wanted):
    table = "a.not_pushed" if "at_ns" in wanted else "a.t"
    query = f"select {wanted} from {table} x, {table} y, {table} z where x.g + y.g + z.g = -3"
    command = [sys.executable, "-c", LONG_QUERY, str(tmp_path), query]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=240)
        finally:
            process.kill()
    assert "still here" in out
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


def test_ctrl_c_while_the_thread_starts_leaves_no_thread_that_the_interpreter_waits_for():
    done = subprocess.run([sys.executable, "-c", EARLY_SIGNAL], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout == "interrupted\n"
