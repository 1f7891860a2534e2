"""A store that counts, and looks remote by its URL."""

from __future__ import annotations

from obstore.store import MemoryStore

from underlay.store.remote import RemoteStore
from underlay.store.testing.counting import CountingStore


def remote_store(url: str = "s3://bucket/lake") -> CountingStore:
    return CountingStore(RemoteStore(MemoryStore(), url))
