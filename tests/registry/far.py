"""A store that counts as remote, so that registries are asked, and is as fast as the one below it; its registry."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import underlay
from underlay.registry.registry import Registry
from underlay.store import Store, open_store
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")


class FarStore(StoreWrapper):
    """Says that it is elsewhere."""

    is_remote = True

    @property
    def url(self) -> str:
        return "far://" + self.inner.url.partition("://")[2]

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return call()


def far_store() -> Store:
    return FarStore(open_store(f"memory://{os.urandom(6).hex()}"))


def registry_of(lake: underlay.Lake) -> Registry:
    assert lake.registry is not None
    return lake.registry
