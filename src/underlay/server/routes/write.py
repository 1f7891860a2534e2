"""Rows for hot partitions, as clients of InfluxDB and QuestDB send them; and what these clients ask before.

These endpoints exist in a server that was started with `--hot`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import cast

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay import __version__
from underlay.errors import UnderlayError
from underlay.ingest.line_protocol.values import Flavour
from underlay.server.access.tokens import AccessToken, TokenFile
from underlay.server.common.problem import Problem, problem_of
from underlay.server.hot_writes.bodies import read_rows_body
from underlay.server.hot_writes.credentials import COOKIE, secret_of
from underlay.server.hot_writes.refusals import WriteApi, refuse, refuse_lines
from underlay.server.hot_writes.service import HotService
from underlay.server.hot_writes.take import LinesRefused
from underlay.server.routes.requests import service_of, settings_of

router = APIRouter(tags=["hot partitions"])
_log = logging.getLogger(__name__)
_JSON_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
_CHALLENGE = 'Basic realm="underlay"'
_VERSIONS = {"X-Influxdb-Version": f"underlay-{__version__}", "X-Influxdb-Build": "underlay"}


def hot_of(request: Request) -> HotService:
    """What takes rows."""
    return cast("HotService", request.app.state.hot)


@router.post("/write", response_model=None)
async def write(request: Request) -> Response:
    """Rows in line protocol for hot partitions: of QuestDB, or of InfluxDB 1 with `db`. With `table` and the type
    application/x-ndjson, objects of JSON. Answers 204 when they are committed.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _JSON_LINES or "table" in request.query_params:
        return await _take(request, WriteApi.QUESTDB, _json_lines)
    api = WriteApi.INFLUXDB_1 if "db" in request.query_params else WriteApi.QUESTDB
    return await _take(request, api, partial(_lines, dataset=request.query_params.get("db")))


@router.post("/api/v2/write", response_model=None)
async def write_v2(request: Request) -> Response:
    """Rows in line protocol, as InfluxDB 2 takes them: `bucket` is the dataset."""
    return await _take(request, WriteApi.INFLUXDB_2, partial(_lines, dataset=request.query_params.get("bucket")))


@router.get("/settings", response_model=None)
async def settings(request: Request) -> Response:
    """What QuestDB's clients ask first: the versions of the line protocol."""
    writes = ["http"] if settings_of(request).is_writable else []
    known = {
        "release.type": "OSS",
        "release.version": __version__,
        "accepting.writes": writes,
        "line.proto.support.versions": [1, 2, 3],
        "ilp.proto.transports": ["http"],
        "cairo.max.file.name.length": 100,
    }
    return JSONResponse({"config": known, "preferences.version": 0, "preferences": {}})


@router.head("/ping", include_in_schema=False)
@router.get("/ping", response_model=None)
async def ping() -> Response:
    """InfluxDB's clients ask whether the server is there."""
    return Response(status_code=204, headers=_VERSIONS)


@router.get("/health", response_model=None)
async def health(request: Request) -> Response:
    """The health in InfluxDB's words. `/readyz` is the server's own."""
    is_draining = service_of(request).is_draining
    found: dict[str, object] = {
        "name": "underlay",
        "message": "draining" if is_draining else "ready for queries and writes",
        "status": "fail" if is_draining else "pass",
        "checks": [],
        "version": __version__,
    }
    return JSONResponse(found, status_code=503 if is_draining else 200, headers=_VERSIONS)


@router.post("/api/v2/signin", response_model=None)
async def sign_in(request: Request) -> Response:
    """InfluxDB's clients with a user and a password trade them for a cookie."""
    try:
        _writer_of(request)
    except Problem as problem:
        return refuse(problem, WriteApi.INFLUXDB_2)
    secret = secret_of(request) or "none"
    cookie = f"{COOKIE}={secret}; Path=/api/; HttpOnly; SameSite=Strict"
    return Response(status_code=204, headers={"Set-Cookie": cookie, "Cache-Control": "no-store"})


@router.post("/api/v2/signout", response_model=None)
async def sign_out() -> Response:
    """The other end of it."""
    cookie = f"{COOKIE}=; Path=/api/; Max-Age=0; HttpOnly; SameSite=Strict"
    return Response(status_code=204, headers={"Set-Cookie": cookie})


Taker = Callable[[Request, AccessToken, bytes, WriteApi], int]


async def _take(request: Request, api: WriteApi, take: Taker) -> Response:
    """Read the body and take its rows, within the limits; answer in the words of the client's server."""
    try:
        if service_of(request).is_draining:
            raise Problem(status=503, code="draining", detail="the server is stopping", retry_after_seconds=5)
        caller = _writer_of(request)
        if not settings_of(request).is_writable:
            raise Problem(
                status=403,
                code="read_only",
                detail="the server only reads",
                hint="Start it with --writable and --tokens.",
            )
        hot = hot_of(request)
        with hot.admit(caller.id, request.headers.get("content-length")) as admitted:
            body = await read_rows_body(request, hot.settings.body_bytes)
            admitted.grow(len(body))
            begin = time.monotonic()
            # committing goes on when the client leaves: what was begun is whole or not at all
            work = anyio.to_thread.run_sync(take, request, caller, body, api, limiter=hot.threads)
            rows = await asyncio.shield(asyncio.ensure_future(work))
        metrics = request.app.state.metrics
        metrics.count("hot_rows_total", rows)
        metrics.observe("hot_write_seconds", time.monotonic() - begin)
    except LinesRefused as refused:
        return refuse_lines(refused, api)
    except (UnderlayError, Problem) as error:
        return refuse(problem_of(error), api)
    return Response(status_code=204, headers=_VERSIONS)


def _lines(request: Request, caller: AccessToken, body: bytes, api: WriteApi, *, dataset: str | None) -> int:
    flavour = Flavour.QUESTDB if api is WriteApi.QUESTDB else Flavour.INFLUXDB
    name = None if dataset is None else dataset.partition("/")[0]  # InfluxDB 1's retention policy follows
    precision = request.query_params.get("precision") or "ns"
    return hot_of(request).taker.take_lines(body, flavour, precision, name, caller.rights.may_write, time.time_ns())


def _json_lines(request: Request, caller: AccessToken, body: bytes, api: WriteApi) -> int:
    table = request.query_params.get("table")
    if not table:
        raise Problem(
            status=400,
            code="invalid_request",
            detail="objects of JSON need a table",
            hint="Send them to /write?table=dataset.table.",
        )
    return hot_of(request).taker.take_json(body, table, caller.rights.may_write)


def _writer_of(request: Request) -> AccessToken:
    """Who sends rows. Raises Problem."""
    tokens = cast("TokenFile | None", request.app.state.tokens)
    if tokens is None:
        raise Problem(
            status=403, code="read_only", detail="a server without tokens only reads", hint="Start it with --tokens."
        )
    secret = secret_of(request)
    if secret is None:
        raise Problem(status=401, code="no_token", detail="the request has no token", challenge=_CHALLENGE)
    try:
        found = tokens.find(secret, datetime.now(UTC))
    except UnderlayError as error:  # its text names the token file's path
        _log.error("%s", error)
        raise Problem(
            status=503, code="unavailable", detail="the server cannot read its tokens", retry_after_seconds=5
        ) from None
    if found is None:
        raise Problem(status=401, code="invalid_token", detail="the token is not valid", challenge=_CHALLENGE)
    return found
