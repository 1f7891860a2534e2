"""The application: its endpoints, the answer to every error, and the resources that are open while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from underlay import __version__
from underlay.api.lake import connect
from underlay.errors import UnderlayError
from underlay.server.access.guard import RequestGuard, host_names
from underlay.server.access.request_log import RequestLog
from underlay.server.access.tokens import TokenFile
from underlay.server.common.metrics import ServerMetrics
from underlay.server.common.problem import Problem, problem_of
from underlay.server.common.settings import ServerSettings
from underlay.server.formats.formats import NotAcceptable
from underlay.server.hot_writes.service import HotService
from underlay.server.iceberg import routes as iceberg
from underlay.server.page.built_page import read_page
from underlay.server.routes import catalog, operations, page, plans, sql, statements, write
from underlay.server.routes.answers import ProblemResponse
from underlay.server.routes.idempotency import StatementKeys
from underlay.server.statements.links import DownloadLinks
from underlay.server.statements.service import StatementService

if TYPE_CHECKING:
    from underlay.server.flight.flight_server import FlightSqlServer

_FLIGHT_SECONDS = 5.0
_THREADS = 8
"""Concurrent requests to the lake's store by endpoints that need no engine."""

_BY_ROUTER = {
    404: ("not_found", "there is no such endpoint"),
    405: ("method_not_allowed", "the endpoint does not allow this method"),
}


def make_app(settings: ServerSettings) -> FastAPI:
    """Make the application. Its workers start and end with it."""
    app = FastAPI(
        title="Underlay",
        version=__version__,
        description="SQL over the tables of a lake.",
        lifespan=_open,
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.on_flight = lambda port: None  # told the port of Flight SQL once it listens
    app.state.page = read_page()
    for one in (sql, statements, plans, catalog, operations, iceberg, page):
        app.include_router(one.router)
    if settings.hot is not None:
        app.include_router(write.router)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(UnderlayError, _on_problem)
    app.add_exception_handler(NotAcceptable, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_fault)
    app.add_middleware(
        RequestGuard,
        hosts=host_names(settings.host, settings.public_url),
        public_url=settings.public_url,
        root_path=settings.root_path,
    )
    if settings.log_format == "json":
        app.add_middleware(RequestLog)
    return app


@asynccontextmanager
async def _open(app: FastAPI) -> AsyncIterator[None]:
    settings: ServerSettings = app.state.settings
    app.state.tokens = None if settings.tokens is None else TokenFile(settings.tokens)
    app.state.metrics = ServerMetrics()
    app.state.threads = anyio.CapacityLimiter(_THREADS)
    app.state.keys = StatementKeys()
    app.state.links = DownloadLinks()
    app.state.export_locks = {}
    hot = None if settings.hot is None else settings.hot.folder
    app.state.lake = connect(settings.lake, options=settings.options, registry=settings.registry, hot=hot)
    if settings.hot is not None:
        app.state.hot = HotService(app.state.lake, settings.hot)
    app.state.service = StatementService(settings, app.state.metrics)
    await app.state.service.open()
    try:
        app.state.flight = _open_flight(app)
        yield
    finally:
        await asyncio.gather(_close_flight(app), app.state.service.close())
        if settings.hot is not None:
            await anyio.to_thread.run_sync(app.state.hot.close)
        app.state.lake.close()


def _open_flight(app: FastAPI) -> FlightSqlServer | None:
    settings: ServerSettings = app.state.settings
    if settings.flight is None:
        return None
    from underlay.server.flight.flight_server import open_flight  # loads gRPC
    from underlay.server.flight.statements import FlightStatements

    statements = FlightStatements(settings, app.state.service, asyncio.get_running_loop())
    server = open_flight(settings, statements, app.state.lake, app.state.tokens)
    app.state.on_flight(server.port)
    return server


async def _close_flight(app: FastAPI) -> None:
    """Stop, within some seconds more than running statements get. gRPC waits for ever for a client that does not read:
    then the process has to end all the same."""
    server: FlightSqlServer | None = getattr(app.state, "flight", None)
    if server is not None:
        seconds = app.state.settings.limits.drain_seconds + _FLIGHT_SECONDS
        app.state.is_flight_stuck = not await asyncio.to_thread(server.end, seconds)


async def _on_problem(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == 429:
        request.app.state.metrics.count("refused_total", code=problem.code)
    return ProblemResponse(problem)


async def _on_invalid(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    said = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in found)
    return ProblemResponse(Problem(status=400, code="invalid_request", detail=said[:1000] or "the request is wrong"))


async def _on_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    code, detail = _BY_ROUTER.get(error.status_code, ("invalid_request", str(error.detail)))
    answer = ProblemResponse(Problem(status=error.status_code, code=code, detail=detail))
    answer.headers.update(error.headers or {})
    return answer


async def _on_fault(request: Request, error: Exception) -> Response:
    """A bug of ours: the log gets the traceback, the client only the kind of error."""
    return ProblemResponse(Problem(status=500, code="internal", detail="the server failed"))
