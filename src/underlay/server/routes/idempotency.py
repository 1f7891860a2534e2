"""Runs a change only once, however often the client sends it with the same idempotency key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat
from underlay.server.routes.answers import RowsResponse, first_of, while_there
from underlay.server.routes.requests import headers_of, service_of, settings_of
from underlay.server.statements.request import StatementRequest
from underlay.server.statements.service import spool_of
from underlay.server.statements.statement import RunStatement, StatementState
from underlay.server.worker.job import Output, StatementJob, WindowJob

_MAY_RUN_AGAIN = (StatementState.FAILED, StatementState.CANCELLED)
_UNKNOWN = "commit_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedStatement:
    """The statement that was first sent with a key, and a digest of its request."""

    digest: str
    statement: RunStatement


class StatementKeys:
    """The keys of this server's statements. A key is known as long as its statement is."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], KeyedStatement] = {}

    def find(self, caller: AccessToken, key: str, digest: str) -> RunStatement | None:
        """The statement of this key; None when it must run. Raises Problem when the key belongs to another
        statement.
        """
        found = self._known.get((caller.id, key))
        if found is None:
            return None
        if found.digest != digest:
            raise Problem(status=422, code="key_reused", detail="the key was sent with another statement")
        statement = found.statement
        code = None if statement.problem is None else statement.problem.code
        return None if statement.state in _MAY_RUN_AGAIN and code != _UNKNOWN else statement

    def keep(self, caller: AccessToken, key: str, digest: str, statement: RunStatement) -> None:
        """Remember that this key belongs to this statement."""
        self._known[caller.id, key] = KeyedStatement(digest=digest, statement=statement)

    def forget_all_but(self, known: set[str]) -> None:
        """Forget the keys of forgotten statements."""
        self._known = {key: one for key, one in self._known.items() if one.statement.id in known}


def start_once(
    request: Request, caller: AccessToken, asked: StatementRequest, output: Output, key: str | None
) -> RunStatement:
    """Start the statement in the background. For a known key, returns the statement that was sent with it first."""
    service, settings = service_of(request), settings_of(request)
    keys: StatementKeys = request.app.state.keys
    keys.forget_all_but(set(service.known))
    known = (asked.sql, asked.engine, asked.parameters, asked.as_of, asked.row_limit)
    digest = hashlib.sha256(repr(known).encode()).hexdigest()
    if key is not None:
        found = keys.find(caller, key, digest)
        if found is not None:
            return found
    statement = RunStatement(request=asked, owner=caller, kind=f"{request.method} {request.url.path}")
    job = StatementJob(
        sql=asked.sql,
        engine=asked.engine,
        parameters=asked.parameters,
        as_of=asked.as_of,
        rights=caller.rights,
        caller=caller.id,
        is_writable=settings.is_writable,
        token=None if key is None else f"http:{caller.id}:{key}",
        row_limit=asked.row_limit,
        byte_limit=settings.limits.result_bytes,
        output=output,
    )
    service.keep(statement, job)
    if key is not None:
        keys.keep(caller, key, digest, statement)
    return statement


async def run_once(
    request: Request, caller: AccessToken, asked: StatementRequest, output: Output, key: str
) -> Response:
    """Run the statement, or wait for the one that has the key, and send the kept rows. Raises Problem."""
    service = service_of(request)
    statement = start_once(request, caller, asked, output, key)
    await while_there(statement.ended.wait(), request)
    facts = {"tables": [{"name": name, "version": number} for name, number in statement.versions.items()]}
    job = WindowJob(spool=str(spool_of(statement)), output=replace(output), facts=facts)
    parts = service.window(statement, job)
    await first_of(parts, request)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(output.format)],
        headers={**headers_of(output), "Underlay-Statement": statement.id},
        idle_seconds=settings_of(request).limits.idle_write_seconds,
    )
