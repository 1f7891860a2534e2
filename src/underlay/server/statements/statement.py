"""One statement of a client, from the request until it is forgotten."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from time import monotonic

from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem
from underlay.server.statements.process import WorkerProcess
from underlay.server.statements.request import StatementRequest
from underlay.server.statements.statement_queue import Ticket
from underlay.server.worker.messages import Message


class StatementState(Enum):
    """The state of a statement."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


_ENDED = (StatementState.FINISHED, StatementState.FAILED, StatementState.CANCELLED)


def new_id() -> str:
    """A name that nobody can guess."""
    return f"st_{secrets.token_urlsafe(18)}"


@dataclass(slots=True, kw_only=True)
class RunStatement:
    """A statement that was sent, with its state. Only the server's event loop changes it."""

    request: StatementRequest
    owner: AccessToken
    kind: str
    """The endpoint, such as POST /v1/sql."""
    id: str = field(default_factory=new_id)
    state: StatementState = StatementState.QUEUED
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    columns: list[dict[str, object]] | None = None
    versions: dict[str, int] = field(default_factory=dict)
    etag: str | None = None
    is_change: bool = False
    is_not_modified: bool = False
    rows: int = 0
    bytes: int = 0
    is_truncated: bool = False
    beyond: list[str] = field(default_factory=list)
    engine: str = "duckdb"
    engine_reason: str | None = None
    progress: Mapping[str, int] = field(default_factory=dict)
    """Counts of its scans while it runs."""
    sums: Mapping[str, int] = field(default_factory=dict)
    """Counts of its scans after it ended."""
    plans: list[dict[str, object]] | None = None
    problem: Problem | None = None
    spool: Path | None = None
    queued_ms: float = 0.0
    plan_ms: float = 0.0
    run_ms: float = 0.0
    touched: float = field(default_factory=monotonic)
    ended_at: float | None = None
    stopped_by: Problem | None = None
    """Why the server stopped it."""
    stopped_at: float | None = None
    ticket: Ticket | None = None
    worker: WorkerProcess | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_ended(self) -> bool:
        """Whether the outcome is known."""
        return self.state in _ENDED

    def stop(self, problem: Problem, grace_seconds: float) -> None:
        """End the statement in any state; `problem` is its outcome, unless it finished already."""
        if self.has_ended or self.stopped_by is not None:
            return
        self.stopped_by, self.stopped_at = problem, monotonic()
        self.stopping.set()
        if self.worker is not None:
            self.worker.interrupt(grace_seconds)
        elif self.ticket is not None:
            self.ticket.refuse(problem)

    def take(self, message: Message) -> None:
        """Take over what the worker reports."""
        match message["type"]:
            case "begun":
                self.columns = message["columns"]
                self.versions = message["versions"]
                self.etag = message["etag"]
                self.is_change = message["is_change"]
                self.is_not_modified = message["is_not_modified"]
                self.plan_ms = message["plan_ms"]
                self.engine = message.get("engine", self.engine)
                self.engine_reason = message.get("engine_reason")
                self.begun.set()
            case "spark_wanted":
                self.engine, self.engine_reason = "spark", message["engine_reason"]
            case "progress":
                self.rows, self.bytes = message["rows"], message["bytes"]
                self.progress = message["scans"]
            case "end":
                self.rows, self.bytes = message["rows"], message["bytes"]
                self.sums = message.get("sums", {})
                self.plans = message.get("plans")
                self.is_truncated = message.get("is_truncated", False)
                self.beyond = message.get("beyond_2_53", [])
            case "error":
                self.problem = Problem.from_json(message["problem"])

    def end(self, problem: Problem | None = None) -> None:
        """Note the end: cancelled, if somebody asked for that and the statement did not finish before."""
        if self.has_ended:
            return
        self.problem = problem or self.problem
        if self.problem is not None and self.stopped_by is not None:
            self.problem = self.stopped_by
        if self.problem is None:
            self.state = StatementState.FINISHED
        elif self.problem.code == "cancelled":
            self.state = StatementState.CANCELLED
        else:
            self.state = StatementState.FAILED
        self.ended_at = self.touched = monotonic()
        self.begun.set()
        self.ended.set()

    def as_json(self) -> dict[str, object]:
        """As answers describe it, without rows."""
        columns = self.columns
        if columns is not None and self.beyond:
            columns = [{**one, "beyond_2_53": True} if one["name"] in self.beyond else one for one in columns]
        found: dict[str, object | None] = {
            "id": self.id,
            "state": self.state.value,
            "engine": self.engine,
            "engine_reason": self.engine_reason,
            "created": self.created.isoformat(),
            "columns": columns,
            "row_count": self.rows,
            "truncated": self.is_truncated,
            "tables": [{"name": name, "version": number} for name, number in self.versions.items()],
            "etag": self.etag,
            "stats": {
                "queued_ms": self.queued_ms,
                "plan_ms": self.plan_ms,
                "run_ms": self.run_ms,
                "result_bytes": self.bytes,
                **self.sums,
            },
            "progress": None if self.has_ended else {"rows": self.rows, "bytes": self.bytes, **self.progress},
            "plans": self.plans,
            "tags": dict(self.request.tags),
            "error": None if self.problem is None else self.problem.as_json(self.id),
        }
        return {name: value for name, value in found.items() if value is not None}
