"""One file of a table in the index: what a planner needs to know, and what a reader needs to decode it.

Numbers over the file's N blocks are packed little-endian arrays, so that an entry is the same bytes in a root's tail
and in a segment's columns. Bounds are packed by the column's storage (see `schema.bound_storage`): 8 bytes a block for
numbers; for bytes N + 1 offsets of 4 bytes, then the values. Where a flag says that there is no bound, zeros are
stored.
"""

from __future__ import annotations

from enum import IntFlag

import msgspec

NO_COLUMN = -1
"""The position of a constant among the leaves of its file: there is none."""

NO_CRC = 0
"""The checksum of a footer that nobody has read: the file was registered through its sidecar."""


class Flag(IntFlag):
    """What is known about one chunk."""

    HAS_LOW = 1
    HAS_HIGH = 2
    IS_LOW_EXACT = 4
    """The lower bound is a value of the chunk."""
    IS_HIGH_EXACT = 8
    MAY_HOLD_NAN = 16
    HAS_NULL_COUNT = 32
    HAS_BLOOM = 64
    """The file has a bloom filter of this chunk, and its sidecar holds it."""
    IS_ABSENT = 128
    """The file has no such column: every row has the field's default."""


class ColumnEntry(msgspec.Struct, frozen=True, array_like=True):
    """One leaf column of a file, over its blocks.

    `field` is the leaf's field id, `column` its position among the leaves of the file's own schema. `value_counts` is
    empty for a column without repetition, which has one value, or null, for every row.
    """

    field: int
    column: int
    low: bytes
    """Lower bounds by storage."""
    high: bytes
    null_counts: bytes
    """int64; the values that are null."""
    flags: bytes
    """uint8, see Flag."""
    begins: bytes
    """int64; where the chunk begins in the file, dictionary page included."""
    sizes: bytes
    """int64; bytes of the chunk in the file."""
    codecs: bytes
    """uint8, Parquet's number of the compression."""
    value_counts: bytes = b""
    """int64; values, nulls included."""


class FileConstant(msgspec.Struct, frozen=True, array_like=True):
    """A top-level column that a file does not have and whose rows all have one value, such as those that Hive writes
    into paths.

    `field` is its field id, `type` the column's type when the file was registered. See `index.constants`.
    """

    field: int
    type: str
    value: str | None
    """As a default is stored; None for null."""


class FileEntry(msgspec.Struct, frozen=True, array_like=True):
    """A file and its blocks.

    `location` is a bare name for a file of ours in the revision's folder, `./key` for a registered file in the lake's
    own store, and a URL for any other. `etag` is kept only for registered files; ours are identified by size and
    `footer_crc`. `partition` holds one value for each partition field, packed as bounds are, None for null. `deletes`
    is a serialised Roaring bitmap of deleted row positions in the file.
    """

    location: str
    size_bytes: int
    etag: str | None
    footer_bytes: int
    """Length of the Thrift footer, without the 8 bytes after it; 0 if the file does not end with the footer of these
    rows, as one that grew since does not."""
    footer_crc: int
    """CRC-32 of the Thrift footer, or `NO_CRC`."""
    layout: str
    """Id of the Parquet schema that the file was written with, see `FileLayout`."""
    block_rows: bytes
    """int64; rows of each block."""
    columns: tuple[ColumnEntry, ...]
    partition: tuple[bytes | None, ...] = ()
    deletes: bytes | None = None
    deleted_rows: int = 0
    sidecar_bytes: int = 0
    """Size of the sidecar; 0 when none was written."""
    sidecar_crc: int = 0
    """What distinguishes the sidecar from others of its size, see `pm.format.checksum.identity`."""
    constants: tuple[FileConstant, ...] = ()
    """Each has a `ColumnEntry` too, with `NO_COLUMN` as its column, whose statistics are those of its value."""
    spec: int = 0
    """The id of the partition spec that `partition` follows."""


class FileLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The Parquet schema that files were written with. Files with equal schemas share one.

    `elements` is the Thrift list of schema elements as stored in a footer. `fields` names, for each leaf in order, the
    field id of the table's leaf that it holds, or -1 for a leaf that the table does not have.
    """

    id: str
    elements: bytes
    created_by: str | None
    fields: tuple[int, ...]
