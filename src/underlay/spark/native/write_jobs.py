"""Ensures that no Spark job goes on writing after the call that started it, however the call ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from pyspark.sql import SparkSession

from underlay.spark.jvm.gateway import (
    GATEWAY_ERRORS,
    JavaObject,
    call,
    call_number,
    call_numbers,
    call_text,
    gateway_of,
    is_called,
    java_session,
)
from underlay.spark.jvm.plan_nodes import items_of

_SESSIONS = "org.apache.spark.sql.classic.SparkSession"
_LOOK_SECONDS = 0.1
_MOST_SECONDS = 30


@contextmanager
def ended_with_this_call(spark: SparkSession, job: str) -> Iterator[None]:
    """If this block ends with an error, no task of a job that began in it is left: such a task would write into a
    deleted folder.

    The jobs are cancelled when this thread is interrupted, or the session's jobs are; otherwise jobs of a copied
    session would go on. The thread's active session, where Spark looks for Python sources, stays active after an
    interrupt too, though the thread then has another connection to the JVM.
    """
    context, tags = _context(spark), [f"underlay-{job}", call_text(java_session(spark), "sessionJobTag")]
    gateway = gateway_of(spark)
    working = gateway.static("java.lang.Thread", "currentThread")  # the JVM has a thread for each of ours
    active = gateway.static(_SESSIONS, "getActiveSession")
    for tag in tags:
        call(context, "addJobTag", tag)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        cancelling = Thread(target=_cancel, args=(spark, tags[0], working), name="underlay-cancel", daemon=True)
        cancelling.start()  # an interrupted call leaves this thread's connection to the JVM unusable
        cancelling.join(_MOST_SECONDS)
        with suppress(*GATEWAY_ERRORS, RuntimeError):
            for session in items_of(call(active, "toList")):
                gateway.static(_SESSIONS, "setActiveSession", session)
        raise
    except Exception:
        _wait_for_tasks(spark, tags[0])
        raise
    finally:
        with suppress(*GATEWAY_ERRORS, RuntimeError):
            for tag in tags:
                call(context, "removeJobTag", tag)


def _cancel(spark: SparkSession, tag: str, working: JavaObject) -> None:
    """Cancel jobs, and wait until they have ended. For a job that Spark is still planning, wait until its thread has
    finished this thread's call.
    """
    context = _context(spark)
    tracker = call(context, "statusTracker")
    until = time.monotonic() + _MOST_SECONDS
    with suppress(*GATEWAY_ERRORS):
        while time.monotonic() < until:
            call(context, "cancelJobsWithTag", tag)
            active = set(call_numbers(tracker, "getActiveJobIds")) & set(call_numbers(tracker, "getJobIdsForTag", tag))
            if not active and not is_called(working):
                break
            time.sleep(_LOOK_SECONDS)
        _wait_for_tasks(spark, tag)


def _wait_for_tasks(spark: SparkSession, tag: str) -> None:
    """Wait for the tasks of failed or cancelled jobs: each goes on until it notices."""
    with suppress(*GATEWAY_ERRORS):
        context, until = _context(spark), time.monotonic() + _MOST_SECONDS
        call(call(context, "listenerBus"), "waitUntilEmpty", 1000 * _MOST_SECONDS)  # it informs the tracker
        tracker = call(context, "statusTracker")
        while _has_tasks(tracker, tag) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)


def _has_tasks(tracker: JavaObject, tag: str) -> bool:
    numbers = call_numbers(tracker, "getJobIdsForTag", tag)
    jobs = [job for number in numbers for job in _found(tracker, "getJobInfo", number)]
    stages = {stage for job in jobs for stage in call_numbers(job, "stageIds")}
    known = [stage for number in stages for stage in _found(tracker, "getStageInfo", number)]
    return any(call_number(stage, "numActiveTasks") > 0 for stage in known)


def _found(tracker: JavaObject, method: str, number: int) -> Iterator[JavaObject]:
    """What the tracker knows about a job or stage, if anything."""
    yield from items_of(call(call(tracker, method, number), "toList"))


def _context(spark: SparkSession) -> JavaObject:
    """Spark's own context: PySpark's has no tracker of tags, and raises other errors once it was stopped."""
    return call(java_session(spark), "sparkContext")
