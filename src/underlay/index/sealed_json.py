"""JSON objects with a checksum of themselves: roots and catalog entries, which no other object vouches for.

The first member is `crc`: eight hexadecimal digits of the CRC-32 of all bytes after it. The object is JSON as before.
"""

from __future__ import annotations

from deflate import crc32

from underlay.errors import ChecksumMismatch, Malformed

_BEGIN = b'{"crc":"'
_DIGITS = 8
_AFTER = b'",'
_HEAD_BYTES = len(_BEGIN) + _DIGITS + len(_AFTER)


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
