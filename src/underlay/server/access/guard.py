"""Checks each request before anything else does: is it meant for us, and does it come from one of our pages?

A website can make a browser send requests to a server on loopback. But it can neither choose the Host header, which is
the website's own name, nor leave out Origin, so these are checked on every request, before its body is read. Only the
page itself may be opened by a link on another site: it holds nothing of the lake, and runs nothing on its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from underlay.server.common.problem import MEDIA_TYPE, Problem
from underlay.server.formats.encode import json_text

Scope: TypeAlias = MutableMapping[str, Any]  # Any: as ASGI has it
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]  # Any: as ASGI has it
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]  # Any: as ASGI has it
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
HEADER_BYTES = 32 << 10
_FOREIGN = frozenset((b"cross-site", b"same-site"))
_SMALL_BYTES = 64 << 10
"""A body up to this size has arrived completely by the time of an answer that did not read it."""
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


class RequestGuard:
    """An ASGI middleware."""

    def __init__(self, app: App, *, hosts: frozenset[str], public_url: str | None, root_path: str) -> None:
        self._app = app
        self._root_path = root_path
        self._hosts = hosts
        self._public = _origin(public_url) if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, or pass the request on and add headers to the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_unread = _has_long_body(scope)

        async def receive_watched() -> MutableMapping[str, Any]:  # Any: as ASGI has it
            nonlocal is_unread
            message = await receive()
            is_unread = is_unread and message.get("more_body", False)
            return message

        async def send_guarded(message: MutableMapping[str, Any]) -> None:  # Any: as ASGI has it
            if message["type"] == "http.response.start":
                # an answer to a half-read body closes the connection: else the rest would be read for as long as it
                # arrives
                ends = ((b"connection", b"close"),) if is_unread else ()
                given = message.get("headers", ())
                names = {name.lower() for name, _ in given}
                usual = (header for header in HEADERS if header[0] not in names)
                message = {**message, "headers": [*given, *usual, *ends]}
            await send(message)

        refused = self._refused(scope)
        if refused is None and scope["path"] == self._root_path:
            # the page's addresses are relative: without the slash they would lead out of its path
            moved = [(b"location", f"{self._root_path}/".encode()), (b"content-length", b"0")]
            await send_guarded({"type": "http.response.start", "status": 308, "headers": moved})
            await send_guarded({"type": "http.response.body", "body": b""})
        elif refused is None:
            await self._app(self._below_root(scope), receive_watched, send_guarded)
        else:
            await send_problem(refused, send_guarded)

    def _refused(self, scope: Scope) -> Problem | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
            return Problem(status=431, code="too_large", detail=f"the headers are larger than {HEADER_BYTES:,} bytes")
        host = headers.get(b"host", b"").decode("latin-1")
        if _host_name(host) not in self._hosts:
            return Problem(
                status=421,
                code="wrong_host",
                detail="the Host header names another server",
                hint="Start it with --public-url to give it a name.",
            )
        own = {_origin(f"{scope['scheme']}://{host}"), self._public} - {None}
        is_foreign = any(
            (name == b"origin" and _origin(value.decode("latin-1")) not in own)
            or (name == b"sec-fetch-site" and value.strip().lower() in _FOREIGN)
            for name, value in scope["headers"]
        )
        if is_foreign and not self._opens_page(scope, headers):
            return Problem(status=403, code="wrong_origin", detail="the request comes from a page of another site")
        return None

    def _below_root(self, scope: Scope) -> Scope:
        """The request as ASGI has it below a path, whether or not the proxy took the path away."""
        if not self._root_path:
            return scope
        path = scope["path"]
        whole = path if path.startswith(f"{self._root_path}/") else f"{self._root_path}{path}"
        return {**scope, "root_path": self._root_path, "path": whole}

    def _opens_page(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a browser opens the page as a document of its own, as it does for a link."""
        is_navigation = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
        at_root = scope["path"] in ("/", self._root_path, f"{self._root_path}/")
        return scope["method"] in ("GET", "HEAD") and at_root and is_navigation and b"origin" not in headers


def _has_long_body(scope: Scope) -> bool:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or not length.isdigit() or int(length[:20]) > _SMALL_BYTES


async def send_problem(problem: Problem, send: Send) -> None:
    """A problem as a whole answer."""
    body = json_text(problem.as_json()).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def host_names(host: str, public_url: str | None) -> frozenset[str]:
    """The names by which the server may be addressed: loopback's, the address it listens on, and its public one."""
    given = {host.strip("[]").lower()} if host not in ("0.0.0.0", "::") else set()
    public = urlsplit(public_url).hostname if public_url else None
    return LOOPBACK | given | ({public.lower()} if public else set())


def _host_name(host: str) -> str:
    if any(sign in host for sign in "/@?# \t"):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _origin(url: str) -> str | None:
    """Scheme, host and port, as browsers write an origin; None for none, such as `null`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname:
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname.lower()}:{port or usual}"
