"""A store through which another writer comes first: it commits just before the next root is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

T = TypeVar("T")


class MeddlingStore(StoreWrapper):
    """Passes everything on. `meddle` is called once, before a root is created; what it commits is not meddled with."""

    meddle: Callable[[], object] | None = None

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        """Make the call."""
        if self.meddle is not None and request.op is StoreMethod.CREATE and request.keys[0].endswith(".root"):
            meddle, self.meddle = self.meddle, None
            meddle()
        return call()
