"""HTTP for the client, with only the standard library: one connection that is kept open, and streamed answers."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from io import RawIOBase
from typing import Any
from urllib.parse import urlsplit

from underlay.errors import (
    Busy,
    CommitConflict,
    CommitUnknown,
    Forbidden,
    InvalidRequest,
    NotFound,
    TableNotFound,
    Unavailable,
    UnderlayError,
    UnknownColumn,
    VersionNotFound,
)

_BY_CODE: dict[str, type[UnderlayError]] = {
    kind.code: kind
    for kind in (
        Busy, CommitConflict, CommitUnknown, Forbidden, NotFound, TableNotFound, Unavailable, UnknownColumn,
        VersionNotFound,
    )
}  # fmt: skip
_BY_STATUS: dict[int, type[UnderlayError]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Busy,
    410: NotFound,
    429: Busy,
    503: Unavailable,
}


class HttpTransport:
    """Requests to one server, one at a time. Raises Unavailable when it cannot be reached."""

    def __init__(self, url: str, token: str | None, timeout_seconds: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest("not the URL of a server", expected="such as http://localhost:8080", found=url)
        self._place = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._token = token
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout_seconds, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_seconds)

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> HttpAnswer:  # Any: JSON
        """POST JSON. Raises the problem that the server answers."""
        return self._send("POST", path, json.dumps(body, allow_nan=False).encode(), headers)

    def get(self, path: str, headers: Mapping[str, str]) -> HttpAnswer:
        """GET a path. Raises the problem that the server answers."""
        return self._send("GET", path, None, headers)

    def close(self) -> None:
        """Close the connection. This cancels a statement whose rows are still arriving."""
        self._connection.close()

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        sent = {"Accept-Encoding": "identity", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            self._connection.request(method, f"{self._path}{path}", body, sent)
            answer = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Unavailable(f"the server does not answer: {error}", place=self._place) from None
        if answer.status >= 400:
            raise _error_of(answer.status, answer.read(), self._place)
        return HttpAnswer(answer, self._place)


class HttpAnswer(RawIOBase):
    """The body of an answer as a file. Raises Unavailable when it breaks off."""

    def __init__(self, answer: http.client.HTTPResponse, place: str) -> None:
        self._answer = answer
        self._place = place

    @property
    def statement(self) -> str | None:
        """The id that the server gave to the statement."""
        return self._answer.headers.get("Underlay-Statement")

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes; all of them without a size."""
        try:
            return self._answer.read() if size is None or size < 0 else self._answer.read(size)
        except (OSError, http.client.HTTPException):
            raise Unavailable(
                "the connection ended before the rows did",
                place=self._place,
                hint="Ask GET /v1/statements/" + (self.statement or "…") + " for the reason.",
            ) from None


def _error_of(status: int, body: bytes, place: str) -> UnderlayError:
    """The error that the server's problem describes."""
    try:
        known: dict[str, Any] = json.loads(body)  # Any: JSON
    except ValueError:
        known = {}
    kind = _BY_CODE.get(known.get("code", ""), _BY_STATUS.get(status, InvalidRequest))
    at = known.get("position")
    where = f"line {at['line']}, column {at['column']}" if isinstance(at, dict) else place
    error = kind(str(known.get("detail", f"status {status}")), place=where, hint=known.get("hint"))
    if isinstance(error, CommitUnknown) and known.get("commit_id"):
        error.of(known["commit_id"])
    return error
