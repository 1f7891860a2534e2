"""What a server needs to take rows: writers, threads, and bounds on what is taken at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from underlay.api.lake import Lake
from underlay.server.common.hot_settings import HotSettings
from underlay.server.common.problem import Problem
from underlay.server.hot_writes.take import RowTaker
from underlay.server.hot_writes.writers import HotWriters

_THREADS = 64
"""Requests whose rows are parsed or committed at a time: those that wait for a commit are committed together."""
_RETRY_SECONDS = 1


class AdmittedBody:
    """The room that one body takes."""

    def __init__(self, service: HotService, size_bytes: int) -> None:
        self._service = service
        self.size_bytes = 0
        self.grow(size_bytes)

    def grow(self, size_bytes: int) -> None:
        """It has this size now. Raises Problem when there is no room for it."""
        more = size_bytes - self.size_bytes
        if more <= 0:
            return
        if self._service.taken_bytes and self._service.taken_bytes + more > self._service.settings.waiting_bytes:
            raise Problem(
                status=503,
                code="too_busy",
                detail="the rows that wait to be committed take all the memory for them",
                retry_after_seconds=_RETRY_SECONDS,
            )
        self._service.taken_bytes += more
        self.size_bytes = size_bytes

    def leave(self) -> None:
        """Its room is free again."""
        self._service.taken_bytes -= self.size_bytes
        self.size_bytes = 0


class HotService:
    """Takes rows. One for each server process; its methods run in the event loop."""

    def __init__(self, lake: Lake, settings: HotSettings) -> None:
        self.settings = settings
        self.writers = HotWriters(lake, settings)
        self.taker = RowTaker(self.writers, settings)
        self.threads = anyio.CapacityLimiter(_THREADS)
        self.taken_bytes = 0
        self._of_token: Counter[str] = Counter()

    @contextmanager
    def admit(self, token: str, content_length: str | None) -> Iterator[AdmittedBody]:
        """Room for a body of about this size. Raises Problem when there is none, or when the token has too many."""
        if self._of_token[token] >= self.settings.per_token:
            raise Problem(
                status=429,
                code="too_many_requests",
                detail=f"the token has {self.settings.per_token} writes at a time",
                hint="Send more rows in each.",
                retry_after_seconds=_RETRY_SECONDS,
            )
        known = content_length or "0"
        size = int(known) if known.isascii() and known.isdigit() and len(known) < 20 else 0
        admitted = AdmittedBody(self, min(size, self.settings.body_bytes))
        self._of_token[token] += 1
        try:
            yield admitted
        finally:
            self._of_token[token] -= 1
            admitted.leave()

    def close(self) -> None:
        """Commit what waits, and let other processes write the tables."""
        self.writers.close()
