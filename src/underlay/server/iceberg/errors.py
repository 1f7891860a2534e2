"""Errors as Iceberg's REST catalogs have them: the specification's ErrorModel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from underlay.errors import UnderlayError
from underlay.server.common.problem import Problem, problem_of

_TYPES = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    409: "CommitFailedException",
    503: "ServiceUnavailableException",
}


class MissingNamespace(Exception):
    """There is no such namespace, or the token may not see a table in it."""


class CatalogRoute(APIRoute):
    """An endpoint whose errors Iceberg's clients understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint, with its errors as answers."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except MissingNamespace as error:
                return error_response(404, "NoSuchNamespaceException", f"there is no namespace {error}")
            except RequestValidationError as error:
                return error_response(400, "BadRequestException", str(error.errors())[:1000])
            except (Problem, UnderlayError, OSError) as error:
                return _answer_to(error)

        return answer


def error_response(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """An ErrorModel."""
    body = {"error": {"message": message, "type": kind, "code": status}}
    return JSONResponse(body, status_code=status, headers={"Cache-Control": "no-store", **(headers or {})})


def _answer_to(error: Exception) -> Response:
    problem = problem_of(error)
    kind = _TYPES.get(problem.status, "ServerErrorException")
    if problem.code == "table_not_found":
        kind = "NoSuchTableException"
    elif problem.code == "not_exportable":
        kind = "NotExportableException"
    return error_response(problem.status, kind, _message(problem), _headers(problem))


def _message(problem: Problem) -> str:
    return problem.detail if problem.hint is None else f"{problem.detail}. {problem.hint}"


def _headers(problem: Problem) -> dict[str, str]:
    found = {} if problem.challenge is None else {"WWW-Authenticate": problem.challenge}
    if problem.retry_after_seconds is not None:
        found["Retry-After"] = str(problem.retry_after_seconds)
    return found
