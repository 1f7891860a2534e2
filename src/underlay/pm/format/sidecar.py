"""Reads a sidecar in place: one version of it, as arrays over all its blocks.

`decode` checks what every later access trusts (bounds of header, names, footer, sections and blocks, and the
checksum) and decodes nothing else. Chunk records are a view when the blocks lie evenly, a gather otherwise; there
is no Python loop over blocks.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from underlay.errors import ChecksumMismatch, InvalidRequest, Malformed, Truncated
from underlay.pm.format.checksum import checksum
from underlay.pm.format.footers import FooterSections, SidecarFooter, find_version, footer_at, parse_sections
from underlay.pm.format.header import HeaderView, decode_header
from underlay.pm.format.layout import BLOCK_HEAD_BYTES, CHUNK, FOOTER, HEADER
from underlay.pm.format.values import Buffer, ChunkArray, SidecarColumn, VersionFields
from underlay.runtime.locks import cached_property

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_CHUNK_BYTES = CHUNK.size_bytes
_CHUNK_DTYPE = CHUNK.dtype
_CHUNK_WORDS = np.arange(_CHUNK_BYTES // 8)
_HEADER_BYTES = HEADER.size_bytes
_FOOTER_BYTES = FOOTER.size_bytes
_TOO_MANY_ROWS = float(1 << 63)


class SidecarRecords(NamedTuple):
    """Records that lie `stride` bytes apart in `buffer`, the first at `begin`."""

    records: int
    buffer: Buffer | npt.NDArray[np.uint64]
    begin: int
    stride: int

    def field(self, offset: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The field at `offset` of every record, without copying."""
        if not self.records:
            return np.empty(0, dtype)
        return np.ndarray((self.records,), dtype, self.buffer, self.begin + offset, (self.stride,))


class Sidecar:
    """One version of a sidecar, bound to its committed size. Immutable; safe to share between threads."""

    def __init__(self, data: Buffer, header: HeaderView, footer: SidecarFooter, sections: FooterSections) -> None:
        self.data = data
        self.header = header
        self.footer = footer
        self.sections = sections
        self.column_count = header.column_count
        self.row_group_count = footer.row_group_count
        self._first_block, self._block_stride = _even_blocks(data, footer)

    @property
    def size(self) -> int:
        """Committed size: the version's identity."""
        return self.footer.size

    @property
    def parquet_size(self) -> int:
        """Size of the data file at this version."""
        return self.footer.parquet_size

    @cached_property
    def columns(self) -> tuple[SidecarColumn, ...]:
        """All leaf columns."""
        return self.header.columns()

    @cached_property
    def block_offsets(self) -> npt.NDArray[np.int64]:
        """Where every block begins."""
        return _stored_offsets(self.data, self.footer).astype(np.int64) << 3

    @cached_property
    def num_rows(self) -> npt.NDArray[np.uint64]:
        """Rows of every block. Malformed when they are 2^63 or more in all."""
        rows: npt.NDArray[np.uint64] = self._words[self.block_offsets >> 3]
        if len(rows) and float(rows.sum(dtype=np.float64)) >= _TOO_MANY_ROWS:
            largest = int(rows.argmax())
            raise Malformed(
                "the row count does not fit 64 bits",
                place=f"block {largest} at byte {int(self.block_offsets[largest])}, num_rows",
                expected="less than 2^63 in all",
                found=int(rows[largest]),
            )
        return rows

    @cached_property
    def chunks(self) -> ChunkArray:
        """All chunk records, shape (row groups, columns)."""
        shape = (self.row_group_count, self.column_count)
        stride = self._block_stride
        if not self.row_group_count:
            return np.empty(shape, _CHUNK_DTYPE)
        if stride:
            return np.ndarray(
                shape, _CHUNK_DTYPE, self.data, self._first_block + BLOCK_HEAD_BYTES, (stride, _CHUNK_BYTES)
            )
        words = self.column_count * (_CHUNK_BYTES // 8)
        at = (self.block_offsets >> 3)[:, None] + np.arange(1, words + 1)
        gathered: ChunkArray = self._words[at].view(_CHUNK_DTYPE).reshape(shape)
        return gathered

    def column_records(self, column: int) -> SidecarRecords:
        """Where the chunk records of one column lie: in place when the blocks lie evenly, else gathered."""
        if not 0 <= column < self.column_count:
            raise InvalidRequest("no such column", expected=f"0 to {self.column_count - 1}", found=column)
        skip = BLOCK_HEAD_BYTES + _CHUNK_BYTES * column
        if self._block_stride:
            return SidecarRecords(self.row_group_count, self.data, self._first_block + skip, self._block_stride)
        at = (self.block_offsets + skip >> 3)[:, None] + _CHUNK_WORDS
        return SidecarRecords(self.row_group_count, self._words[at], 0, _CHUNK_BYTES)

    @property
    def block_span(self) -> tuple[int, int]:
        """The lowest and the highest offset of a block; there is at least one."""
        if self._block_stride:
            return self._first_block, self._first_block + self._block_stride * (self.row_group_count - 1)
        return int(self.block_offsets.min()), int(self.block_offsets.max())

    def column_chunks(self, column: int) -> ChunkArray:
        """The chunk records of one column over all blocks."""
        return self.column_records(column).field(0, _CHUNK_DTYPE)

    @property
    def region_offsets(self) -> npt.NDArray[np.int64]:
        """Where each block's out-of-line region begins."""
        return self.block_offsets + (BLOCK_HEAD_BYTES + _CHUNK_BYTES * self.column_count)

    @cached_property
    def block_limits(self) -> npt.NDArray[np.int64]:
        """Where each block must have ended: at the next block of this version, or at its footer."""
        order = np.argsort(self.block_offsets)
        limits = np.empty_like(self.block_offsets)
        limits[order] = np.append(self.block_offsets[order][1:], self.footer.offset)[: len(order)]
        return limits

    @cached_property
    def bytes_view(self) -> npt.NDArray[np.uint8]:
        """All bytes of the version."""
        return np.frombuffer(self.data, np.uint8, self.size)

    @cached_property
    def _words(self) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self.data, "<u8", self.size // 8)

    def version_fields(self) -> VersionFields:
        """What this version's footer says, as a value that an encoder turns back into the same bytes."""
        footer, sections = self.footer, self.sections
        external: tuple[tuple[tuple[int, int], ...], ...] = ()
        if self.header.external_blooms:
            count = len(self.header.bloom_columns)
            pairs = np.frombuffer(self.data, "<u8", 2 * count * self.row_group_count, sections.bloom_offset)
            external = tuple(
                tuple((int(begin), int(length)) for begin, length in row)
                for row in pairs.reshape(self.row_group_count, count, 2)
            )
        return VersionFields(
            parquet_footer_offset=footer.parquet_footer_offset,
            parquet_footer_length=footer.parquet_footer_length,
            unused_bytes=footer.unused_bytes,
            seq_txn=sections.seq_txn,
            scratchpad=sections.scratchpad,
            external_blooms=external,
            other_flags=footer.feature_flags & ~3,
            extra=sections.extra,
        )


def committed_size(data: Buffer) -> int:
    """The size field at offset 0: where the newest published version ends."""
    if len(data) < 8:
        raise Truncated("too short for a header", place="header at byte 0", expected="32 bytes", found=len(data))
    return int(_U64.unpack_from(data, 0)[0])


def decode(data: Buffer, *, size: int | None = None, parquet_size: int | None = None, check: bool = True) -> Sidecar:
    """One version of the sidecar in `data`: the newest published one, the one that ends at `size`, or the newest at
    or before it whose data file has `parquet_size` bytes.

    Bytes after the committed size are never read. With `check` the checksum of the version is verified.
    """
    if size is None:
        size = committed_size(data)
    if size > len(data):
        raise Truncated(
            "the file is shorter than its committed size",
            place="header, committed_size at byte 0",
            expected=f"{size} bytes",
            found=len(data),
        )
    footer = footer_at(data, size) if parquet_size is None else find_version(data, size, parquet_size)
    if check:  # first, so that a damaged flag is not taken for a feature of a newer release
        verify_checksum(data, footer)
    header = decode_header(data, footer.offset)
    cell_bytes = 16 if header.external_blooms else 4
    bloom_bytes = footer.row_group_count * len(header.bloom_columns) * cell_bytes
    sections = parse_sections(data, footer, bloom_bytes=bloom_bytes, header_flags=header.feature_flags)
    sidecar = Sidecar(data, header, footer, sections)
    _check_blocks(sidecar)
    return sidecar


def verify_checksum(data: Buffer, footer: SidecarFooter) -> None:
    """Raise ChecksumMismatch unless the stored checksum of `footer` is that of the bytes before it."""
    (stored,) = _U32.unpack_from(data, footer.crc_offset)
    computed = checksum(data, footer.crc_offset)
    if stored != computed:
        raise checksum_mismatch(footer, expected=computed, found=stored)


def checksum_mismatch(footer: SidecarFooter, *, expected: int, found: int) -> ChecksumMismatch:
    """The error for a version whose stored checksum is not that of its bytes."""
    return ChecksumMismatch(
        "the checksum does not match: the file is damaged or cut short",
        place=f"footer at byte {footer.offset}, checksum at byte {footer.crc_offset}",
        expected=f"{expected:#010x}",
        found=f"{found:#010x}",
        hint='Rebuild it from its Parquet file with "underlay pm build".',
    )


def _stored_offsets(data: Buffer, footer: SidecarFooter) -> npt.NDArray[np.uint32]:
    return np.frombuffer(data, "<u4", footer.row_group_count, footer.offset + _FOOTER_BYTES)


_FEW_BLOCKS = 32


def _even_blocks(data: Buffer, footer: SidecarFooter) -> tuple[int, int]:
    """First block and distance to the next when that is the same everywhere and positive, else distance 0."""
    count = footer.row_group_count
    if count <= _FEW_BLOCKS:  # a numpy call costs more than comparing a few numbers
        few = struct.unpack_from(f"<{count}I", data, footer.offset + _FOOTER_BYTES)
        if count < 2:
            return (few[0] << 3 if few else 0), BLOCK_HEAD_BYTES
        step = few[1] - few[0]
        is_even = step > 0 and few == tuple(range(few[0], few[0] + step * count, step))
        return few[0] << 3, step << 3 if is_even else 0
    stored = _stored_offsets(data, footer)
    first, step = int(stored[0]), int(stored[1]) - int(stored[0])
    is_even = step > 0 and bool(np.logical_and.reduce(stored[1:] - stored[:-1] == step))
    return first << 3, step << 3 if is_even else 0


def _check_blocks(sidecar: Sidecar) -> None:
    """Every block lies between the header and the footer of its version."""
    if not sidecar.row_group_count:
        return
    block_bytes = BLOCK_HEAD_BYTES + _CHUNK_BYTES * sidecar.column_count
    least, limit = sidecar.header.names_offset, sidecar.footer.offset - block_bytes
    room = sidecar.footer.offset - least
    if sidecar.row_group_count * block_bytes > room:
        raise Malformed(
            "blocks overlap: the file is too small for this many",
            place=f"footer at byte {sidecar.footer.offset}, row_group_count",
            expected=f"at most {room // block_bytes}",
            found=sidecar.row_group_count,
        )
    first, last = sidecar.block_span
    if least <= first and last <= limit:
        return
    offsets = sidecar.block_offsets
    bad = int(np.flatnonzero((offsets < least) | (offsets > limit))[0])
    raise Truncated(
        f"block {bad} does not lie between header and footer",
        place=f"block offset {bad} at byte {sidecar.footer.offset + _FOOTER_BYTES + 4 * bad}",
        expected=f"{block_bytes} bytes within {least} to {sidecar.footer.offset}",
        found=int(offsets[bad]),
    )
