"""Runs statements of Flight SQL through the statement service, from gRPC's threads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as WaitTimeoutError
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from underlay.local.sql.run import is_change
from underlay.runtime.locks import ProcessLock
from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem
from underlay.server.common.settings import ServerSettings
from underlay.server.flight.values import count_parameters
from underlay.server.kept.rows_file import map_rows
from underlay.server.statements.request import read_request
from underlay.server.statements.service import StatementService, spool_of
from underlay.server.statements.statement import RunStatement
from underlay.server.worker.job import StatementJob

T = TypeVar("T")
IsCancelled = Callable[[], bool]
Parameters = Mapping[str, object] | Sequence[object] | None

_LOOK_SECONDS = 0.2
"""How often a waiting call looks whether its client is still there: gRPC does not wake Python."""
_MOST_PREPARED = 100
"""Prepared statements of one token; the oldest is closed for a new one."""
_KIND = "Flight SQL"


@dataclass(slots=True, kw_only=True)
class PreparedStatement:
    """A statement that a client prepared, and the parameters that it bound last: those of one row, or of many."""

    sql: str
    owner: str
    is_change: bool
    bound: Sequence[Sequence[object]] | None = None


class FlightStatements:
    """Statements and prepared statements. Its methods are called by gRPC's threads, and block."""

    def __init__(self, settings: ServerSettings, service: StatementService, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._service = service
        self._loop = loop
        self._lock = ProcessLock()
        self._prepared: dict[bytes, PreparedStatement] = {}

    def run(
        self,
        sql: str,
        caller: AccessToken,
        is_cancelled: IsCancelled,
        *,
        parameters: Parameters = None,
        row_limit: int | None = None,
        may_change: bool = False,
    ) -> RunStatement:
        """Run a statement to its end; its rows are kept. Raises its Problem."""
        limits = self._settings.limits
        if len(sql.encode(errors="surrogatepass")) > limits.sql_bytes:
            raise Problem(
                status=413, code="too_large", detail=f"the statement is longer than {limits.sql_bytes:,} bytes"
            )
        asked = read_request({"sql": sql, "parameters": parameters, "row_limit": row_limit}, limits)
        statement = RunStatement(request=asked, owner=caller, kind=_KIND)
        job = StatementJob(
            sql=asked.sql,
            engine=asked.engine,
            parameters=asked.parameters,
            rights=caller.rights,
            caller=caller.id,
            is_writable=may_change and self._settings.is_writable,
            row_limit=asked.row_limit,
            byte_limit=limits.result_bytes,
        )

        async def to_its_end() -> None:
            self._service.keep(statement, job)
            await statement.ended.wait()
            if statement.problem is not None:
                raise statement.problem

        self._wait(to_its_end(), is_cancelled, statement)
        return statement

    def _wait(self, work: Coroutine[Any, Any, T], is_cancelled: IsCancelled, statement: RunStatement) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        is_over = False
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except WaitTimeoutError:
                if future.done():
                    raise
                if not is_over and is_cancelled():
                    is_over = True
                    self._loop.call_soon_threadsafe(self._service.cancel, statement)
            except CancelledError:
                raise Problem(status=503, code="draining", detail="the server is stopping") from None

    def find(self, handle: bytes, caller: AccessToken) -> RunStatement:
        """A statement of this caller. Raises Problem: to another caller it does not exist."""
        known = self._service.known.get(handle.decode(errors="replace"))
        if known is None or known.owner.id != caller.id:
            raise Problem(status=404, code="statement_not_found", detail="there is no such statement")
        return known

    def cancel(self, statement: RunStatement) -> bool:
        """Stop a statement. Whether it was still running."""
        was_running = not statement.has_ended
        self._loop.call_soon_threadsafe(self._service.cancel, statement)
        return was_running

    def rows(self, statement: RunStatement) -> pa.ipc.RecordBatchFileReader:
        """The kept rows. Raises Problem when they are gone."""
        return pa.ipc.open_file(map_rows(str(spool_of(statement))))

    def prepare(self, sql: str, caller: AccessToken, is_cancelled: IsCancelled) -> tuple[bytes, pa.Schema, pa.Schema]:
        """Prepare a statement: its handle, and the columns of its rows and of its parameters. A query is run without
        rows, its parameters null; a change is not run. Raises Problem, InvalidRequest."""
        count = count_parameters(sql)
        is_a_change = is_change(sql)
        columns = pa.schema([])
        if not is_a_change:
            tried = self.run(sql, caller, is_cancelled, parameters=[None] * count or None, row_limit=0)
            columns = self.rows(tried).schema
            self._loop.call_soon_threadsafe(self._service.forget, tried)
        handle = secrets.token_bytes(18)
        with self._lock:
            own = [one for one, known in self._prepared.items() if known.owner == caller.id]
            for old in own[: max(0, len(own) + 1 - _MOST_PREPARED)]:
                del self._prepared[old]
            self._prepared[handle] = PreparedStatement(sql=sql, owner=caller.id, is_change=is_a_change)
        return handle, columns, pa.schema([pa.field(f"${at}", pa.string()) for at in range(1, count + 1)])

    def prepared(self, handle: bytes, caller: AccessToken) -> PreparedStatement:
        """A prepared statement of this caller. Raises Problem."""
        with self._lock:
            found = self._prepared.get(handle)
        if found is None or found.owner != caller.id:
            raise Problem(status=404, code="statement_not_found", detail="there is no such prepared statement")
        return found

    def close(self, handle: bytes, caller: AccessToken) -> None:
        """Forget a prepared statement of this caller, if there is one."""
        with self._lock:
            found = self._prepared.get(handle)
            if found is not None and found.owner == caller.id:
                del self._prepared[handle]

    def change(
        self, sql: str, caller: AccessToken, is_cancelled: IsCancelled, bound: Sequence[Sequence[object]] | None
    ) -> int:
        """Run a change, once for each row of parameters; the number of rows that it changed."""
        total = 0
        for row in bound if bound is not None else [None]:
            done = self.run(sql, caller, is_cancelled, parameters=row or None, may_change=True)
            found = self.rows(done).read_all()
            counts = found.column("num_affected_rows") if "num_affected_rows" in found.schema.names else None
            total += 0 if counts is None or not found.num_rows else counts[0].as_py() or 0
        return total
