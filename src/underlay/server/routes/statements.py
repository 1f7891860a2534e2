"""`/v1/statements`: runs statements whose results are kept, to be watched, paged through, downloaded or cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat, choose_format
from underlay.server.kept.bins import MOST_BINS, BinsRequest, read_kind
from underlay.server.routes.answers import RowsResponse, first_of, while_there
from underlay.server.routes.catalog import answer_look, read_order
from underlay.server.routes.describe import PROBLEMS, ROWS, STATEMENT_BODY
from underlay.server.routes.idempotency import start_once
from underlay.server.routes.requests import (
    caller_of,
    headers_of,
    read_key,
    read_output,
    read_statement,
    service_of,
    settings_of,
)
from underlay.server.statements.links import LINK_SECONDS, DownloadLinks
from underlay.server.statements.service import spool_of
from underlay.server.statements.statement import RunStatement
from underlay.server.worker.job import BinsJob, LookJob, Output, WindowJob, scans_path

router = APIRouter(tags=["statements"])
_MOST = 2**53
_DIGITS = 9


@router.post(
    "/v1/statements",
    responses={202: {"description": "The statement is still running."}, **PROBLEMS},
    openapi_extra=STATEMENT_BODY,
    response_model=None,
)
async def post_statement(request: Request) -> Response:
    """Run a statement and keep its result. Answers with the first page when it ends within `wait` seconds, else 202."""
    caller = caller_of(request)
    asked = await read_statement(request)
    output = Output(shape=asked.shape, integers_as_text=asked.integers_as_text)
    statement = start_once(request, caller, asked, output, read_key(request))
    await _wait(statement, asked.wait_seconds, request)
    return await _shown(request, statement, output, page_rows=asked.page_rows)


@router.get("/v1/statements", responses=PROBLEMS, response_model=None)
async def list_statements(request: Request) -> Response:
    """The statements of this token that the server knows, newest first; an admin sees those of all."""
    caller = caller_of(request)
    found = [one for one in service_of(request).known.values() if _may_see(caller, one)]
    return JSONResponse({"statements": [one.as_json() for one in reversed(found)]})


@router.get("/v1/statements/{id}", responses=PROBLEMS, response_model=None)
async def get_statement(request: Request, id: str, wait: Annotated[float, Query(ge=0, le=60)] = 0.0) -> Response:
    """The state of a statement. With `wait` the answer comes when it ends, or after `wait` seconds."""
    statement = _find(request, id)
    await _wait(statement, wait, request)
    return JSONResponse(statement.as_json(), headers={"Cache-Control": "no-store"})


@router.get("/v1/statements/{id}/rows", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_rows(
    request: Request,
    id: str,
    offset: Annotated[int, Query(ge=0, le=_MOST)] = 0,
    limit: Annotated[int, Query(ge=0, le=_MOST)] = 1000,
    order_by: str | None = None,
    descending: bool = False,
    format: str | None = None,
) -> Response:
    """A window of the kept result, sorted by a column if one is named."""
    statement = _find_own(request, id)
    output = read_output(request, statement.request, format)
    rows = min(limit, settings_of(request).limits.page_rows)
    job = WindowJob(
        spool=str(spool_of(statement)),
        offset=offset,
        limit=rows,
        order_by=order_by,
        is_descending=descending,
        facts={"offset": offset, "total": statement.rows},
        output=output,
    )
    return await _window(request, statement, job, {})


@router.get("/v1/statements/{id}/result", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_result(request: Request, id: str, format: str | None = None) -> Response:
    """The whole kept result as a download. The statement does not run again."""
    statement = _find_own(request, id)
    return await _download(request, statement, read_output(request, statement.request, format))


async def _download(request: Request, statement: RunStatement, output: Output) -> Response:
    job = WindowJob(spool=str(spool_of(statement)), output=output)
    name = {"Content-Disposition": f'attachment; filename="result.{output.format}"'}
    return await _window(request, statement, job, name)


@router.get("/v1/statements/{id}/blocks", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_blocks(
    request: Request,
    id: str,
    scan: Annotated[int, Query(ge=0, le=_MOST)] = 0,
    column: str | None = None,
    order: str = "file",
    bins: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    offset: Annotated[int, Query(ge=0, le=_MOST)] = 0,
    limit: Annotated[int | None, Query(ge=0, le=_MOST)] = None,
    format: str | None = None,
) -> Response:
    """The block map of a scan of the statement: every block of the version that it read, and what became of it. As in
    `/v1/tables/{name}/blocks`."""
    statement = _find_own(request, id)
    job = LookJob(
        what="scan",
        rights=caller_of(request).rights,
        spool=scans_path(str(spool_of(statement))),
        scan=scan,
        column=column,
        is_sorted=read_order(order),
        bins=bins,
        offset=offset,
        limit=limit,
    )
    statement.touched = monotonic()
    return await answer_look(request, job, format)


@router.get("/v1/statements/{id}/bins", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_bins(
    request: Request,
    id: str,
    x: Annotated[int, Query(ge=0, le=_MOST)],
    kind: str = "histogram",
    y: str | None = None,
    series: Annotated[int | None, Query(ge=0, le=_MOST)] = None,
    bins: Annotated[int, Query(ge=1, le=MOST_BINS)] = 400,
    format: str | None = None,
) -> Response:
    """The kept rows counted for a chart: `kind` is histogram, line, scatter or bar. Columns are numbered from 0: `x`,
    `y` separated by commas, and `series`, whose values are separate lines. A histogram has `count` for each `bin`,
    which begins at `low + bin * width`, times in seconds since 1970; a line `min0`, `max0` and `avg0` of the first y
    too; a scatter plot `bin_y`; bars have the `sum0` of each `category`, the largest first. `left_out` of
    the `total` rows have no finite value."""
    statement = _find_own(request, id)
    numbers = [one.strip() for one in (y or "").split(",") if one.strip()]
    if not all(one.isascii() and one.isdigit() and len(one) <= _DIGITS for one in numbers):
        raise Problem(status=400, code="invalid_request", detail="y is numbers of columns, separated by commas")
    asked = BinsRequest(kind=read_kind(kind), x=x, y=tuple(map(int, numbers)), series=series, bins=bins)
    output = read_output(request, statement.request, format)
    return await _window(request, statement, BinsJob(spool=str(spool_of(statement)), asked=asked, output=output), {})


@router.post("/v1/statements/{id}/links", status_code=201, responses=PROBLEMS, response_model=None)
async def post_link(request: Request, id: str, format: str | None = None) -> Response:
    """A URL that downloads the kept result once, within a minute, without a token: for browsers, which write what they
    are sent to a file, but cannot send a header with it."""
    statement = _find_own(request, id)
    spool_of(statement)
    links: DownloadLinks = request.app.state.links
    secret = links.make(statement, choose_format(request.headers.get("accept"), format))
    url = f"{settings_of(request).root_path}/v1/links/{secret}"
    return JSONResponse({"url": url, "seconds": LINK_SECONDS}, status_code=201, headers={"Location": url})


@router.get("/v1/links/{secret}", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_link(request: Request, secret: str) -> Response:
    """The download that a link was made for. It works once."""
    links: DownloadLinks = request.app.state.links
    found = links.take(secret)
    if found is None:
        raise Problem(status=404, code="not_found", detail="there is no such link, or it was used")
    statement, format = found
    return await _download(request, statement, read_output(request, statement.request, format.value))


@router.delete("/v1/statements/{id}", status_code=204, responses=PROBLEMS, response_model=None)
async def delete_statement(request: Request, id: str) -> Response:
    """Cancel a statement if it runs, and delete it and its rows."""
    service, statement = service_of(request), _find(request, id)
    service.cancel(statement)
    with suppress(TimeoutError):
        async with asyncio.timeout(settings_of(request).limits.cancel_seconds + 5):
            await statement.ended.wait()
    service.forget(statement)
    return Response(status_code=204)


async def _shown(request: Request, statement: RunStatement, output: Output, *, page_rows: int) -> Response:
    found = statement.as_json()
    if not statement.has_ended:
        where = f"{settings_of(request).root_path}/v1/statements/{statement.id}"
        return JSONResponse(found, status_code=202, headers={"Location": where})
    if statement.problem is not None:
        raise statement.problem
    if statement.spool is not None:
        found["rows"] = await service_of(request).page(statement, page_rows, output)
        has_more = statement.rows > page_rows
        found["next"] = f"/v1/statements/{statement.id}/rows?offset={page_rows}" if has_more else None
    return JSONResponse(found)


async def _window(
    request: Request, statement: RunStatement, job: WindowJob | BinsJob, headers: dict[str, str]
) -> Response:
    parts = service_of(request).window(statement, job)
    await first_of(parts, request)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(job.output.format)],
        headers={**headers_of(job.output), **headers},
        idle_seconds=settings_of(request).limits.idle_write_seconds,
    )


async def _wait(statement: RunStatement, seconds: float, request: Request) -> None:
    if seconds and not statement.has_ended:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await while_there(statement.ended.wait(), request)


def _find(request: Request, id: str) -> RunStatement:
    """The statement, for callers who may see it. Raises Problem."""
    caller = caller_of(request)
    found = service_of(request).known.get(id)
    if found is None or not _may_see(caller, found):
        raise Problem(status=404, code="statement_not_found", detail="there is no such statement")
    return found


def _find_own(request: Request, id: str) -> RunStatement:
    """The statement, for the token that ran it: an admin may lack the right to read its tables. Raises Problem."""
    found = _find(request, id)
    if caller_of(request).id != found.owner.id:
        raise Problem(status=403, code="forbidden", detail="only the token that ran a statement reads its rows")
    return found


def _may_see(caller: AccessToken, statement: RunStatement) -> bool:
    return caller.id == statement.owner.id or caller.rights.is_admin
