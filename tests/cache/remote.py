"""A store that counts, and looks remote by its URL."""

from __future__ import annotations

from obstore.store import MemoryStore

from underlay.store.counting import CountingStore
from underlay.store.remote import RemoteStore


def remote_store(url: str = "s3://bucket/lake") -> CountingStore:
    return CountingStore(RemoteStore(MemoryStore(), url))
