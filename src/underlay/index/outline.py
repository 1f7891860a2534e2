"""A root as far as a follower needs it: what it is, and what it changed. Several times faster to decode than the whole.

Most of a root is its tail, of which a follower needs the files that this commit added, and of those only a few facts.
Where a root says by reference what it changed, in segments that it added or by going back to an older version, the
outline holds the whole root as well.
"""

from __future__ import annotations

from struct import unpack
from typing import NamedTuple, TypeVar

import msgspec

from underlay.errors import Malformed, Unsupported
from underlay.index.entry import FileEntry
from underlay.index.operation import Operation
from underlay.index.root import (
    FORMATS,
    Retention,
    Root,
    SourceRecord,
    Terminal,
    Tombstone,
    decode_root,
    decode_tombstone,
)
from underlay.index.sealed_json import UNDECODED, unseal

T = TypeVar("T")
_NUMBER_BYTES = 8


class FileFacts(NamedTuple):
    """A file as it was added. `row_count` counts deleted rows too."""

    location: str
    etag: str | None
    size_bytes: int
    row_count: int
    block_count: int


class SegmentFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A segment's counts. The fields are those of `root.SegmentRef`."""

    id: str
    size_bytes: int
    crc: int
    file_count: int
    block_count: int
    row_count: int
    data_bytes: int


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """One version. Fields that a root has as well mean the same; `removed` and `changed_sources` are its delta's."""

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
    segments: tuple[SegmentFacts, ...]
    added: tuple[FileFacts, ...]
    """Files that this version added to the tail. Those of `added_segments` are not among them."""
    added_segments: tuple[str, ...]
    removed: tuple[str, ...]
    changed_sources: tuple[SourceRecord, ...]
    restored: int | None
    fences: dict[str, int]
    is_terminal: bool
    whole: Root | None
    """The root, when it added segments or rolled back to an older version."""
    retention: Retention | None = None
    """Which versions are retained, when this one expired some."""
    is_tombstone: bool = False
    """Whether only its place in the chain is known: it expired."""


class _Delta(msgspec.Struct, frozen=True, kw_only=True):
    added_in_tail: int = 0
    added_segments: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    sources: tuple[SourceRecord, ...] = ()
    restored: int | None = None
    retention: Retention | None = None


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a root that are read; msgspec skips all others without decoding them."""

    format: int
    version: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: Operation
    counts: dict[str, int]
    writer: str
    delta: _Delta
    row_count: int
    file_count: int
    data_bytes: int
    segments: tuple[SegmentFacts, ...] = ()
    tail: tuple[msgspec.Raw, ...] = ()
    fences: dict[str, int] = {}
    terminal: Terminal | None = None


class _StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """The first members of a `FileEntry`."""

    location: str
    size_bytes: int
    etag: str | None
    footer_bytes: int
    footer_crc: int
    layout: str
    block_rows: bytes


class _Format(msgspec.Struct):
    format: int


_DECODER = msgspec.json.Decoder(_Stored)
_FILE_DECODER = msgspec.json.Decoder(_StoredFile)
_FORMAT_DECODER = msgspec.json.Decoder(_Format)


def decode_outline(data: bytes | memoryview) -> Outline:
    """The outline of the root, or of the tombstone, in `data`. Raises what `decode_root` raises."""
    json = unseal(data)
    try:
        found = _decode(json)
        delta = found.delta
        added = tuple([facts_of(_FILE_DECODER.decode(raw)) for raw in _last(found.tail, delta.added_in_tail)])
    except UNDECODED as error:
        tombstone = decode_tombstone(data)
        if tombstone is not None:
            return _outline_of_tombstone(tombstone)
        raise Malformed(f"not a root: {error}") from error
    return Outline(
        version=found.version,
        commit_id=found.commit_id,
        parent_id=found.parent_id,
        committed_us=found.committed_us,
        operation=found.operation,
        counts=found.counts,
        writer=found.writer,
        row_count=found.row_count,
        file_count=found.file_count,
        data_bytes=found.data_bytes,
        segments=found.segments,
        added=added,
        added_segments=delta.added_segments,
        removed=delta.removed,
        changed_sources=delta.sources,
        restored=delta.restored,
        fences=found.fences,
        is_terminal=found.terminal is not None,
        whole=decode_root(data) if delta.added_segments or delta.restored is not None else None,
        retention=delta.retention,
    )


def _outline_of_tombstone(found: Tombstone) -> Outline:
    shared = {name: getattr(found, name) for name in Tombstone.__struct_fields__ if name != "format"}
    return Outline(
        **shared,
        segments=(),
        added=(),
        added_segments=(),
        removed=(),
        changed_sources=(),
        restored=None,
        fences={},
        is_terminal=False,
        whole=None,
    )


class SummaryDelta(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a delta that tells who committed it."""

    sources: tuple[SourceRecord, ...] = ()


class VersionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One version as a history shows it. The fields are those of a root; all others are skipped."""

    format: int
    version: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: Operation
    counts: dict[str, int]
    writer: str
    delta: SummaryDelta
    row_count: int
    file_count: int
    data_bytes: int


_SUMMARY_DECODER = msgspec.json.Decoder(VersionSummary)


def decode_summary(data: bytes | memoryview) -> VersionSummary:
    """The summary of the root in `data`. Raises what `decode_root` raises, except for what it skips."""
    json = unseal(data)
    try:
        found = _SUMMARY_DECODER.decode(json)
    except UNDECODED:
        return _summary_of(decode_root(data))  # raises, and says what is wrong
    return found if found.format in FORMATS else _summary_of(decode_root(data))


def _summary_of(root: Root) -> VersionSummary:
    return VersionSummary(
        **{name: getattr(root, name) for name in VersionSummary.__struct_fields__ if name != "delta"},
        delta=SummaryDelta(sources=root.delta.sources),
    )


def outline_of(root: Root) -> Outline:
    """The outline of a root: what `decode_outline` returns for its bytes."""
    delta = root.delta
    return Outline(
        version=root.version,
        commit_id=root.commit_id,
        parent_id=root.parent_id,
        committed_us=root.committed_us,
        operation=root.operation,
        counts=root.counts,
        writer=root.writer,
        row_count=root.row_count,
        file_count=root.file_count,
        data_bytes=root.data_bytes,
        segments=tuple(
            SegmentFacts(
                id=ref.id,
                size_bytes=ref.size_bytes,
                crc=ref.crc,
                file_count=ref.file_count,
                block_count=ref.block_count,
                row_count=ref.row_count,
                data_bytes=ref.data_bytes,
            )
            for ref in root.segments
        ),
        added=tuple(map(facts_of, _last(root.tail, delta.added_in_tail))),
        added_segments=delta.added_segments,
        removed=delta.removed,
        changed_sources=delta.sources,
        restored=delta.restored,
        fences=root.fences,
        is_terminal=root.terminal is not None,
        whole=root if delta.added_segments or delta.restored is not None else None,
        retention=delta.retention,
    )


def facts_of(file: FileEntry | _StoredFile) -> FileFacts:
    """The facts of a file."""
    block_count = len(file.block_rows) // _NUMBER_BYTES
    rows = unpack(f"<{block_count}q", file.block_rows[: block_count * _NUMBER_BYTES])
    return FileFacts(file.location, file.etag, file.size_bytes, sum(rows), block_count)


def _decode(json: bytes) -> _Stored:
    """The members that are read. A root of another format may have other members, so its format is checked first."""
    try:
        found = _DECODER.decode(json)
        version = found.format
    except UNDECODED:
        found, version = None, _FORMAT_DECODER.decode(json).format
        if version in FORMATS:
            raise
    if found is None or version not in FORMATS:
        raise Unsupported(
            "the root has an unknown format", expected=FORMATS[-1], found=version, hint="Update Underlay."
        )
    return found


def _last(tail: tuple[T, ...], count: int) -> tuple[T, ...]:
    if not 0 <= count <= len(tail):
        raise Malformed("not a root: it added more files than its tail has", expected=len(tail), found=count)
    return tail[len(tail) - count :]
