"""Limits connections: requests that trickle in, answers that nobody reads, and too many at once.

uvicorn waits for each of these as long as the client likes, so a client that sends a byte a minute on many connections
locks everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from underlay.server.access.guard import HEADERS
from underlay.server.common.problem import MEDIA_TYPE, Problem
from underlay.server.common.settings import ServerLimits
from underlay.server.formats.encode import json_text

_BODY_BYTES_A_SECOND = 1000
"""A body that arrives more slowly than this times out."""
_FULL = Problem(
    status=503, code="too_many_connections", detail="the server has too many connections", retry_after_seconds=1
)
_WRONG = Problem(status=400, code="invalid_request", detail="the request is not HTTP/1.1")


class BoundedProtocol(H11Protocol):
    """One connection. It is aborted when something takes too long: a mere close would wait until the client reads the
    rest.
    """

    _stage: Any = None  # Any: a state of h11
    _due = 0.0
    _unsent = 0
    _arriving: asyncio.TimerHandle | None = None
    _leaving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """The connection opens. It ends if no request starts within the keep-alive time."""
        super().connection_made(transport)
        self._limits: ServerLimits = self.config.app.state.settings.limits  # type: ignore[union-attr]  # ours
        self._watch()
        if len(self.connections) > self._limits.connections:
            self._refuse(_FULL)
            return
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._arriving, self._leaving):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """A part of a request arrives. An incomplete request gets a deadline."""
        super().data_received(data)
        self._look_at_state(len(data))

    def on_response_complete(self) -> None:
        """An answer was sent. Part of the next request may have arrived already."""
        super().on_response_complete()
        self._look_at_state(0)

    def resume_writing(self) -> None:
        """The client read most of what was buffered."""
        super().resume_writing()
        self._unsent = 0

    def send_400_response(self, msg: str) -> None:
        """The bytes received are not HTTP."""
        self._refuse(_WRONG)

    def _refuse(self, problem: Problem) -> None:
        body = json_text(problem.as_json()).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *HEADERS,
        ]
        if problem.retry_after_seconds is not None:
            headers.append((b"retry-after", str(problem.retry_after_seconds).encode()))
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (h11.Response(status_code=problem.status, headers=headers), h11.Data(data=body)):
                self.transport.write(self.conn.send(event))
            self.conn.send(h11.EndOfMessage())
        self.transport.close()

    def _look_at_state(self, size_bytes: int) -> None:
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0]):
            self._expect(state, size_bytes)
        else:
            self._stage = None

    def _expect(self, state: Any, size_bytes: int) -> None:  # noqa: ANN401  # a state of h11
        if state is not self._stage:
            self._stage = state
            is_head = state is h11.IDLE
            self._due = self.loop.time() + (self._limits.head_seconds if is_head else self._limits.body_seconds)
        elif state is h11.SEND_BODY:
            self._due += size_bytes / _BODY_BYTES_A_SECOND
        if self._arriving is None:
            self._arriving = self.loop.call_at(self._due, self._look_at_request)

    def _look_at_request(self) -> None:
        self._arriving = None
        if self._stage is None:
            return
        if self.loop.time() >= self._due and not self.flow.read_paused:
            self.transport.abort()
            return
        self._arriving = self.loop.call_at(max(self._due, self.loop.time() + 1), self._look_at_request)

    def _watch(self) -> None:
        self._leaving = self.loop.call_later(self._limits.idle_write_seconds, self._look_at_answer)

    def _look_at_answer(self) -> None:
        """Abort when the client reads nothing. Also for a closed connection, which stays open until all is sent."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent >= self._unsent > 0:
            self.transport.abort()
            return
        self._unsent = unsent
        self._watch()
