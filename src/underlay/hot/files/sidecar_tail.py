"""Grows a partition's `_pm` version by version, without reading what is in it.

What `pm.format.encode.append` derives from the whole sidecar is kept: where the newest version ends, its checksum, and
the offsets of its blocks. So a version costs what is new in it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from underlay.errors import InvalidRequest
from underlay.pm.format.blocks import encode_block
from underlay.pm.format.checksum import resume_checksum
from underlay.pm.format.layout import FOOTER, FOOTER_TAIL_BYTES, MAX_BLOCK_OFFSET, FooterFlag
from underlay.pm.format.sidecar import Sidecar, committed_size, decode
from underlay.pm.format.values import Buffer, SidecarBlock

_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_SEQ_TXN = int(FooterFlag.SEQ_TXN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarEnd:
    """Where a sidecar ends. `size` is the committed size of the version to follow, `base` that of the newest published
    one: they differ when a crash left a version that was never committed. `crc` is the checksum that stands at the end
    of the former, `between` are the bytes from there to `base`."""

    size: int
    base: int
    crc: int
    between: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarVersion:
    """What a version says of `data.parquet`."""

    footer_offset: int
    footer_length: int
    unused_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownSidecar:
    """The bytes to write at `begin`, where the new blocks then lie, and the end of the sidecar with them."""

    begin: int
    data: bytes
    offsets: tuple[int, ...]
    end: SidecarEnd


def end_of_sidecar(data: Buffer, parquet_size: int) -> tuple[Sidecar, SidecarEnd]:
    """The version for a data file of this size, and where the sidecar ends. Raises Damaged, VersionNotFound."""
    base = committed_size(data)
    sidecar = decode(data, size=base, parquet_size=parquet_size)
    at = sidecar.footer.crc_offset
    (crc,) = _U32.unpack_from(data, at)
    return sidecar, SidecarEnd(size=sidecar.size, base=base, crc=crc, between=bytes(data[at:base]))


def grow(end: SidecarEnd, blocks: Sequence[int | SidecarBlock], version: SidecarVersion) -> GrownSidecar:
    """The next version: its blocks in order, each where it lies already or new."""
    out = bytearray()
    offsets = []
    for block in blocks:
        if isinstance(block, int):
            offsets.append(block)
            continue
        out += bytes(-(end.base + len(out)) % 8)
        offsets.append(end.base + len(out))
        out += encode_block(block)
    if end.base + len(out) > MAX_BLOCK_OFFSET:
        raise InvalidRequest("a sidecar cannot grow past 32 GiB", found=end.base + len(out))
    footer = FOOTER.struct.pack(
        version.footer_offset,
        version.footer_length,
        len(offsets),
        version.unused_bytes,
        end.size,
        _SEQ_TXN,
    )
    footer += (np.array(offsets, np.int64) >> 3).astype("<u4").tobytes() + _I64.pack(0)
    out += footer
    crc = resume_checksum(end.crc, end.between + out)
    out += _U32.pack(crc) + _U32.pack(len(footer) + 4)
    size = end.base + len(out)
    tail = bytes(out[-FOOTER_TAIL_BYTES:])
    return GrownSidecar(
        begin=end.base,
        data=bytes(out),
        offsets=tuple(offsets),
        end=SidecarEnd(size=size, base=size, crc=crc, between=tail),
    )
