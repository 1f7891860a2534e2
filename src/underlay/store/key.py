"""Keys: the names of objects, the same on every store.

A key is one or more segments joined by `/`. What one store would refuse or read differently is refused on all:

- no empty segment (so no `/` at either end), no `.` and no `..`
- no control characters, nothing that UTF-8 cannot carry
- no segment that begins like a temporary file of the local store
- at most 1,024 bytes, and 255 in a segment
"""

from __future__ import annotations

import re

from underlay.errors import InvalidRequest

TEMPORARY = ".tmp-"
"""The prefix of files that the local store is still writing. They are not objects."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_KEY_BYTES = 1024
_SEGMENT_BYTES = 255


def check_key(key: str) -> str:
    """`key`, or InvalidRequest with what is wrong with it."""
    problem = _problem(key)
    if problem is not None:
        raise InvalidRequest(
            problem, place=f"key {key!r}", hint="A key is segments joined by '/', such as a/b.parquet."
        )
    return key


def check_folder(folder: str) -> str:
    """`folder` without a `/` at its end; the empty string is the whole store."""
    folder = folder.removesuffix("/")
    return check_key(folder) if folder else ""


def is_key(key: str) -> bool:
    """Whether `key` may name an object."""
    return _problem(key) is None


def _problem(key: str) -> str | None:
    try:
        segments = key.encode().split(b"/")
    except UnicodeEncodeError:
        return "the key is not text that UTF-8 can carry"
    if b"" in segments:
        return "the key is empty or has an empty segment"
    if b"." in segments or b".." in segments:
        return "the key has a segment that is '.' or '..'"
    if _CONTROL.search(key):
        return "the key has a control character"
    if TEMPORARY in key and any(segment.startswith(TEMPORARY.encode()) for segment in segments):
        return f"the key has a segment that begins with {TEMPORARY}, which marks temporary files"
    if len(key.encode()) > _KEY_BYTES or max(map(len, segments)) > _SEGMENT_BYTES:
        return f"the key is longer than {_KEY_BYTES} bytes, or one of its segments than {_SEGMENT_BYTES}"
    return None
