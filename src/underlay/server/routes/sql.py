"""`/v1/sql`: run a statement and stream its rows."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat
from underlay.server.routes.answers import RowsResponse, close_parts, first_of
from underlay.server.routes.describe import PROBLEMS, ROWS, STATEMENT_BODY
from underlay.server.routes.idempotency import run_once
from underlay.server.routes.requests import (
    caller_of,
    headers_of,
    read_key,
    read_output,
    read_statement,
    salt_of,
    service_of,
    settings_of,
)
from underlay.server.statements.request import StatementRequest, read_request
from underlay.server.statements.statement import RunStatement
from underlay.server.worker.job import Output, StatementJob

router = APIRouter(tags=["sql"])
_LINK_BYTES = 8 << 10


@router.post("/v1/sql", responses={**ROWS, **PROBLEMS}, openapi_extra=STATEMENT_BODY, response_model=None)
async def post_sql(request: Request) -> Response:
    """Run a statement and stream its rows, in the format that Accept names. An error after the first rows ends JSON and
    NDJSON with an `error`, and cuts the connection in other formats. With an Idempotency-Key it is run once, and the
    answer is kept."""
    caller = caller_of(request)
    asked = await read_statement(request)
    output = read_output(request, asked)
    key = read_key(request)
    if key is not None:
        return await run_once(request, caller, asked, output, key)
    return await _stream(request, caller, asked, output, is_writable=settings_of(request).is_writable)


@router.get("/v1/sql", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_sql(
    request: Request,
    query: str,
    format: str | None = None,
    as_of: str | None = None,
    row_limit: int | None = None,
) -> Response:
    """The same for statements that read, in a URL: for links, spreadsheets and caches. Its ETag depends on the versions
    that were read, and If-None-Match is answered from the plan alone."""
    caller = caller_of(request)
    if len(query.encode(errors="surrogatepass")) > _LINK_BYTES:
        raise Problem(status=413, code="too_large", detail=f"a query in a URL is at most {_LINK_BYTES:,} bytes")
    asked = read_request({"sql": query, "as_of": as_of, "row_limit": row_limit}, settings_of(request).limits)
    output = read_output(request, asked, format)
    known = request.headers.get("if-none-match")
    return await _stream(request, caller, asked, output, is_writable=False, if_none_match=known)


async def _stream(
    request: Request,
    caller: AccessToken,
    asked: StatementRequest,
    output: Output,
    *,
    is_writable: bool,
    if_none_match: str | None = None,
) -> Response:
    service, limits = service_of(request), settings_of(request).limits
    statement = RunStatement(request=asked, owner=caller, kind=f"{request.method} /v1/sql")
    job = replace(
        job_of(asked, caller, output, is_writable=is_writable),
        byte_limit=limits.stream_bytes,
        if_none_match=if_none_match,
        salt=salt_of(caller, output),
    )
    parts = service.stream(statement, job)
    await first_of(parts, request)
    headers = {**headers_of(output), "Underlay-Statement": statement.id}
    if statement.etag is not None and not statement.is_change:
        headers["ETag"] = statement.etag
    if statement.is_not_modified:
        await close_parts(parts)
        return Response(status_code=304, headers=headers)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(output.format)],
        headers=headers,
        idle_seconds=limits.idle_write_seconds,
        stopping=statement.stopping,
    )


def job_of(asked: StatementRequest, caller: AccessToken, output: Output, *, is_writable: bool) -> StatementJob:
    """The worker's job for a request."""
    return StatementJob(
        sql=asked.sql,
        engine=asked.engine,
        parameters=asked.parameters,
        as_of=asked.as_of,
        rights=caller.rights,
        caller=caller.id,
        is_writable=is_writable,
        row_limit=asked.row_limit,
        output=output,
    )
