"""The endpoints of the catalog below `/iceberg/v1`: what the specification asks of one that only reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.index.catalog import split_name
from underlay.runtime.locks import ProcessLock
from underlay.server.iceberg.errors import CatalogRoute, MissingNamespace, error_response
from underlay.server.routes.requests import caller_of

ROOT = "/iceberg/v1"
_NAMESPACE, _TABLE = f"{ROOT}/namespaces/{{namespace}}", f"{ROOT}/namespaces/{{namespace}}/tables/{{table}}"
_T = TypeVar("_T")
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "code": {"type": "integer"}},
        }
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = {  # Any: a part of a JSON schema
    status: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
    for status, text in {
        400: "The table cannot be represented truthfully; the message says why.",
        401: "There is no valid token.",
        403: "The catalog only reads.",
        404: "It does not exist, or the token may not see it.",
        503: "The store or the server is unavailable. Try again after Retry-After seconds.",
    }.items()
}
_ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
)
"""What clients are told that there is: they refuse everything else by themselves."""

router = APIRouter(tags=["iceberg"], route_class=CatalogRoute)


@router.get(f"{ROOT}/config", responses=_ERRORS, response_model=None)
async def get_config(request: Request) -> Response:
    """What clients ask first: which endpoints there are."""
    caller_of(request)
    return JSONResponse({"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS})


@router.get(f"{ROOT}/namespaces", responses=_ERRORS, response_model=None)
async def list_namespaces(request: Request, parent: str | None = None) -> Response:
    """The datasets with tables that the token may read. A dataset has none inside."""
    names = await _in_thread(request, _datasets)
    if parent:
        _check_namespace(parent, names)
        return JSONResponse({"namespaces": []})
    return JSONResponse({"namespaces": [[name] for name in names]})


@router.get(_NAMESPACE, responses=_ERRORS, response_model=None)
async def get_namespace(request: Request, namespace: str) -> Response:
    """A dataset."""
    _check_namespace(namespace, await _in_thread(request, _datasets))
    return JSONResponse({"namespace": [namespace], "properties": {}})


@router.head(_NAMESPACE, responses=_ERRORS, status_code=204, response_model=None)
async def has_namespace(request: Request, namespace: str) -> Response:
    """Whether there is such a dataset."""
    _check_namespace(namespace, await _in_thread(request, _datasets))
    return Response(status_code=204)


@router.get(f"{_NAMESPACE}/tables", responses=_ERRORS, response_model=None)
async def list_tables_of_namespace(request: Request, namespace: str) -> Response:
    """The tables of a dataset that the token may read."""
    names = [split_name(name) for name in await _in_thread(request, lambda lake: lake.names)]
    _check_namespace(namespace, [dataset for dataset, _ in names])
    found = [{"namespace": [namespace], "name": table} for dataset, table in names if dataset == namespace]
    return JSONResponse({"identifiers": found})


@router.get(_TABLE, responses=_ERRORS, response_model=None)
async def load_table(request: Request, namespace: str, table: str) -> Response:
    """A table at its newest version, which is exported first if it was not yet."""
    locks: dict[str, ProcessLock] = request.app.state.export_locks
    name = f"{namespace}.{table}"

    def load(lake: LimitedLake) -> Response:
        found = lake.table(name)
        with locks.setdefault(found.name, ProcessLock()):  # many clients ask at once, and one export serves them all
            location, metadata = found.iceberg_metadata()
        return JSONResponse({"metadata-location": location, "metadata": metadata, "config": {}})

    return await _in_thread(request, load)


@router.head(_TABLE, responses=_ERRORS, status_code=204, response_model=None)
async def has_table(request: Request, namespace: str, table: str) -> Response:
    """Whether there is such a table that the token may read."""
    await _in_thread(request, lambda lake: lake.table(f"{namespace}.{table}"))
    return Response(status_code=204)


@router.api_route(
    "/iceberg/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"], include_in_schema=False
)
async def answer_others(request: Request, rest: str) -> Response:
    """Everything else: changes are refused."""
    caller_of(request)
    if request.method in ("GET", "HEAD"):
        return error_response(404, "NotFoundException", f"there is no endpoint {rest}")
    return error_response(403, "ForbiddenException", "the catalog only reads: Underlay changes tables")


def _datasets(lake: LimitedLake) -> list[str]:
    return sorted({split_name(name)[0] for name in lake.names})


def _check_namespace(name: str, known: list[str]) -> None:
    if name not in known:
        raise MissingNamespace(name)


async def _in_thread(request: Request, look: Callable[[LimitedLake], _T]) -> _T:
    """Ask the lake for the caller of the request, in one of a few threads, which wait for requests to the store."""
    lake: Lake = request.app.state.lake
    rights = caller_of(request).rights
    limited = LimitedLake(lake, may_read=rights.may_read, may_write=rights.may_write)
    return await anyio.to_thread.run_sync(lambda: look(limited), limiter=request.app.state.threads)
