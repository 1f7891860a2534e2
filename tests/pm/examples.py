"""Small sidecars that tests build themselves."""

from __future__ import annotations

import struct

import numpy as np

from underlay.pm.format.blocks import LongBounds, empty_chunks, lay_out
from underlay.pm.format.checksum import checksum
from underlay.pm.format.encode import create
from underlay.pm.format.layout import StatFlag
from underlay.pm.format.types import DESIGNATED, Tag
from underlay.pm.format.values import Header, SidecarBlock, SidecarColumn, VersionFields

INLINE_EXACT = int(StatFlag(0b10111111))
LONG_EXACT = int(StatFlag(0b10101101))

TIMESTAMP = SidecarColumn(name="ts", physical_type=2, type=Tag.TIMESTAMP | DESIGNATED, id=0)
NUMBER = SidecarColumn(name="n", physical_type=2, type=Tag.LONG, id=1, flags=4, max_def_level=1)
TEXT = SidecarColumn(name="text", physical_type=6, type=Tag.VARCHAR, id=2, flags=4, max_def_level=1)

THREE = Header(columns=(TIMESTAMP, NUMBER, TEXT), designated_timestamp=0, sorting=(0,))


def version(parquet_footer_offset: int = 500, **fields) -> VersionFields:
    """A version whose Parquet file is 208 bytes longer than where its footer begins."""
    fields.setdefault("scratchpad", ())
    return VersionFields(parquet_footer_offset=parquet_footer_offset, parquet_footer_length=200, **fields)


def block(
    number: int, *, rows: int = 3, text: str | None = None, blooms: dict[int, bytes] | None = None
) -> SidecarBlock:
    """A block of `THREE` whose bounds all follow from `number`; `text` is a long upper and lower bound."""
    chunks = empty_chunks(3)
    chunks["codec"] = 7
    chunks["encodings"] = 1
    chunks["num_values"] = rows
    chunks["begin"] = 4 + 100 * number + np.arange(3) * 30
    chunks["size"] = 30
    chunks["stat_flags"] = (INLINE_EXACT, INLINE_EXACT, LONG_EXACT if text else 0)
    chunks["stat_sizes"] = (0x88, 0x88, 0)
    chunks["min_stat"][:2] = number * 1000
    chunks["max_stat"][:2] = number * 1000 + 999
    bounds = {2: LongBounds(text.encode(), text.encode())} if text else {}
    return lay_out(rows, chunks, bounds, blooms or {})


def sidecar_bytes(blocks: int = 3, header: Header = THREE, **fields) -> bytes:
    """A sidecar of one version."""
    return create(header, [block(i) for i in range(blocks)], version(**fields))


def patched(data: bytes, at: int, kind: str, value: int, *, mend: bool = True) -> bytes:
    """`data` with one field changed and, with `mend`, the checksum right again."""
    out = bytearray(data)
    struct.pack_into(f"<{kind}", out, at, value)
    if mend:
        struct.pack_into("<I", out, len(out) - 8, checksum(out, len(out) - 8))
    return bytes(out)
