"""The sidecar's checksum: CRC-32 (zlib's polynomial) over every byte from 8 to the footer's CRC field.

It covers earlier versions, their checksums and any dead tail between them, so a newer checksum is computed by
resuming an older one. libdeflate computes it at memory speed, which is what makes checking on every open affordable.
"""

from __future__ import annotations

from deflate import crc32

from underlay.pm.format.values import Buffer

COVERAGE_BEGIN = 8
"""The committed size at offset 0 is patched last and is in no checksum."""


def checksum(data: Buffer, end: int) -> int:
    """The checksum that the footer with its CRC field at `end` must store."""
    return crc32(memoryview(data)[COVERAGE_BEGIN:end])


def identity(data: Buffer) -> int:
    """A CRC-32 that distinguishes a sidecar from others of its size: over all but its last eight bytes.

    These hold a checksum of the rest, and the CRC-32 over bytes that end with their own CRC-32 is always the same.
    """
    return crc32(memoryview(data)[:-8])


def resume_checksum(stored: int, following: Buffer) -> int:
    """The checksum of bytes whose first part has checksum `stored` and whose rest is `following`."""
    return crc32(following, stored)
