"""What endpoints read from a request: its body, within limits; its sender; and the answer that it wants."""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime
from typing import Any, cast

from starlette.requests import ClientDisconnect, Request

from underlay.errors import UnderlayError
from underlay.server.access.request_log import CALLER
from underlay.server.access.tokens import ANONYMOUS, AccessToken, TokenFile
from underlay.server.common.problem import Problem
from underlay.server.common.settings import ServerSettings
from underlay.server.formats.formats import ResultFormat, choose_compression, choose_format
from underlay.server.statements.request import StatementRequest, check_text, read_json, read_request
from underlay.server.statements.service import StatementService
from underlay.server.worker.job import Output

_log = logging.getLogger(__name__)
_SQL_TYPES = ("application/sql", "application/x-sql")
_KEY_CHARS = 128
_CHALLENGE = 'Bearer realm="underlay"'


def settings_of(request: Request) -> ServerSettings:
    """The server's settings."""
    return cast("ServerSettings", request.app.state.settings)


def service_of(request: Request) -> StatementService:
    """The server's statements."""
    return cast("StatementService", request.app.state.service)


def caller_of(request: Request) -> AccessToken:
    """Who sends the request. Raises Problem without a valid token, if the server requires one."""
    found = _caller_of(request)
    request.scope.get(CALLER, {})["name"] = found.name
    return found


def _caller_of(request: Request) -> AccessToken:
    tokens = cast("TokenFile | None", request.app.state.tokens)
    if tokens is None:
        return ANONYMOUS
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not text:
        raise Problem(status=401, code="no_token", detail="the request has no token", challenge=_CHALLENGE)
    try:
        found = tokens.find(text.strip(), datetime.now(UTC))
    except UnderlayError as error:  # its text names the token file's path, which is none of a stranger's business
        _log.error("%s", error)
        raise Problem(
            status=503, code="unavailable", detail="the server cannot read its tokens", retry_after_seconds=5
        ) from None
    if found is None:
        challenge = f'{_CHALLENGE}, error="invalid_token"'
        raise Problem(status=401, code="invalid_token", detail="the token is not valid", challenge=challenge)
    return found


async def read_body(request: Request) -> bytes:
    """The body. Raises Problem if it is too large."""
    most = settings_of(request).limits.body_bytes
    too_large = Problem(status=413, code="too_large", detail=f"the body is larger than {most:,} bytes")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(status=415, code="unsupported_encoding", detail="a body must not be compressed")
    given = request.headers.get("content-length", "0")
    if given.isascii() and given.isdigit() and int(given) > most:
        raise too_large
    found = bytearray()
    try:
        async for part in request.stream():
            found += part
            if len(found) > most:
                raise too_large
    except ClientDisconnect:
        raise Problem(status=499, code="client_gone", detail="the client went away") from None
    return bytes(found)


async def read_object(request: Request) -> dict[str, Any]:  # Any: JSON
    """The JSON object in the body. Raises Problem and InvalidRequest."""
    kind = _kind_of(request)
    if kind != "application/json":
        raise Problem(
            status=415,
            code="unsupported_media_type",
            detail=f"the body is {kind or 'of no type'}",
            hint="Send application/json.",
        )
    return read_json(await read_body(request))


def _kind_of(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()


async def read_statement(request: Request) -> StatementRequest:
    """The statement in the body: JSON, or bare SQL. Raises Problem and InvalidRequest."""
    kind = _kind_of(request)
    is_plain = kind == "text/plain" and "origin" not in request.headers
    if kind != "application/json" and kind not in _SQL_TYPES and not is_plain:
        raise Problem(
            status=415,
            code="unsupported_media_type",
            detail=f"the body is {kind or 'of no type'}",
            hint="Send application/json, or the bare statement as application/sql.",
        )
    body = await read_body(request)
    limits = settings_of(request).limits
    known: dict[str, Any] = read_json(body) if kind == "application/json" else {"sql": _text(body)}
    found = read_request(known, limits)
    if len(found.sql.encode()) > limits.sql_bytes:
        raise Problem(status=413, code="too_large", detail=f"the statement is longer than {limits.sql_bytes:,} bytes")
    return found


def read_output(request: Request, asked: StatementRequest, format: str | None = None) -> Output:
    """The format of the answer. Raises NotAcceptable."""
    chosen = choose_format(request.headers.get("accept"), format)
    return Output(
        format=chosen.value,
        compression=choose_compression(request.headers.get("accept-encoding"), chosen),
        shape=asked.shape,
        integers_as_text=asked.integers_as_text,
    )


def read_key(request: Request) -> str | None:
    """The idempotency key of a change. Raises Problem."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= _KEY_CHARS and key.isascii() and key.isprintable()):
        raise Problem(
            status=400,
            code="invalid_request",
            detail=f"Idempotency-Key is 1 to {_KEY_CHARS} printable ASCII characters",
        )
    return key


def headers_of(output: Output) -> dict[str, str]:
    """Headers that depend on the answer's format."""
    found = {"Vary": "Accept, Accept-Encoding, Authorization", "Cache-Control": "private, no-cache"}
    if output.compression is not None:
        found["Content-Encoding"] = output.compression
    if output.format == ResultFormat.PARQUET.value:
        found["Content-Disposition"] = 'attachment; filename="result.parquet"'
    return found


def salt_of(caller: AccessToken, output: Output) -> str:
    """What an ETag depends on besides the statement: the format of the answer, and its caller."""
    text = f"{output}|{caller.rights}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(body: bytes) -> str:
    try:
        return check_text(body.decode())
    except UnicodeDecodeError:
        raise Problem(status=400, code="invalid_request", detail="the statement is not UTF-8") from None
