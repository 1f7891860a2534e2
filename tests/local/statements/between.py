"""A store on which another commit lands at a chosen moment."""

from __future__ import annotations

from collections.abc import Callable

from underlay.store import Store
from underlay.store.testing.wrapper import StoreMethod, StoreWrapper


class Between(StoreWrapper):
    """Once it is armed, acts just before a root is put: the first, or the one `after` so many others."""

    def __init__(self, inner: Store, act: Callable[[], object], after: int = 0) -> None:
        super().__init__(inner)
        self._act = act
        self._after = after
        self.is_armed = False

    def around(self, request, call, received_bytes):
        if self.is_armed and request.op is StoreMethod.CREATE and request.keys[0].endswith(".root"):
            self._after -= 1
            if self._after < 0:
                self.is_armed = False
                self._act()
        return call()
