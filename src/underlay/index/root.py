"""The root of a version: the object that *is* a commit, as typed JSON.

A root references everything that its version consists of: segments, the tail of files that are in no segment yet, what
was removed from segments since they were written, and the source tree. Besides that state it holds the logical delta
from its parent, which rebases and followers use.
"""

from __future__ import annotations

import msgspec

from underlay.errors import Malformed, SnapshotExpired, Unsupported
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.operation import Operation
from underlay.index.sealed_json import UNDECODED, seal, unseal
from underlay.schema.record import SchemaRecord

FORMAT = 1
WITH_CONSTANTS = 2
"""The format of roots of a table that has had files with constants: a reader that does not know them would leave them
out. In all else such a root is like those of format 1."""
WITH_SPECS = 3
"""The format of roots of a table that has checks, had another partition spec before, or has buckets by Iceberg's hash:
a reader that does not know these would prune wrongly, and a writer would not check rows."""
WITH_RETENTION = 4
"""The format of tombstones, and of roots of a table that versions expired of, or that was swept: a writer that does not
know these would commit what may have been deleted."""
FORMATS = (FORMAT, WITH_CONSTANTS, WITH_SPECS, WITH_RETENTION)


class PartitionFieldRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One partition field: a transform (`identity`, `year`, `month`, `day`, `hour`, `bucket`, `truncate`) of a leaf."""

    field: int
    transform: str
    width: int = 0
    """Number of buckets, or width of truncation."""
    hash: str = ""
    """Of a bucket: how it is hashed, see `schema.partitioning.bucket`; empty for the hash of older tables."""
    source: str = ""
    """The type that the column had while files were written by this spec; empty for its current type."""


class PartitionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How some files of a table are partitioned."""

    id: int
    fields: tuple[PartitionFieldRecord, ...]


class SortFieldRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column that rows are sorted by, ascending and nulls first unless said otherwise."""

    field: int
    descending: bool = False
    nulls_last: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a table is, apart from its rows."""

    schema: SchemaRecord
    key: tuple[int, ...] = ()
    """Field ids."""
    sort_by: tuple[SortFieldRecord, ...] = ()
    partition_by: tuple[PartitionFieldRecord, ...] = ()
    """How new files are partitioned."""
    properties: dict[str, str] = {}
    comment: str | None = None
    spec: int = 0
    """The id of `partition_by`, which each new file's entry has."""
    other_specs: tuple[PartitionSpec, ...] = ()
    """Specs of older files, and of files that a rollback removed."""
    checks: dict[str, str] = {}
    """By name: conditions that are true or null for every row."""


class SegmentBound(msgspec.Struct, frozen=True, array_like=True):
    """The range of one leaf over a segment's files: packed as one bound is, None where unknown."""

    field: int
    low: bytes | None
    high: bytes | None
    null_count: int
    """-1 where unknown."""
    may_hold_nan: bool


class SegmentRef(msgspec.Struct, frozen=True, kw_only=True):
    """A segment, with enough statistics to skip it unread. `pieces` is its packed directory, see `segment`."""

    id: str
    size_bytes: int
    crc: int
    file_count: int
    block_count: int
    row_count: int
    data_bytes: int
    """Bytes of the files."""
    deleted_rows: int
    pieces: bytes
    bounds: tuple[SegmentBound, ...] = ()
    spec: int = 0
    """The partition spec of all its files."""


class SourceRecord(msgspec.Struct, frozen=True, array_like=True):
    """One ingested input: its name, its content's identity, and what became of it."""

    uri: str
    identity: str
    version: int
    """The version that added it."""
    status: str = "done"
    """`done`, `claimed`, `failed`."""
    owner: str | None = None
    """The run that claims it, or that added it."""
    row_count: int = 0
    """Rows of it that are in the table, whatever its status."""
    error: str | None = None
    content: str | None = None
    """Size and hash of the bytes that these rows came from, if known."""
    options: str | None = None
    """For a failed source, a fingerprint of the options and columns that it was read with."""


class PageRef(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the source tree."""

    id: str
    size_bytes: int
    crc: int
    entry_count: int
    height: int
    """0 for a leaf."""


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The source tree: its root page, and the newest entries, which are in no page yet and take precedence over the
    pages."""

    tree: PageRef | None = None
    journal: tuple[SourceRecord, ...] = ()


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing may follow in this revision, and which catalog entry results from it."""

    reason: str
    """`drop` or `activate`."""
    table: str
    successor: str | None
    """The revision that takes over."""
    commit_id: str
    """The commit id of the catalog entry that will follow."""


class Retention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which versions are retained: those from `begin` on, and some older ones."""

    begin: int = 0
    also: tuple[int, ...] = ()
    """Older versions kept by tags or leases. Ascending."""
    buried: int = 0
    """All expired versions before this one are tombstones; of those after it, any may be."""

    def has(self, version: int) -> bool:
        """Whether this version is retained."""
        return version >= self.begin or version in self.also


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a commit changed, in terms that do not depend on how its parent was stored.

    The files it added are the last `added_in_tail` of its root's tail, and all files of `added_segments`.
    """

    added_in_tail: int = 0
    added_segments: tuple[str, ...] = ()
    """Ids of segments, all among the root's."""
    removed: tuple[str, ...] = ()
    """Locations."""
    deletes: dict[str, bytes] = {}
    """Row positions newly deleted, by location, as serialised Roaring bitmaps."""
    sources: tuple[SourceRecord, ...] = ()
    definition: Definition | None = None
    """The new definition, when it changed."""
    layouts: tuple[FileLayout, ...] = ()
    fences: dict[str, int] = {}
    restored: int | None = None
    """The version whose files, definition and sources this one restores."""
    terminal: Terminal | None = None
    retention: Retention | None = None
    """Which versions are retained, when some expired."""
    horizon_us: int = 0
    """Not 0 for a sweep: the horizon that it set, unless a later one was set before."""
    ended_jobs: tuple[str, ...] = ()
    """Jobs whose epochs are forgotten."""


class Root(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version. `committed_us` is microseconds since 1970 and greater than the parent's."""

    format: int
    version: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: Operation
    counts: dict[str, int]
    """What the operation did: `files_added`, `rows_added`, …"""
    writer: str
    definition: Definition
    delta: Delta
    row_count: int
    """Of all files, less deleted rows."""
    file_count: int
    data_bytes: int
    layouts: tuple[FileLayout, ...] = ()
    segments: tuple[SegmentRef, ...] = ()
    tail: tuple[FileEntry, ...] = ()
    removed: tuple[str, ...] = ()
    """Locations of files that are in a segment and no longer in the table."""
    deletes: dict[str, bytes] = {}
    """All deleted row positions of files in segments, for files with more of them than the segment has."""
    sources: Sources = Sources()
    fences: dict[str, int] = {}
    terminal: Terminal | None = None
    may_return: bool = False
    """Whether registered files were removed before: one that is registered from now on may be one of them, and gets a
    location of its own (`keys.again`), so that a location means the same bytes in all versions."""
    retention: Retention = Retention()
    horizon_us: int = 0
    """By the store's clock: a sweep may have deleted older objects that no version referenced (R5)."""
    epoch_floor: int = 0
    """No job whose epoch was forgotten had a higher one."""

    def next_epoch(self, job: str) -> int:
        """The epoch of the next process to take the job; it was never used before."""
        return self.fences.get(job, self.epoch_floor) + 1


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces an expired root, so that the chain stays contiguous. Fields mean the same as in the root.

    The same root always gives the same bytes, so it may be put repeatedly and at any time.
    """

    format: int = WITH_RETENTION
    version: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: Operation
    counts: dict[str, int]
    writer: str
    row_count: int
    file_count: int
    data_bytes: int
    is_tombstone: bool = True


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Root)


_TOMBSTONE_DECODER = msgspec.json.Decoder(Tombstone)


class _Kind(msgspec.Struct):
    format: int
    is_tombstone: bool = False


def encode_tombstone(root: Root) -> bytes:
    """The bytes of the tombstone of a root."""
    fields = {name: getattr(root, name) for name in Tombstone.__struct_fields__ if name in Root.__struct_fields__}
    return seal(_ENCODER.encode(Tombstone(**fields | {"format": WITH_RETENTION})))


def decode_tombstone(data: bytes | memoryview) -> Tombstone | None:
    """The tombstone in `data`, None when it holds something else. Raises Malformed."""
    json = unseal(data)
    kind = _kind_of(json)
    if kind is None or not kind.is_tombstone:
        return None
    if kind.format not in FORMATS:
        raise _other_format(kind.format)
    try:
        return _TOMBSTONE_DECODER.decode(json)
    except UNDECODED as error:
        raise Malformed(f"not a tombstone: {error}") from error


def encode_root(root: Root) -> bytes:
    """The bytes of a root."""
    return seal(_ENCODER.encode(root))


def decode_root(data: bytes | memoryview) -> Root:
    """The root in `data`. Raises Malformed, SnapshotExpired for a tombstone, or Unsupported when a newer Underlay wrote
    it."""
    json = unseal(data)
    try:
        root = _DECODER.decode(json)
    except UNDECODED as error:
        kind = _kind_of(json)
        if kind is not None and kind.format not in FORMATS:
            raise _other_format(kind.format) from error
        if kind is not None and kind.is_tombstone:
            raise SnapshotExpired("the version has expired") from None
        raise Malformed(f"not a root: {error}") from error
    if root.format not in FORMATS:
        raise _other_format(root.format)
    return root


def _kind_of(json: bytes) -> _Kind | None:
    """The format and kind of an object that does not decode as a root; None when it is not such JSON."""
    try:
        return msgspec.json.decode(json, type=_Kind)
    except UNDECODED:
        return None


def _other_format(found: int) -> Unsupported:
    return Unsupported("the root has an unknown format", expected=FORMATS[-1], found=found, hint="Update Underlay.")
