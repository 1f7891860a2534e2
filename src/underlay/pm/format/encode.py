"""Writes a sidecar: creates the first version, appends the next.

Appending writes blocks and a footer after the existing bytes and changes no earlier byte except the committed size.
Blocks that did not change keep their offsets, and the checksum is resumed, so an append costs only what is new.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from underlay.errors import InvalidRequest
from underlay.pm.format.blocks import encode_block
from underlay.pm.format.checksum import checksum, resume_checksum
from underlay.pm.format.header import UNSET, encode_header, pack
from underlay.pm.format.layout import (
    FOOTER,
    MAX_BLOCK_OFFSET,
    MAX_SCRATCHPAD_BYTES,
    REQUIRED_FLAGS,
    FooterFlag,
)
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.values import Header, SidecarBlock, VersionFields

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
_ENTRY = struct.Struct("<II")
_PAIR = struct.Struct("<QQ")
_KNOWN_FLAGS = int(FooterFlag(3))

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What the header fixes for all versions: bloom columns, where their filters are, flags without a name."""

    columns: tuple[int, ...]
    external: bool
    other_flags: int

    @property
    def inline_count(self) -> int:
        """Cells that a footer has for each row group: absolute offsets of inlined filters, 0 for none."""
        return 0 if self.external else len(self.columns)


@dataclass(frozen=True, slots=True)
class AppendedTail:
    """What an append writes: `data` at byte `begin`, and `size`, the committed size to publish at offset 0 last."""

    begin: int
    data: bytes
    size: int


def create(header: Header, blocks: Sequence[SidecarBlock], version: VersionFields) -> bytes:
    """A sidecar with one version."""
    out = bytearray(encode_header(header))
    fixed = _Fixed(header.bloom_columns, header.external_blooms, header.other_flags)
    offsets = np.zeros(len(blocks), np.int64)
    cells = np.zeros((len(blocks), fixed.inline_count), np.int64)
    for i, block in enumerate(blocks):
        _check_width(block, len(header.columns))
        offsets[i], cells[i] = _place(out, 0, block, fixed)
    footer = _footer(fixed, offsets, cells, version, previous_size=0)
    out += footer
    out += _U32.pack(checksum(out, len(out))) + _U32.pack(len(footer) + 4)
    out[:8] = _U64.pack(len(out))
    return bytes(out)


def append(
    anchor: Sidecar, blocks: Sequence[int | SidecarBlock], version: VersionFields, *, base: int | None = None
) -> AppendedTail:
    """The next version after `anchor`: its row groups in order, each kept (its index in `anchor`) or new.

    `base` is where to write: the committed size that offset 0 publishes. It is larger than the anchor's when a
    crash left a published version that was never committed; that version drops out of the chain, its bytes stay.
    A version may not have fewer row groups than the one before.
    """
    header = anchor.header
    base = anchor.size if base is None else base
    if not anchor.size <= base <= len(anchor.data):
        raise InvalidRequest(
            "the append base must lie behind the anchor and inside the file",
            expected=f"{anchor.size} to {len(anchor.data)}",
            found=base,
        )
    if len(blocks) < anchor.row_group_count:
        raise InvalidRequest(
            "a version may not have fewer row groups than the one before",
            expected=f"at least {anchor.row_group_count}",
            found=len(blocks),
            hint="Write a new sidecar instead.",
        )
    fixed = _Fixed(tuple(header.bloom_columns.tolist()), header.external_blooms, header.other_flags)
    offsets, cells = _kept(anchor, blocks, fixed)
    out = bytearray()
    for i, block in enumerate(blocks):
        if isinstance(block, SidecarBlock):
            _check_width(block, header.column_count)
            offsets[i], cells[i] = _place(out, base, block, fixed)
    if version.scratchpad is None:
        version = replace(version, scratchpad=anchor.sections.scratchpad)
    footer = _footer(fixed, offsets, cells, version, previous_size=anchor.size)
    out += footer
    (stored,) = _U32.unpack_from(anchor.data, anchor.footer.crc_offset)
    between = bytes(anchor.data[anchor.footer.crc_offset : base])
    out += _U32.pack(resume_checksum(stored, between + out)) + _U32.pack(len(footer) + 4)
    return AppendedTail(base, bytes(out), base + len(out))


def _kept(anchor: Sidecar, blocks: Sequence[int | SidecarBlock], fixed: _Fixed) -> tuple[Offsets, Offsets]:
    """Block offsets and bloom cells of the row groups that are kept, zeros for the new ones."""
    kept = np.array([-1 if isinstance(block, SidecarBlock) else block for block in blocks], np.int64)
    is_kept = np.array([not isinstance(block, SidecarBlock) for block in blocks], np.bool_)
    wrong = kept[is_kept & ((kept < 0) | (kept >= anchor.row_group_count))]
    if len(wrong):
        raise InvalidRequest(
            "no such row group to keep", expected=f"below {anchor.row_group_count}", found=int(wrong[0])
        )
    offsets = np.zeros(len(blocks), np.int64)
    offsets[is_kept] = anchor.block_offsets[kept[is_kept]]
    cells = np.zeros((len(blocks), fixed.inline_count), np.int64)
    count = fixed.inline_count * anchor.row_group_count
    stored = np.frombuffer(anchor.data, "<u4", count, anchor.sections.bloom_offset).astype(np.int64) << 3
    cells[is_kept] = stored.reshape(anchor.row_group_count, fixed.inline_count)[kept[is_kept]]
    return offsets, cells


def _check_width(block: SidecarBlock, column_count: int) -> None:
    if len(block.chunks) != column_count:
        raise InvalidRequest("a block needs one chunk per column", expected=column_count, found=len(block.chunks))


def _place(out: bytearray, base: int, block: SidecarBlock, fixed: _Fixed) -> tuple[int, list[int]]:
    """Write `block` at the next multiple of 8; its offset and its bloom cells."""
    out += bytes(-(base + len(out)) % 8)
    offset = base + len(out)
    encoded = encode_block(block)
    if offset + len(encoded) > MAX_BLOCK_OFFSET:
        raise InvalidRequest("a sidecar cannot grow past 32 GiB", found=offset + len(encoded))
    out += encoded
    region = offset + len(encoded) - len(block.out_of_line)
    places = dict(block.blooms)
    allowed = () if fixed.external else fixed.columns
    if not places.keys() <= set(allowed):
        raise InvalidRequest(
            "the header has no inlined bloom filter for these columns", expected=allowed, found=tuple(places)
        )
    return offset, [region + places[column] if column in places else 0 for column in allowed]


def _footer(fixed: _Fixed, offsets: Offsets, cells: Offsets, version: VersionFields, *, previous_size: int) -> bytes:
    """The footer without its checksum and length."""
    flags = version.other_flags
    if flags & (REQUIRED_FLAGS | _KNOWN_FLAGS):
        raise InvalidRequest("other_flags may only hold optional bits that have no name", found=f"{flags:#x}")
    if version.extra and not (flags or fixed.other_flags):
        raise InvalidRequest("extra bytes need a bit of other_flags that announces them", found=version.extra[:20])
    sections = [] if fixed.external else [(cells >> 3).astype("<u4").tobytes()]
    if fixed.columns and fixed.external:
        sections.append(_external_matrix(version.external_blooms, len(offsets), len(fixed.columns)))
    if version.seq_txn is not None and version.seq_txn != UNSET:
        flags |= FooterFlag.SEQ_TXN
        sections.append(pack(_I64, "seq_txn", version.seq_txn))
    if version.scratchpad:
        flags |= FooterFlag.SCRATCHPAD
        sections.append(_scratchpad(version.scratchpad))
    head = pack(
        FOOTER.struct,
        "footer",
        version.parquet_footer_offset,
        version.parquet_footer_length,
        len(offsets),
        version.unused_bytes,
        previous_size,
        flags,
    )
    return b"".join((head, (offsets >> 3).astype("<u4").tobytes(), *sections, version.extra))


def _external_matrix(rows: Sequence[Sequence[tuple[int, int]]], row_groups: int, columns: int) -> bytes:
    if len(rows) != row_groups or any(len(row) != columns for row in rows):
        raise InvalidRequest(
            "external bloom filters need one place per row group and bloom column", expected=f"{row_groups} × {columns}"
        )
    return b"".join(pack(_PAIR, "external bloom filter", begin, length) for row in rows for begin, length in row)


def _scratchpad(entries: Sequence[tuple[int, bytes]]) -> bytes:
    packed = (pack(_ENTRY, "scratchpad", code, len(data)) + data for code, data in entries)
    out = _U32.pack(len(entries)) + b"".join(packed)
    if len(out) > MAX_SCRATCHPAD_BYTES:
        raise InvalidRequest("the scratchpad is too large", expected=f"at most {MAX_SCRATCHPAD_BYTES}", found=len(out))
    return out
