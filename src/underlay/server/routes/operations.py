"""What operators and clients ask about the server itself: its health, metrics and capabilities."""

from __future__ import annotations

from importlib.metadata import version

import duckdb
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from underlay import __version__
from underlay.server.common.metrics import CONTENT_TYPE, ServerMetrics
from underlay.server.formats.formats import COMPRESSIONS, MEDIA_TYPES
from underlay.server.routes.describe import PROBLEMS
from underlay.server.routes.requests import caller_of, service_of, settings_of

router = APIRouter(tags=["operations"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_model=None)
async def healthz() -> Response:
    """The process is alive."""
    return JSONResponse({"status": "alive"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"description": "Not now."}}, response_model=None)
async def readyz(request: Request) -> Response:
    """Workers are warm, and the server is not stopping."""
    service = service_of(request)
    is_ready = not service.is_draining and service.workers.alive > 0
    status = "draining" if service.is_draining else "ready" if is_ready else "no workers"
    return JSONResponse({"status": status, "workers": service.workers.alive}, status_code=200 if is_ready else 503)


@router.get("/metrics", responses=PROBLEMS, response_model=None)
async def metrics(request: Request) -> Response:
    """Counters for Prometheus. No label has the text of a statement."""
    caller_of(request)
    service = service_of(request)
    counted: ServerMetrics = request.app.state.metrics
    gauges = {
        "statements_running": service.turns.running,
        "statements_waiting": service.turns.waiting,
        "statements_known": len(service.known),
        "workers_alive": service.workers.alive,
        "spool_bytes": service.spool_bytes,
        "spark_alive": service.spark.pid is not None,
    }
    return PlainTextResponse(counted.as_text(gauges), media_type=CONTENT_TYPE)


@router.get("/v1/info", responses=PROBLEMS, response_model=None)
async def info(request: Request) -> Response:
    """Version, engines, formats and limits; and who the token is, and what it may do."""
    caller, settings = caller_of(request), settings_of(request)
    engines = {"duckdb": duckdb.__version__}
    if settings.engine != "duckdb":
        engines["spark"] = version("pyspark")
    return JSONResponse(
        {
            "version": __version__,
            "engines": engines,
            "engine": settings.engine,
            "formats": {one.value: name.partition(";")[0] for one, name in MEDIA_TYPES.items()},
            "compressions": list(COMPRESSIONS),
            "is_writable": settings.is_writable,
            "limits": settings.limits.as_json(),
            "caller": {
                "name": caller.name,
                "read": list(caller.rights.read),
                "write": list(caller.rights.write),
                "admin": caller.rights.is_admin,
                "expires": None if caller.expires is None else caller.expires.isoformat(),
            },
        }
    )
