"""A store whose clock can be put forward: what was put before is then old."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from underlay.store.store import Store
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")


class LateStore(StoreWrapper):
    """Passes everything on; its clock is `late` ahead of the one that stamps objects."""

    def __init__(self, inner: Store, late: timedelta = timedelta(0)) -> None:
        super().__init__(inner)
        self.late = late

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        """Make the call."""
        return call()

    def now(self) -> datetime:
        """The time, later."""
        return super().now() + self.late
