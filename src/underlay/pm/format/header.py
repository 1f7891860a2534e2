"""The header region: fixed header, column descriptors, sorting columns, names, header sections.

It is written once; appending a version changes only `committed_size` at offset 0.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from underlay.errors import InvalidRequest, Malformed, Truncated, Unsupported
from underlay.pm.format.layout import DESCRIPTOR, HEADER, REQUIRED_FLAGS, HeaderFlag
from underlay.pm.format.values import Buffer, Header, SidecarColumn

_HEADER = HEADER.struct
_DESCRIPTOR = DESCRIPTOR.struct
_I64 = struct.Struct("<q")
_FIXED_BYTES = HEADER.size_bytes
_DESCRIPTOR_BYTES = DESCRIPTOR.size_bytes
# Plain integers: an IntFlag costs a microsecond per operation, and opening a small sidecar takes twenty.
_BLOOM_FILTERS = int(HeaderFlag.BLOOM_FILTERS)
_EXTERNAL = int(HeaderFlag.BLOOM_FILTERS_EXTERNAL)
_SORTING_IS_DTS_ASC = int(HeaderFlag.SORTING_IS_DTS_ASC)
_SQUASH_TRACKER = int(HeaderFlag.SQUASH_TRACKER)
_KNOWN_FLAGS = int(~HeaderFlag(0))


class HeaderView(NamedTuple):
    """A header whose fixed part and sections were checked. Names are bounded and decoded when columns are asked for:
    bounding them costs a third of opening a small sidecar, and statistics need no name.
    """

    data: Buffer
    limit: int
    feature_flags: int
    designated_timestamp: int
    sorting_column_count: int
    column_count: int
    reserved: int
    bloom_columns: npt.NDArray[np.uint32]
    squash_tracker: int | None

    @property
    def names_offset(self) -> int:
        """Where descriptors and sorting columns end and names begin."""
        return _FIXED_BYTES + _DESCRIPTOR_BYTES * self.column_count + 4 * self.sorting_column_count

    @property
    def end(self) -> int:
        """Where the header region ends: after the names and the header sections."""
        end = _names_end(self.data, self.limit, self.column_count, self.names_offset)
        if len(self.bloom_columns):
            end += 4 + 4 * len(self.bloom_columns)
        return end if self.squash_tracker is None else end + 8

    @property
    def other_flags(self) -> int:
        """Optional bits that this release has no name for."""
        return self.feature_flags & ~_KNOWN_FLAGS

    @property
    def external_blooms(self) -> bool:
        """Whether footers point to filters in the Parquet file instead of holding them."""
        return bool(self.feature_flags & _EXTERNAL)

    @property
    def sorting(self) -> tuple[int, ...]:
        """Leaf indices that the file is sorted by; they are not checked against the column count."""
        if self.feature_flags & _SORTING_IS_DTS_ASC:
            return (self.designated_timestamp,)
        begin = _FIXED_BYTES + _DESCRIPTOR_BYTES * self.column_count
        return struct.unpack_from(f"<{self.sorting_column_count}I", self.data, begin)

    def columns(self) -> tuple[SidecarColumn, ...]:
        """All columns; Truncated when a name lies outside the header, Malformed when it is not UTF-8."""
        _names_end(self.data, self.limit, self.column_count, self.names_offset)
        return tuple(self._column(i) for i in range(self.column_count))

    def _column(self, index: int) -> SidecarColumn:
        at = _FIXED_BYTES + _DESCRIPTOR_BYTES * index
        fields = _DESCRIPTOR.unpack_from(self.data, at)
        name_offset, ident, code, flags, fixed, name_length, physical, rep, definition, reserved = fields
        try:
            name = str(self.data[name_offset : name_offset + name_length], "utf-8")
        except UnicodeDecodeError as e:
            raise Malformed(
                f"the name of column {index} is not UTF-8: {e.reason}",
                place=f"names at byte {name_offset + e.start}",
                expected="UTF-8",
                found=bytes(self.data[name_offset : name_offset + min(name_length, 40)]),
            ) from None
        return SidecarColumn(
            name=name,
            id=ident,
            type=code,
            flags=flags,
            fixed_byte_length=fixed,
            physical_type=physical,
            max_rep_level=rep,
            max_def_level=definition,
            reserved=reserved,
        )

    def value(self) -> Header:
        """The header as a value that `encode_header` turns back into the same bytes."""
        return Header(
            columns=self.columns(),
            designated_timestamp=self.designated_timestamp,
            sorting=self.sorting,
            bloom_columns=tuple(self.bloom_columns.tolist()),
            external_blooms=self.external_blooms,
            squash_tracker=self.squash_tracker,
            other_flags=self.other_flags,
            reserved=self.reserved,
        )


UNSET = -1
"""A squash tracker or sequencer transaction of this value is not stored."""

_NO_COLUMNS = np.empty(0, np.uint32)


def decode_header(data: Buffer, limit: int) -> HeaderView:
    """Check and view the header that must end at or before byte `limit`, which is behind the fixed part."""
    _, flags, designated, sorting_count, column_count, reserved = _HEADER.unpack_from(data, 0)
    if flags & REQUIRED_FLAGS:
        raise Unsupported(
            "the file uses features that this release does not know",
            place="header, feature_flags at byte 8",
            expected="bits 32–63 clear",
            found=f"{flags:#x}",
            hint="Read it with a newer release.",
        )
    names_begin = _FIXED_BYTES + _DESCRIPTOR_BYTES * column_count + 4 * sorting_count
    if names_begin > limit:
        raise Truncated(
            f"{column_count} columns and {sorting_count} sorting columns do not fit",
            place="header, column_count at byte 24",
            expected=f"{names_begin} bytes",
            found=limit,
        )
    least = 0 if flags & _SORTING_IS_DTS_ASC else -1
    if not least <= designated < max(column_count, least + 1):
        raise Malformed(
            "no such column for the designated timestamp",
            place="header, designated_timestamp at byte 16",
            expected=f"{least} to {column_count - 1}",
            found=designated,
        )
    bloom_columns, squash_tracker = _NO_COLUMNS, None
    if flags & (_BLOOM_FILTERS | _EXTERNAL | _SQUASH_TRACKER):
        end = _names_end(data, limit, column_count, names_begin)
        bloom_columns, squash_tracker = _decode_sections(data, limit, column_count, flags, end)
    return HeaderView(
        data, limit, flags, designated, sorting_count, column_count, reserved, bloom_columns, squash_tracker
    )


def _names_end(data: Buffer, limit: int, column_count: int, names_begin: int) -> int:
    """Bound all names; where the names area ends."""
    if not column_count:
        return names_begin
    shape, strides = (column_count,), (_DESCRIPTOR_BYTES,)
    begins = np.ndarray(shape, "<u8", data, _FIXED_BYTES, strides)
    lengths = np.ndarray(shape, "<u4", data, _FIXED_BYTES + DESCRIPTOR.offset("name_length"), strides)
    outside = (begins < names_begin) | (begins > limit) | (lengths > limit - np.minimum(begins, limit))
    if outside.any():
        bad = int(np.flatnonzero(outside)[0])
        raise _name_outside(bad, int(begins[bad]), int(lengths[bad]), names_begin, limit)
    return int((begins + lengths).max())


def _name_outside(index: int, begin: int, length: int, names_begin: int, limit: int) -> Truncated:
    return Truncated(
        f"the name of column {index} lies outside the header",
        place=f"column descriptor {index} at byte {_FIXED_BYTES + _DESCRIPTOR_BYTES * index}, name_offset",
        expected=f"bytes within {names_begin} to {limit}",
        found=f"{begin} + {length}",
    )


def _decode_sections(
    data: Buffer, limit: int, column_count: int, flags: int, at: int
) -> tuple[npt.NDArray[np.uint32], int | None]:
    """Bloom columns and squash tracker, which follow the names."""
    bloom_columns, squash_tracker = _NO_COLUMNS, None
    if flags & _BLOOM_FILTERS:
        bloom_columns, at = _decode_bloom_columns(data, limit, column_count, at)
    elif flags & _EXTERNAL:
        raise Malformed(
            "BLOOM_FILTERS_EXTERNAL is set without BLOOM_FILTERS",
            place="header, feature_flags at byte 8",
            expected="bit 0 set, or bit 1 clear",
            found=f"{flags:#x}",
        )
    if flags & _SQUASH_TRACKER:
        if at + 8 > limit:
            raise Truncated(
                "SQUASH_TRACKER does not fit",
                place=f"header section at byte {at}",
                expected=f"an end at or before byte {limit}",
                found=at + 8,
            )
        (squash_tracker,) = _I64.unpack_from(data, at)
    return bloom_columns, squash_tracker


def _decode_bloom_columns(data: Buffer, limit: int, column_count: int, at: int) -> tuple[npt.NDArray[np.uint32], int]:
    place = f"bloom columns at byte {at}"
    if at + 4 > limit:
        raise Truncated("the bloom column count does not fit", place=place, expected=f"{at + 4} bytes", found=limit)
    count = int.from_bytes(data[at : at + 4], "little")
    if not 1 <= count <= column_count:
        raise Malformed("wrong number of bloom columns", place=place, expected=f"1 to {column_count}", found=count)
    end = at + 4 + 4 * count
    if end > limit:
        raise Truncated("the bloom columns do not fit", place=place, expected=f"{end} bytes", found=limit)
    indices = np.frombuffer(data, "<u4", count, at + 4)
    if int(indices[-1]) >= column_count or bool((indices[1:] <= indices[:-1]).any()):
        raise Malformed(
            "bloom columns must be strictly ascending column indices",
            place=place,
            expected=f"below {column_count}",
            found=indices[:8].tolist(),
        )
    return indices, end


def encode_header(header: Header) -> bytes:
    """The header region with `committed_size` 0: the writer patches it last."""
    columns = header.columns
    implied_sorting = _sorting_is_implied(header)
    flags = header.other_flags
    if flags & (REQUIRED_FLAGS | _KNOWN_FLAGS):
        raise InvalidRequest("other_flags may only hold optional bits that have no name", found=f"{flags:#x}")
    if implied_sorting:
        flags |= _SORTING_IS_DTS_ASC
    if header.bloom_columns:
        flags |= _BLOOM_FILTERS
        if header.external_blooms:
            flags |= _EXTERNAL
    has_tracker = header.squash_tracker is not None and header.squash_tracker != UNSET
    if has_tracker:
        flags |= _SQUASH_TRACKER
    _check_header(header)
    sorting = () if implied_sorting else header.sorting
    names = [_encode_name(column.name) for column in columns]
    at = _FIXED_BYTES + _DESCRIPTOR_BYTES * len(columns) + 4 * len(sorting)
    fixed = (0, flags, header.designated_timestamp, len(sorting), len(columns), header.reserved)
    parts = [pack(_HEADER, "header", *fixed)]
    for column, name in zip(columns, names, strict=True):
        parts.append(
            pack(
                _DESCRIPTOR,
                f"column {column.name}",
                at,
                column.id,
                column.type,
                column.flags,
                column.fixed_byte_length,
                len(name),
                column.physical_type,
                column.max_rep_level,
                column.max_def_level,
                column.reserved,
            )
        )
        at += len(name)
    parts.append(struct.pack(f"<{len(sorting)}I", *sorting))
    parts += names
    if header.bloom_columns:
        parts.append(
            struct.pack(f"<{len(header.bloom_columns) + 1}I", len(header.bloom_columns), *header.bloom_columns)
        )
    if has_tracker:
        parts.append(pack(_I64, "squash tracker", header.squash_tracker))
    return b"".join(parts)


def pack(layout: struct.Struct, place: str, *values: int | None) -> bytes:
    """`layout.pack`, refusing a value that does not fit its field."""
    try:
        return layout.pack(*values)
    except struct.error as error:
        raise InvalidRequest(f"a value does not fit its field: {error}", place=place, found=values) from None


def _encode_name(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a column's name is not Unicode text: {error.reason}", found=ascii(name)) from None


def _sorting_is_implied(header: Header) -> bool:
    """Whether one flag says the sorting: ascending by the designated timestamp and nothing else."""
    designated = header.designated_timestamp
    return (
        0 <= designated < len(header.columns)
        and header.sorting == (designated,)
        and not header.columns[designated].is_descending
    )


def _check_header(header: Header) -> None:
    count = len(header.columns)
    if not -1 <= header.designated_timestamp < count:
        raise InvalidRequest(
            "no such column for the designated timestamp",
            expected=f"-1 to {count - 1}",
            found=header.designated_timestamp,
        )
    if any(not 0 <= index < 1 << 32 for index in header.sorting):
        raise InvalidRequest("sorting columns must be column indices", found=header.sorting)
    blooms = header.bloom_columns
    if list(blooms) != sorted(set(blooms)) or (blooms and not 0 <= blooms[0] <= blooms[-1] < count):
        raise InvalidRequest("bloom columns must be ascending column indices", found=blooms)
