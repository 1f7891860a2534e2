"""The record that a run of an ingest leaves behind, whoever began it and however it ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an ingest ended: what it did until then, and what stopped it if something did."""

    summary: Summary
    settings: Settings
    workers: str = ""
    """The kind of `Workers`, such as LocalWorkers; empty when there was no work."""
    owner: str | None = None
    """Of the run's intent; None when no run began."""
    error: BaseException | None = None

    @property
    def kind(self) -> str:
        """What did the work: `local`, `spark`."""
        return self.workers.removesuffix("Workers").lower()


Keep = Callable[[OpenTable, Ending], None]
"""What is told how an ingest on a table ended, before its intent goes."""


def keep_record(table: OpenTable, ending: Ending) -> None:
    """Leave a record of an ingest. One request.

    That it could not be put is no failure of the work that was done: then there is none, and nothing depends on it.
    """
    with suppress(UnderlayError):
        put_record(table, make_record(ending, table.lake.surroundings))


def put_record(table: OpenTable, record: RunRecord) -> None:
    """Put a record into the active revision, in the place of an older one of the same run. Raises Unavailable."""
    revision = table.active(inf)
    revision.store.put(revision.keys.record(record.job), encode_record(record))
    registry = revision.surroundings.registry
    if registry is not None:
        registry.saw_run(revision.keys, revision.id, record.job)


def make_record(ending: Ending, surroundings: Surroundings) -> RunRecord:
    """The record of an ingest that ends now."""
    summary = ending.summary
    state, reason = state_of(ending)
    return RunRecord(
        job=summary.run or new_job(),
        owner=ending.owner or new_owner(surroundings),
        operation=Operation.INGEST.value,
        state=state,
        started_us=summary.started_us,
        ended_us=surroundings.now_us(),
        duration_us=round(summary.seconds * 1_000_000),
        asked=asked_for(ending.settings),
        workers=ending.kind,
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


def state_of(ending: Ending) -> tuple[State, str | None]:
    """How it ended, and why. A person who stops it is no failure; sources that could not be read are."""
    error, summary = ending.error, ending.summary
    if isinstance(error, UnderlayError):
        return "failed", str(error)
    if isinstance(error, Exception):
        return "failed", f"{type(error).__name__}: {error}"
    reason = show_failures(summary.failures) if summary.failures else None
    if error is not None:
        return "stopped", reason
    if summary.failed:
        return "failed", reason
    return "done" if summary.ingested else "nothing", reason


def show_failures(failures: tuple[SourceFailure, ...]) -> str:
    """The first few sources that could not be read, with their reasons."""
    shown = "; ".join(f"{one.uri}: {one.reason}" for one in failures[:_SHOWN])
    return shown if len(failures) <= _SHOWN else f"{shown}; and {len(failures) - _SHOWN} more sources"


def asked_for(settings: Settings) -> str:
    """The patterns of the sources, as far as there is room."""
    text = " ".join(settings.sources)
    return text if len(text) <= _ASKED_CHARACTERS else f"{text[: _ASKED_CHARACTERS - 1]}…"


def new_job() -> str:
    """A name as runs have it, for one that needed no intent."""
    return f"{Operation.INGEST}-{uuid7()}"


def new_owner(surroundings: Surroundings) -> str:
    """Host, process and which undertaking of it."""
    return f"{surroundings.writer}:{surroundings.new_commit_id()[:16]}"
