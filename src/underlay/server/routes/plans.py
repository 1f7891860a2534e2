"""`/v1/plan`: what a query would read, and why it skips the rest; reads metadata only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from underlay.errors import InvalidRequest
from underlay.server.formats.formats import MEDIA_TYPES, ResultFormat
from underlay.server.routes.answers import RowsResponse, first_of
from underlay.server.routes.catalog import look_output, moment_of, read_order
from underlay.server.routes.describe import PLAN_BODY, PROBLEMS, ROWS
from underlay.server.routes.requests import caller_of, headers_of, read_object, service_of, settings_of
from underlay.server.statements.request import PLAN_ONLY, read_request
from underlay.server.statements.statement import RunStatement
from underlay.server.worker.job import LookJob

router = APIRouter(tags=["sql"])


@router.post("/v1/plan", responses={**ROWS, **PROBLEMS}, openapi_extra=PLAN_BODY, response_model=None)
async def post_plan(request: Request) -> Response:
    """For each scan of a query, or of a table with a condition: which step drops how many files, blocks and bytes, and
    what is left to read. With `scan` the block map of that scan instead, as in `/v1/tables/{name}/blocks`."""
    caller = caller_of(request)
    known = await read_object(request)
    limits = settings_of(request).limits
    own = {name: known.pop(name, None) for name in PLAN_ONLY}
    is_of_table = known.get("sql") is None
    if is_of_table:
        known["sql"] = ""
    asked = read_request(known, limits)
    job = LookJob(
        what="plan",
        rights=caller.rights,
        sql=None if is_of_table else asked.sql,
        parameters=asked.parameters,
        as_of=moment_of(own["version"], asked.as_of),
        **_of_table(own, is_of_table=is_of_table),
        scan=_integer(own, "scan"),
        column=_text(own, "column"),
        is_sorted=read_order(_text(own, "order") or "file"),
        bins=_integer(own, "bins", least=1),
    )
    output = look_output(request, None)
    shown = asked if not is_of_table else replace(asked, sql=f"{job.table}: {job.where or ''}")
    statement = RunStatement(request=shown, owner=caller, kind="POST /v1/plan")
    parts = service_of(request).stream(statement, replace(job, output=output))
    await first_of(parts, request)
    return RowsResponse(
        parts,
        media_type=MEDIA_TYPES[ResultFormat(output.format if job.scan is not None else "json")],
        headers={**headers_of(output), "Underlay-Statement": statement.id},
        idle_seconds=limits.idle_write_seconds,
        stopping=statement.stopping,
    )


def _of_table(own: dict[str, Any], *, is_of_table: bool) -> dict[str, Any]:  # Any: of each field's type
    if not is_of_table:
        given = [name for name in ("table", "where", "columns", "version") if own[name] is not None]
        if given:
            raise InvalidRequest("give either sql or a table, not both", found=", ".join(given))
        return {}
    columns = own["columns"]
    if columns is not None and not (isinstance(columns, list) and all(isinstance(one, str) for one in columns)):
        raise InvalidRequest("columns must be a list of strings")
    table = _text(own, "table")
    if table is None:
        raise InvalidRequest("there is neither sql nor a table", hint='Write {"sql": "select 1"}.')
    return {"table": table, "where": _text(own, "where"), "columns": columns, "version": _integer(own, "version")}


def _text(own: dict[str, Any], name: str) -> str | None:  # Any: JSON
    found = own[name]
    if found is not None and not isinstance(found, str):
        raise InvalidRequest(f"{name} must be a string")
    return found


def _integer(own: dict[str, Any], name: str, *, least: int = 0) -> int | None:  # Any: JSON
    found = own[name]
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= 2**53:
        raise InvalidRequest(f"{name} is out of range", expected=f"{least} to {2**53}", found=repr(found)[:80])
    return found
