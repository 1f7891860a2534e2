"""How a write is refused: in the JSON of the server whose client asked, so that the client shows it.

| asked by | body |
|---|---|
| QuestDB's client: `/write` | `{"code": "invalid", "message": "failed to parse line protocol:…", "line": 2, …}` |
| InfluxDB 2: `/api/v2/write` | `{"code": "invalid", "message": "unable to parse 'm f=': missing field value: …"}` |
| InfluxDB 1: `/write?db=…` | `{"error": "unable to parse …"}` |

All have `errors` besides: line, column, and what is wrong, of each faulty line.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import Enum

from starlette.responses import JSONResponse

from underlay.server.common.problem import Problem
from underlay.server.hot_writes.take import LinesRefused

_TYPE_CONFLICT = "field type conflict"
_SHOWN_LINES = 20
_CODES = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    409: "conflict",
    413: "request too large",
    415: "invalid",
    422: "unprocessable entity",
    429: "too many requests",
    503: "unavailable",
}


class WriteApi(Enum):
    """Which server's interface a client speaks."""

    QUESTDB = "questdb"
    INFLUXDB_1 = "influxdb 1"
    INFLUXDB_2 = "influxdb 2"


def refuse_lines(refused: LinesRefused, api: WriteApi) -> JSONResponse:
    """The answer to lines that are wrong: each of them, none was taken."""
    problems = refused.problems
    errors = [{"line": one.line, "column": one.column, "message": one.problem, "text": one.text} for one in problems]
    shown = problems[:_SHOWN_LINES]
    more = f"\nand {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
    if api is WriteApi.QUESTDB:
        lines = "".join(f"\nerror in line {one.line}: {one.problem} (column {one.column})" for one in shown)
        message = f"failed to parse line protocol:errors encountered on line(s):{lines}{more}"
        body: dict[str, object] = {"code": "invalid", "message": message, "line": problems[0].line}
        return _answer(400, {**body, "errorId": secrets.token_hex(6), "errors": errors}, message)
    is_conflict = all(one.reason == _TYPE_CONFLICT for one in problems)
    if is_conflict:
        message = "\n".join(f"{_TYPE_CONFLICT}: line {one.line}, column {one.column}: {one.problem}" for one in shown)
    else:
        message = "\n".join(
            f"unable to parse '{one.text}': {one.reason}: line {one.line}, column {one.column}: {one.problem}"
            for one in shown
        )
    return _influx(422 if is_conflict and api is WriteApi.INFLUXDB_2 else 400, message + more, api, errors=errors)


def refuse(problem: Problem, api: WriteApi) -> JSONResponse:
    """The answer to any other problem."""
    message = problem.detail if problem.hint is None else f"{problem.detail}. {problem.hint}"
    headers = {}
    if problem.retry_after_seconds is not None:
        headers["Retry-After"] = str(problem.retry_after_seconds)
    if problem.challenge is not None:
        headers["WWW-Authenticate"] = problem.challenge
    if api is WriteApi.QUESTDB:
        body = {"code": _CODES.get(problem.status, "internal error"), "message": message}
        return _answer(problem.status, {**body, "errorId": secrets.token_hex(6)}, message, headers)
    return _influx(problem.status, message, api, headers)


def _influx(
    status: int,
    message: str,
    api: WriteApi,
    headers: Mapping[str, str] | None = None,
    errors: list[dict[str, object]] | None = None,
) -> JSONResponse:
    more = {} if errors is None else {"errors": errors, "line": errors[0]["line"]}
    if api is WriteApi.INFLUXDB_1:
        return _answer(status, {"error": message, **more}, message, headers)
    return _answer(status, {"code": _CODES.get(status, "internal error"), "message": message, **more}, message, headers)


def _answer(
    status: int, body: Mapping[str, object], message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    told = message.partition("\n")[0][:500].encode("ascii", "replace").decode()
    known = {"Cache-Control": "no-store", "X-Influxdb-Error": told, **(headers or {})}
    return JSONResponse(body, status_code=status, headers=known)
