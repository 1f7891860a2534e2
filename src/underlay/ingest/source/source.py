"""A source as it was found: its canonical uri, and what identifies its content.

A uri is `file:///absolute/path`, percent-encoded, without `.` and `..`, or `s3://bucket/key` with the unencoded key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import msgspec

from underlay.errors import InvalidRequest
from underlay.store.open import Option, open_store
from underlay.store.store import Store

LOCAL = "file"


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A source: its uri, what identifies its content, and its size."""

    uri: str
    identity: str
    """The store's etag; for a local file its size, modification time and inode."""
    size_bytes: int


def local_path(uri: str) -> str | None:
    """The path of a `file:` uri, None for any other."""
    scheme, _, rest = uri.partition("://")
    return os.fsdecode(unquote_to_bytes(rest)) if scheme == LOCAL else None


def store_of(uri: str, options: Mapping[str, Option] | None) -> tuple[Store, str]:
    """The store of a remote object, opened once in a process, and its key or pattern of keys."""
    root, key = bucket_of(uri)
    return _open_once(root, tuple(sorted((options or {}).items()))), key


def bucket_of(uri: str) -> tuple[str, str]:
    """The URL of an object's bucket, and its key."""
    scheme, _, rest = uri.partition("://")
    bucket, separator, key = rest.partition("/")
    if not bucket or not separator:
        raise InvalidRequest("not the URL of an object", found=uri, hint="Write s3://bucket/key or a path.")
    return f"{scheme}://{bucket}", key


def local_identity(status: os.stat_result) -> str:
    """Identifies a local file's content, as the local store's etag does."""
    return f'"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"'


def local_modified_us(identity: str) -> int:
    """When a local file was modified, taken from its identity."""
    return int(identity.split("-")[1], 16) // 1000


@lru_cache(maxsize=64)
def _open_once(url: str, options: tuple[tuple[str, Option], ...]) -> Store:
    return open_store(url, dict(options))
