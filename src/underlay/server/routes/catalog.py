"""`/v1/tables`: the tables that a token may see, what they are, and their versions, files and blocks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.api.table import Table
from underlay.index.catalog import split_name
from underlay.local.text.time_travel import quoted
from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem, problem_of
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat
from underlay.server.formats.types import columns_of
from underlay.server.routes.answers import RowsResponse, first_of
from underlay.server.routes.describe import PROBLEMS, ROWS
from underlay.server.routes.requests import caller_of, headers_of, read_output, service_of, settings_of
from underlay.server.statements.request import StatementRequest, read_moment
from underlay.server.statements.statement import RunStatement
from underlay.server.worker.job import StatementJob

router = APIRouter(tags=["tables"])
_T = TypeVar("_T")
_VIEWS = ("versions", "files", "blocks", "sources")


@router.get("/v1/tables", responses=PROBLEMS, response_model=None)
async def list_tables(request: Request, dataset: str | None = None) -> Response:
    """The tables that the token may read, by name."""
    caller = caller_of(request)
    names = await _in_thread(request, caller, lambda lake: lake.names)
    kept = [name for name in names if dataset is None or split_name(name)[0].lower() == dataset.lower()]
    described = [{"name": name, "is_writable": _may_write(request, caller, name)} for name in kept]
    return JSONResponse({"tables": described})


@router.get("/v1/tables/{name}", responses=PROBLEMS, response_model=None)
async def get_table(request: Request, name: str, version: int | None = None, as_of: str | None = None) -> Response:
    """What a table is: columns, key, order and partitions; rows, files and bytes; at a version, or as of a time."""
    caller = caller_of(request)
    moment = read_moment(as_of)
    if version is not None and moment is not None:
        raise Problem(status=400, code="invalid_request", detail="version and as_of do not go together")
    at = None if moment is None else datetime.fromisoformat(moment)

    def look(lake: LimitedLake) -> dict[str, object]:
        table = lake.table(name)
        is_pinned = version is not None or at is not None
        return _described(table.at(version=version, as_of=at) if is_pinned else table)

    found = await _in_thread(request, caller, look)
    etag = f'"{found["revision"]}-{found["version"]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return JSONResponse(found, headers=headers)


@router.get("/v1/tables/{name}/{view}", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_view(request: Request, name: str, view: str, format: str | None = None) -> Response:
    """The versions, files, blocks or sources of a table: rows of its system view, in the format that Accept names."""
    caller = caller_of(request)
    if view not in _VIEWS:
        raise Problem(
            status=404, code="not_found", detail="a table has no such view", hint=f"There are {', '.join(_VIEWS)}."
        )
    known = await _in_thread(request, caller, lambda lake: lake.table(name).name)
    dataset, table = split_name(known)
    text = f"SELECT * FROM underlay.{quoted(view)} WHERE dataset = $dataset AND table_name = $name"
    asked = StatementRequest(sql=text, parameters={"dataset": dataset, "name": table})
    output = read_output(request, asked, format)
    statement = RunStatement(request=asked, owner=caller, kind=f"GET /v1/tables/…/{view}")
    job = StatementJob(sql=text, parameters=asked.parameters, rights=caller.rights, output=output)
    parts = service_of(request).stream(statement, job)
    await first_of(parts, request)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(output.format)],
        headers=headers_of(output),
        idle_seconds=settings_of(request).limits.idle_write_seconds,
        stopping=statement.stopping,
    )


def _described(table: Table) -> dict[str, object]:
    snapshot = table.snapshot()
    definition, root = snapshot.definition, snapshot.root
    return {
        "name": table.name,
        "version": root.version,
        "revision": table.revision,
        "columns": columns_of(table.schema),
        "row_count": len(table),
        "key": list(definition.key),
        "comment": definition.comment,
        "properties": dict(definition.properties),
    }


def _may_write(request: Request, caller: AccessToken, name: str) -> bool:
    return settings_of(request).is_writable and caller.rights.may_write(name)


async def _in_thread(request: Request, caller: AccessToken, look: Callable[[LimitedLake], _T]) -> _T:
    """What the lake says to this caller. Requests to its store wait in a thread, of which there are few."""
    lake: Lake = request.app.state.lake
    limited = LimitedLake(lake, may_read=caller.rights.may_read, may_write=caller.rights.may_write)
    try:
        return await anyio.to_thread.run_sync(
            lambda: look(limited), limiter=request.app.state.threads, abandon_on_cancel=True
        )
    except Exception as error:
        raise problem_of(error) from error
