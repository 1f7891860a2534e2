"""JSON objects that carry their own checksum: roots and catalog entries, whose checksum no other object stores.

The first member is `crc`: eight hexadecimal digits of the CRC-32 of all bytes after it. The object is JSON as before.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from deflate import crc32

from underlay.errors import ChecksumMismatch, Malformed

_BEGIN = b'{"crc":"'
_DIGITS = 8
_AFTER = b'",'
_HEAD_BYTES = len(_BEGIN) + _DIGITS + len(_AFTER)
UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not what was written; the last is for values nested too deeply."""
IDS_BYTES = 224
"""The ids of a root or a catalog entry are among its first bytes. No such object is shorter than this."""
_IDS = re.compile(rb'"commit_id":"([^"\\]+)","parent_id":(?:null|"([^"\\]+)")')


class CommitIds(NamedTuple):
    """The ids that tie an object of a chain to the one before it."""

    commit_id: str
    parent_id: str | None


class _StoredIds(msgspec.Struct):
    commit_id: str
    parent_id: str | None = None


class _StoredTime(msgspec.Struct):
    committed_us: int


def seal(json: bytes) -> bytes:
    """The JSON object with its checksum in front."""
    rest = json[1:]
    return b"".join((_BEGIN, f"{crc32(rest):08x}".encode(), _AFTER, rest))


def unseal(data: bytes | memoryview) -> bytes:
    """The JSON object without its checksum. Raises Malformed, ChecksumMismatch."""
    octets = bytes(data)
    digits = octets[len(_BEGIN) : len(_BEGIN) + _DIGITS]
    rest = octets[_HEAD_BYTES:]
    if not octets.startswith(_BEGIN) or octets[_HEAD_BYTES - len(_AFTER) : _HEAD_BYTES] != _AFTER:
        raise Malformed("there is no checksum at the beginning", expected=_BEGIN, found=octets[:_HEAD_BYTES])
    found = f"{crc32(rest):08x}".encode()
    if found != digits:
        raise ChecksumMismatch(
            "the object is damaged or cut short", expected=digits.decode(errors="replace"), found=found.decode()
        )
    return b"{" + rest


def ids_at_beginning(data: bytes | memoryview) -> CommitIds | None:
    """The ids, from the first `IDS_BYTES` of an object; None when they are not there. They are not checked against the
    checksum."""
    found = _IDS.search(bytes(data))
    if found is None:
        return None
    parent = found[2]
    return CommitIds(found[1].decode(errors="replace"), None if parent is None else parent.decode(errors="replace"))


def decode_ids(data: bytes | memoryview) -> CommitIds:
    """The ids of a whole object, whatever else is in it. Raises Malformed, ChecksumMismatch."""
    try:
        found = msgspec.json.decode(unseal(data), type=_StoredIds)
    except UNDECODED as error:
        raise Malformed(f"not an object of a chain: {error}") from error
    return CommitIds(found.commit_id, found.parent_id)


def decode_committed_us(data: bytes | memoryview) -> int:
    """When a whole object was committed, whatever else is in it. Raises Malformed, ChecksumMismatch."""
    try:
        return msgspec.json.decode(unseal(data), type=_StoredTime).committed_us
    except UNDECODED as error:
        raise Malformed(f"not an object of a chain: {error}") from error
