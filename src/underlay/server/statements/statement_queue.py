"""The queue of statements: first come, first served, with limits for running, for waiting, and for each token."""

from __future__ import annotations

import asyncio
from collections import deque

from underlay.server.common.problem import Problem


class Ticket:
    """A place in the queue. `turn` is done when the statement may run."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_turn = False

    def give(self) -> None:
        """Let the statement run."""
        self.has_turn = True
        self.turn.set_result(None)

    def refuse(self, problem: Problem) -> None:
        """End the wait with a problem."""
        if not self.turn.done():
            self.turn.set_exception(problem)


class Turns:
    """The queue."""

    def __init__(self, *, running: int, waiting: int, per_token: int) -> None:
        self._most_running = running
        self._most_waiting = waiting
        self._per_token = per_token
        self._queue: deque[Ticket] = deque()
        self._of_token: dict[str, int] = {}
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many statements wait."""
        return len(self._queue)

    def enter(self, token: str) -> Ticket:
        """Take a place in the queue. Raises Problem when there is none."""
        if self._of_token.get(token, 0) >= self._per_token:
            raise _full(f"the token has {self._per_token} statements already")
        if self.running >= self._most_running and len(self._queue) >= self._most_waiting:
            raise _full("too many statements are waiting")
        self._of_token[token] = self._of_token.get(token, 0) + 1
        ticket = Ticket(token)
        self._queue.append(ticket)
        self._go_on()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place back."""
        if ticket.has_turn:
            self.running -= 1
        else:
            self._queue.remove(ticket)
            ticket.turn.cancel()
        self._of_token[ticket.token] -= 1
        if not self._of_token[ticket.token]:
            del self._of_token[ticket.token]
        self._go_on()

    def _go_on(self) -> None:
        for ticket in list(self._queue):
            if self.running >= self._most_running:
                return
            if not ticket.turn.done():
                self._queue.remove(ticket)
                self.running += 1
                ticket.give()


def _full(detail: str) -> Problem:
    return Problem(status=429, code="too_many_statements", detail=detail, retry_after_seconds=1)
