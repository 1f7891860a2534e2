"""Logs each request when its answer ends: who asked for what, the status, how long it took, and how many bytes."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from time import perf_counter
from typing import Any

from underlay.server.access.guard import App, Receive, Scope, Send
from underlay.server.common.log_lines import REQUESTS

_log = logging.getLogger(REQUESTS)
_LINKS = "/v1/links/"
_MOST = 500
CALLER = "underlay.caller"
"""The key in a request's scope under which its sender is noted."""


class RequestLog:
    """An ASGI middleware. Queries are not logged: they may have SQL; nor are the secrets of links."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caller: dict[str, str] = {}
        scope[CALLER] = caller
        status, size, has_ended, statement = 500, 0, False, None
        began = perf_counter()

        async def send_counted(message: MutableMapping[str, Any]) -> None:  # Any: as ASGI has it
            nonlocal status, size, has_ended, statement
            if message["type"] == "http.response.start":
                status = message["status"]
                statement = dict(message.get("headers", ())).get(b"underlay-statement")
            else:
                size += len(message.get("body", b""))
                has_ended = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            fields = {
                "method": scope["method"],
                "path": _shown(scope["path"]),
                "status": status,
                "ms": round((perf_counter() - began) * 1000, 1),
                "bytes": size,
                "is_whole": has_ended,
                "client": (scope.get("client") or [None])[0],
                "caller": caller.get("name"),
                "statement": None if statement is None else statement.decode("latin-1"),
            }
            _log.info("request", extra={"fields": {name: value for name, value in fields.items() if value is not None}})


def _shown(path: str) -> str:
    before, link, _ = path.partition(_LINKS)
    return f"{before}{link}…" if link else path[:_MOST]
