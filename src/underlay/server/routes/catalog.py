"""`/v1/tables` and the paths below it: the tables that a token may see, their definitions, versions, files, blocks,
columns, sources, runs and health. Reads metadata only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, TypeVar

import anyio
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.api.opened.info import describe
from underlay.api.opened.layout import layout_texts
from underlay.api.table import Table
from underlay.index.catalog import split_name
from underlay.server.access.tokens import AccessToken
from underlay.server.common.problem import Problem, problem_of
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat, choose_compression, choose_format
from underlay.server.formats.types import columns_of
from underlay.server.routes.answers import RowsResponse, close_parts, first_of
from underlay.server.routes.describe import PROBLEMS, ROWS
from underlay.server.routes.requests import caller_of, headers_of, service_of, settings_of
from underlay.server.statements.request import read_moment
from underlay.server.worker.job import LookJob, Output
from underlay.server.worker.messages import Message

router = APIRouter(tags=["tables"])
_T = TypeVar("_T")
_MOST = 2**53
_VIEWS = ("columns", "versions", "files", "sources", "diff", "health", "jobs", "runs")
Version = Annotated[int | None, Query(ge=0, le=_MOST)]
Number = Annotated[int, Query(ge=0, le=_MOST)]
Limit = Annotated[int | None, Query(ge=0, le=_MOST)]
Most = Annotated[int | None, Query(ge=1, le=10_000)]


@router.get("/v1/datasets", responses=PROBLEMS, response_model=None)
async def list_datasets(request: Request) -> Response:
    """The datasets of the tables that the token may read, and how many of them each has."""
    names = await _in_thread(request, caller_of(request), lambda lake: lake.names)
    counts = Counter(split_name(name)[0] for name in names)
    return JSONResponse({"datasets": [{"name": name, "tables": count} for name, count in sorted(counts.items())]})


@router.get("/v1/tables", responses=PROBLEMS, response_model=None)
async def list_tables(request: Request, dataset: str | None = None) -> Response:
    """The tables that the token may read, by name."""
    caller = caller_of(request)
    names = await _in_thread(request, caller, lambda lake: lake.names)
    kept = [name for name in names if dataset is None or split_name(name)[0].lower() == dataset.lower()]
    described = [{"name": name, "is_writable": _may_write(request, caller, name)} for name in kept]
    return JSONResponse({"tables": described})


@router.get("/v1/tables/{name}", responses=PROBLEMS, response_model=None)
async def get_table(request: Request, name: str, version: Version = None, as_of: str | None = None) -> Response:
    """What a table is: columns, key, order and partitions; rows, files and bytes; at a version, or as of a time."""
    caller, moment = caller_of(request), moment_of(version, as_of)
    is_writable = _may_write(request, caller, name)

    def look(lake: LimitedLake) -> tuple[dict[str, object], str]:
        table = lake.table(name, version=version)
        return {**_described(table), "is_writable": is_writable}, table.state_id

    found, state = await _in_thread(request, caller, look, None if moment is None else datetime.fromisoformat(moment))
    etag = f'"{found["revision"]}-{found["version"]}-{state}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return JSONResponse(found, headers=headers)


@router.get("/v1/tables/{name}/blocks", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_blocks(
    request: Request,
    name: str,
    where: str | None = None,
    columns: str | None = None,
    column: str | None = None,
    order: str = "file",
    bins: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    offset: Number = 0,
    limit: Limit = None,
    version: Version = None,
    as_of: str | None = None,
    format: str | None = None,
) -> Response:
    """The block map: every block of a version with file, rows, bytes, the bounds of a column, and what becomes of it
    for the condition `where` and by which step. `verdict` and `step` are indexes into `verdicts` and `steps`,
    which Arrow results have in the metadata of the schema. `columns` are those to read, separated by commas;
    `column` is the one with bounds. `order` is file or min. `bins` counts neighbours together."""
    job = LookJob(
        what="blocks",
        rights=caller_of(request).rights,
        table=name,
        where=where,
        columns=None if columns is None else [one.strip() for one in columns.split(",") if one.strip()],
        column=column,
        is_sorted=read_order(order),
        bins=bins,
        offset=offset,
        limit=limit,
        version=version,
        as_of=moment_of(version, as_of),
    )
    return await answer_look(request, job, format)


@router.get("/v1/tables/{name}/{view}", responses={**ROWS, **PROBLEMS}, response_model=None)
async def get_view(
    request: Request,
    name: str,
    view: str,
    since: Version = None,
    most: Most = None,
    offset: Number = 0,
    limit: Limit = None,
    version: Version = None,
    as_of: str | None = None,
    format: str | None = None,
) -> Response:
    """More of a table: `columns` with what metadata knows of their values, `versions` (the newest `most`), `files`,
    `sources`, `diff` from the version `since` (by default the one before), `health`, `jobs` that run, `runs` that
    ended."""
    if view not in _VIEWS:
        hint = f"There are blocks, {', '.join(_VIEWS)}."
        raise Problem(status=404, code="not_found", detail="a table has no such view", hint=hint)
    job = LookJob(
        what=view,
        rights=caller_of(request).rights,
        table=name,
        since=since,
        most=most,
        offset=offset,
        limit=limit,
        version=version,
        as_of=moment_of(version, as_of),
    )
    return await answer_look(request, job, format)


@router.get("/v1/jobs", responses={**ROWS, **PROBLEMS}, response_model=None)
async def list_jobs(request: Request, format: str | None = None) -> Response:
    """Jobs on tables that the token may read: work that only one process does at a time. Running or abandoned."""
    return await answer_look(request, LookJob(what="jobs", rights=caller_of(request).rights), format)


@router.get("/v1/runs", responses={**ROWS, **PROBLEMS}, response_model=None)
async def list_runs(request: Request, most: Most = None, format: str | None = None) -> Response:
    """The newest ingests of tables that the token may read, and where the rows are that they rejected."""
    return await answer_look(request, LookJob(what="runs", rights=caller_of(request).rights, most=most), format)


@router.get("/v1/completion", responses=PROBLEMS, response_model=None)
async def get_completion(request: Request, tables: str | None = None) -> Response:
    """What a statement can be completed with: keywords, functions and tables; or the columns of `tables`, separated
    by commas. A table that the token may not read has none, like one that does not exist."""
    wanted = None if tables is None else [one.strip() for one in tables.split(",")]
    job = LookJob(what="completion", rights=caller_of(request).rights, columns=wanted)
    return await answer_look(request, job, "json")


async def answer_look(request: Request, job: LookJob, format: str | None) -> Response:
    """What a reading worker finds, in the format that the request asks for."""
    output, heads = look_output(request, format), list[Message]()
    job = replace(job, output=output, if_none_match=request.headers.get("if-none-match"))
    parts = service_of(request).read(job, heads.append)
    await first_of(parts, request)
    headers = headers_of(output)
    if heads[0]["etag"] is not None:
        headers["ETag"] = heads[0]["etag"]
    if heads[0]["is_not_modified"]:
        await close_parts(parts)
        return Response(status_code=304, headers=headers)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(output.format)],
        headers=headers,
        idle_seconds=settings_of(request).limits.idle_write_seconds,
    )


def look_output(request: Request, format: str | None) -> Output:
    """The format of the answer to a look. Raises NotAcceptable."""
    chosen = choose_format(request.headers.get("accept"), format)
    return Output(format=chosen.value, compression=choose_compression(request.headers.get("accept-encoding"), chosen))


def read_order(text: str) -> bool:
    """Whether blocks are ordered by their least values. Raises Problem."""
    if text not in ("file", "min"):
        raise Problem(status=400, code="invalid_request", detail="order must be file or min")
    return text == "min"


def moment_of(version: int | None, as_of: str | None) -> str | None:
    """The time as of which a table is asked for. Raises Problem for a time beside a version."""
    moment = read_moment(as_of)
    if version is not None and moment is not None:
        raise Problem(status=400, code="invalid_request", detail="version and as_of cannot be combined")
    return moment


def _described(table: Table) -> dict[str, object]:
    snapshot = table.snapshot()
    definition, known = snapshot.definition, describe(snapshot.root)
    return {
        "name": table.name,
        "version": known.version,
        "revision": table.revision,
        "committed": known.committed.isoformat(),
        "operation": known.operation,
        "columns": columns_of(table.schema),
        "row_count": known.row_count,
        "file_count": known.file_count,
        "data_bytes": known.data_bytes,
        **layout_texts(definition, snapshot.schema),
        "comment": definition.comment,
        "checks": dict(definition.checks),
        "properties": dict(definition.properties),
        "tags": table.tags,
    }


def _may_write(request: Request, caller: AccessToken, name: str) -> bool:
    return settings_of(request).is_writable and caller.rights.may_write(name)


async def _in_thread(
    request: Request, caller: AccessToken, look: Callable[[LimitedLake], _T], as_of: datetime | None = None
) -> _T:
    """Ask the lake for this caller, in one of a few threads, which wait for requests to the store."""
    lake: Lake = request.app.state.lake
    limited = LimitedLake(lake, may_read=caller.rights.may_read, may_write=caller.rights.may_write, as_of=as_of)
    try:
        return await anyio.to_thread.run_sync(
            lambda: look(limited), limiter=request.app.state.threads, abandon_on_cancel=True
        )
    except Exception as error:
        raise problem_of(error) from error
