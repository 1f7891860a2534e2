"""Streams rows as they are produced, until the last row, until the client leaves, or until the statement is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from underlay.server.common.problem import MEDIA_TYPE, Problem
from underlay.server.statements.service import BrokenStream

_T = TypeVar("_T")


class ProblemResponse(JSONResponse):
    """A problem."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem, statement: str | None = None) -> None:
        headers = {"Cache-Control": "no-store"}
        if problem.retry_after_seconds is not None:
            headers["Retry-After"] = str(problem.retry_after_seconds)
        if problem.challenge is not None:
            headers["WWW-Authenticate"] = problem.challenge
        super().__init__(problem.as_json(statement), status_code=problem.status, headers=headers)


class RowsResponse(Response):
    """Rows as they are produced. A client that leaves, or reads nothing for some time, ends them; so does `stopping`.

    When the rows break off, the connection is closed without the last chunk, which every client notices.
    """

    def __init__(
        self,
        parts: AsyncIterator[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str],
        idle_seconds: float,
        stopping: asyncio.Event | None = None,
    ) -> None:
        super().__init__(None, media_type=None, headers={**headers, "Content-Type": media_type})
        del self.headers["content-length"]
        self._parts = parts
        self._idle_seconds = idle_seconds
        self._stopping = stopping or asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        watched = [self._pump(send), _left(receive), self._stopping.wait()]
        tasks = [asyncio.ensure_future(one) for one in watched]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(BrokenStream):
                await close_parts(self._parts)

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for part in self._parts:
                if part:
                    async with asyncio.timeout(self._idle_seconds):
                        await send({"type": "http.response.body", "body": part, "more_body": True})
        except (BrokenStream, TimeoutError, OSError):
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def first_of(parts: AsyncIterator[bytes], request: Request) -> None:
    """Wait until the rows begin. Raises the Problem that arrives instead. If the client leaves meanwhile, the rows
    end.
    """
    try:
        await while_there(anext(parts), request)
    except BaseException:
        await close_parts(parts)
        raise


async def while_there(work: Awaitable[_T], request: Request) -> _T:
    """The outcome of the work. When the client leaves, cancels the work and raises a Problem, which nobody reads."""
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
            raise Problem(status=499, code="client_gone", detail="the client went away")
        return task.result()
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    finally:
        leaving.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def close_parts(parts: Any) -> None:  # noqa: ANN401  # an asynchronous generator, which has aclose
    """End rows that nobody reads any longer, and the statement that makes them."""
    await parts.aclose()
