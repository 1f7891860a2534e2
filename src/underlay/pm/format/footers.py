"""Footers and the chain of versions they form: `previous_size` of each names the version before.

A version's identity is its committed size. The walk goes from a size to the smaller sizes before it and ends at a
footer whose Parquet size is the wanted one, so a header that is ahead of the committed transaction, or a footer that a
crash left behind, is skipped and never trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from underlay.errors import Malformed, Truncated, Unsupported, VersionNotFound
from underlay.pm.format.layout import (
    FOOTER,
    FOOTER_TAIL_BYTES,
    HEADER,
    MAX_SCRATCHPAD_BYTES,
    MINIMUM_SIZE,
    REQUIRED_FLAGS,
    FooterFlag,
    HeaderFlag,
)
from underlay.pm.format.values import Buffer

_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_ENTRY = struct.Struct("<II")
_FOOTER = FOOTER.struct
_FIXED_BYTES = FOOTER.size_bytes
_SEQ_TXN = int(FooterFlag.SEQ_TXN)
_SCRATCHPAD = int(FooterFlag.SCRATCHPAD)
_KNOWN_HEADER_FLAGS = int(~HeaderFlag(0))


class SidecarFooter(NamedTuple):
    """The fixed part of one footer, bounds-checked, and where it lies. Its sections are not checked yet."""

    offset: int
    size: int
    parquet_footer_offset: int
    parquet_footer_length: int
    row_group_count: int
    unused_bytes: int
    previous_size: int
    feature_flags: int

    @property
    def crc_offset(self) -> int:
        """Where the stored checksum stands: its coverage ends here."""
        return self.size - FOOTER_TAIL_BYTES

    @property
    def sections_offset(self) -> int:
        """Where the sections begin, after the block offsets."""
        return self.offset + _FIXED_BYTES + 4 * self.row_group_count

    @property
    def parquet_size(self) -> int:
        """Size of the data file at this version."""
        return self.parquet_footer_offset + self.parquet_footer_length + 8


class FooterSections(NamedTuple):
    """The sections that follow a footer's block offsets."""

    bloom_offset: int
    seq_txn: int | None
    scratchpad: tuple[tuple[int, bytes], ...]
    extra: bytes


def footer_at(data: Buffer, size: int) -> SidecarFooter:
    """The footer that closes the version of `size` bytes.

    Raises Truncated when the trailer, the fixed part or the block offsets do not fit between the header and `size`.
    """
    if size < MINIMUM_SIZE:
        raise Truncated(
            "a version cannot be this small",
            place=f"trailer at byte {max(size - 4, 0)}",
            expected=f"at least {MINIMUM_SIZE} bytes",
            found=f"committed size {size}",
        )
    (length,) = _U32.unpack_from(data, size - 4)
    if length > size - 4 - HEADER.size_bytes:
        raise Truncated(
            "the footer reaches into the header",
            place=f"trailer at byte {size - 4}",
            expected=f"a footer length of at most {size - 4 - HEADER.size_bytes}",
            found=length,
        )
    offset = size - 4 - length
    if length < _FIXED_BYTES + 4:
        raise Truncated(
            "the footer is too short for its fixed fields",
            place=f"trailer at byte {size - 4}",
            expected=f"a footer length of at least {_FIXED_BYTES + 4}",
            found=length,
        )
    footer = SidecarFooter(offset, size, *_FOOTER.unpack_from(data, offset))
    if footer.sections_offset > footer.crc_offset:
        raise Truncated(
            "the block offsets do not fit into the footer",
            place=f"footer at byte {offset}, row_group_count",
            expected=f"at most {(length - 4 - _FIXED_BYTES) // 4} row groups",
            found=footer.row_group_count,
        )
    return footer


def walk(data: Buffer, size: int) -> Iterator[SidecarFooter]:
    """The footers from the version of `size` bytes back to the first, newest first.

    A version ends before the footer of the next one begins, so a cycle cannot be followed and all footers together
    are no larger than the file; a `previous_size` behind its own footer is Malformed.
    """
    while True:
        footer = footer_at(data, size)
        yield footer
        if footer.previous_size == 0:
            return
        if footer.previous_size > footer.offset:
            raise Malformed(
                "previous_size does not point to an earlier version",
                place=f"footer at byte {footer.offset}, previous_size",
                expected=f"at most {footer.offset}",
                found=footer.previous_size,
            )
        size = footer.previous_size


def find_version(data: Buffer, size: int, parquet_size: int) -> SidecarFooter:
    """The newest footer at or before `size` whose data file has `parquet_size` bytes."""
    seen = []
    for footer in walk(data, size):
        if footer.parquet_size == parquet_size:
            return footer
        seen.append(footer.parquet_size)
    raise VersionNotFound(
        f"no version for a Parquet file of {parquet_size} bytes",
        place="chain of versions",
        found="versions for " + ", ".join(str(s) for s in seen[:8]) + (" …" if len(seen) > 8 else ""),
        hint='"underlay pm versions FILE" lists them all.',
    )


def parse_sections(data: Buffer, footer: SidecarFooter, *, bloom_bytes: int, header_flags: int) -> FooterSections:
    """The sections of `footer`; `bloom_bytes` is the size of the bloom matrix that the header's flags announce."""
    if footer.feature_flags & REQUIRED_FLAGS:
        raise Unsupported(
            "the version uses features that this release does not know",
            place=f"footer at byte {footer.offset}, feature_flags",
            expected="bits 32–63 clear",
            found=f"{footer.feature_flags:#x}",
            hint="Read it with a newer release, or pick an older version.",
        )
    bloom_offset = footer.sections_offset
    at = bloom_offset + bloom_bytes
    if at == footer.crc_offset and not footer.feature_flags:
        return FooterSections(bloom_offset, None, (), b"")
    _bound(footer, bloom_offset, at, "bloom matrix")
    seq_txn = None
    if footer.feature_flags & _SEQ_TXN:
        _bound(footer, at, at + 8, "SEQ_TXN")
        (seq_txn,) = _I64.unpack_from(data, at)
        at += 8
    scratchpad: tuple[tuple[int, bytes], ...] = ()
    if footer.feature_flags & _SCRATCHPAD:
        scratchpad, at = _parse_scratchpad(data, footer, at)
    unknown = header_flags & ~_KNOWN_HEADER_FLAGS | footer.feature_flags & ~(_SEQ_TXN | _SCRATCHPAD)
    if at < footer.crc_offset and not unknown:
        raise Malformed(
            "unexpected bytes after the block offsets: no flag announces them",
            place=f"footer at byte {footer.offset}",
            expected=f"a footer of {at + 4 - footer.offset} bytes",
            found=footer.crc_offset + 4 - footer.offset,
        )
    return FooterSections(bloom_offset, seq_txn, scratchpad, bytes(data[at : footer.crc_offset]))


def _parse_scratchpad(data: Buffer, footer: SidecarFooter, at: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    begin = at
    _bound(footer, at, at + 4, "SCRATCHPAD")
    (count,) = _U32.unpack_from(data, at)
    at += 4
    if count == 0:
        raise Malformed(
            "a scratchpad without entries", place=f"SCRATCHPAD at byte {begin}", expected="1 or more", found=0
        )
    entries = []
    for _ in range(count):
        _bound(footer, at, at + 8, "SCRATCHPAD entry")
        code, length = _ENTRY.unpack_from(data, at)
        _bound(footer, at, at + 8 + length, "SCRATCHPAD entry")
        if at + 8 + length - begin > MAX_SCRATCHPAD_BYTES:
            raise Malformed(
                "the scratchpad is too large",
                place=f"SCRATCHPAD at byte {begin}",
                expected=f"at most {MAX_SCRATCHPAD_BYTES} bytes",
                found=at + 8 + length - begin,
            )
        entries.append((code, bytes(data[at + 8 : at + 8 + length])))
        at += 8 + length
    return tuple(entries), at


def _bound(footer: SidecarFooter, begin: int, end: int, section: str) -> None:
    if end > footer.crc_offset:
        raise Truncated(
            f"{section} reaches past the footer",
            place=f"footer at byte {footer.offset}, {section} at byte {begin}",
            expected=f"an end at or before byte {footer.crc_offset}",
            found=end,
        )
