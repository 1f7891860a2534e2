"""Writes the record that every run of an ingest leaves, however it ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf

from underlay.errors import UnderlayError
from underlay.index.operation import Operation
from underlay.ingest.run.summary import SourceFailure, Summary
from underlay.ingest.work.settings import Settings
from underlay.table.coordination.run_record import MOST_VERSIONS, REASON_CHARACTERS, RunRecord, State, encode_record
from underlay.table.open_table import OpenTable
from underlay.table.versions.environment import Surroundings, uuid7

_ASKED_CHARACTERS = 500
_SHOWN = 3


Keep = Callable[[OpenTable, Summary, BaseException | None], None]
"""Called with an ingest's summary, and with the error that ended it if any, before its intent is deleted."""


def keep_record(table: OpenTable, summary: Summary, error: BaseException | None = None) -> None:
    """Leave a record of an ingest. One request.

    A record that cannot be put does not fail the ingest: its work is done, and nothing depends on the record.
    """
    with suppress(UnderlayError):
        put_record(table, make_record(summary, error, table.lake.surroundings))


def put_record(table: OpenTable, record: RunRecord) -> None:
    """Put a record into the active revision, replacing an older one of the same run. Raises Unavailable."""
    revision = table.active(inf)
    revision.store.put(revision.keys.record(record.job), encode_record(record))
    registry = revision.surroundings.registry
    if registry is not None:
        registry.saw_run(revision.keys, revision.id, record.job)


def make_record(summary: Summary, error: BaseException | None, surroundings: Surroundings) -> RunRecord:
    """The record of an ingest that ends now."""
    state, reason = state_of(summary, error)
    return RunRecord(
        job=summary.run or new_job(),
        owner=summary.owner or new_owner(surroundings),
        operation=Operation.INGEST.value,
        state=state,
        started_us=summary.started_us,
        ended_us=surroundings.now_us(),
        duration_us=round(summary.seconds * 1_000_000),
        asked=summary.asked,
        workers=summary.workers,
        source_count=summary.ingested,
        known_count=summary.known,
        skipped_count=summary.skipped,
        failed_count=summary.failed + summary.failed_before,
        claimed_count=summary.claimed,
        replaced_count=summary.replaced,
        row_count=summary.row_count,
        rejected_count=summary.rejected_count,
        source_bytes=summary.source_bytes,
        versions=summary.versions[-MOST_VERSIONS:],
        version_count=len(summary.versions),
        reason=None if reason is None else reason[:REASON_CHARACTERS],
    )


def state_of(summary: Summary, error: BaseException | None) -> tuple[State, str | None]:
    """How it ended, and why. Being stopped by a person is not a failure; sources that could not be read are."""
    if isinstance(error, UnderlayError):
        return "failed", str(error)
    if isinstance(error, Exception):
        return "failed", f"{type(error).__name__}: {error}"
    reason = show_failures(summary.failures) if summary.failures else None
    if error is not None:
        return "stopped", reason
    if summary.failed or summary.changed:
        return "failed", reason
    return "done" if summary.ingested else "nothing", reason


def show_failures(failures: tuple[SourceFailure, ...]) -> str:
    """The first sources that could not be read, with their reasons."""
    shown = "; ".join(f"{one.uri}: {one.reason}" for one in failures[:_SHOWN])
    return shown if len(failures) <= _SHOWN else f"{shown}; and {len(failures) - _SHOWN} more sources"


def asked_for(settings: Settings) -> str:
    """The patterns of the sources, cut to the length that a record allows."""
    text = " ".join((*settings.sources, *settings.again))
    return text if len(text) <= _ASKED_CHARACTERS else f"{text[: _ASKED_CHARACTERS - 1]}…"


def new_job() -> str:
    """A name for a run without an intent."""
    return f"{Operation.INGEST}-{uuid7()}"


def new_owner(surroundings: Surroundings) -> str:
    """Host, process, and a random part."""
    return f"{surroundings.writer}:{surroundings.new_commit_id()[:16]}"
