"""The files that a compaction writes: copied and newly encoded blocks, joined up to the target size, each put in one
piece.

Memory holds one file being made, and its encoded parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from deflate import crc32

from underlay.cache.same_file import KnownFile, get_same_ranges
from underlay.change.files.writer import NewFile
from underlay.errors import Damaged, Unsupported
from underlay.index.entry import NO_CRC, FileEntry, FileLayout
from underlay.index.intake.spliced import EntryPart, kind_of, spliced_entry
from underlay.index.keys import RevisionKeys, file_name, is_own
from underlay.parquet.footer.checks import check_ranges, check_readable
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.splice import join_alike
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail
from underlay.parquet.write.splice_file import ReadRanges, SourceBlocks, block_places, form_of, splice_file
from underlay.pm.convert.build import sidecar_of
from underlay.pm.format.checksum import identity
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import ObjectPlace
from underlay.schema.table_schema import TableSchema
from underlay.store.store import Store
from underlay.table.commit.commit import put_all
from underlay.values.ranges import ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """A file whose blocks can be copied."""

    entry: FileEntry
    layout: FileLayout
    footer: Footer
    form: bytes
    places: Sequence[ByteRange]
    """Where each of its blocks lies."""
    read: ReadRanges
    first: int = 0
    """The number of its first block in the footer, which it may share with other files."""
    new: NewFile | None = None
    """The file itself, if it was encoded for this output and is not in the store."""


class StoredFile(NamedTuple):
    """A file to open: where it is, and what the table knows of it."""

    place: ObjectPlace
    entry: FileEntry
    layout: FileLayout

    def read(self, ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        """These bytes. Raises NotFound, Replaced, Damaged."""
        place, entry = self.place, self.entry
        if is_own(entry.location):
            return place.store.get_ranges(place.key, ranges)
        known = KnownFile(entry.size_bytes, entry.etag, entry.footer_bytes, entry.footer_crc)
        return get_same_ranges(place.store, place.key, ranges, known)

    def read_footer(self) -> bytes:
        """The footer, which must be the one that the table knows."""
        if self.entry.footer_crc == NO_CRC:
            raise Unsupported(
                "the file was registered through its sidecar, and its footer was never read",
                place=self.entry.location,
                hint="Scan the table and append its rows instead.",
            )
        end = self.entry.size_bytes - TAIL_BYTES
        (data,) = self.read([ByteRange(end - self.entry.footer_bytes, end)])
        raw = bytes(data)
        if crc32(raw) != self.entry.footer_crc:
            raise Damaged(
                "the footer is not the one that the table recorded",
                place=self.entry.location,
                hint='Run "underlay verify".',
            )
        return raw


def open_files(files: Sequence[StoredFile], parallel_requests: int) -> list[OpenFile]:
    """Open files in a store: read and check their footers, those of one layout together where they are alike, since
    parsing many small ones costs more than copying their blocks. Raises Damaged, Unsupported, NotFound, Replaced.
    """
    raws = side_by_side(StoredFile.read_footer, files, parallel_requests)
    by_layout: dict[str, list[int]] = {}
    for number, file in enumerate(files):
        by_layout.setdefault(file.entry.layout, []).append(number)
    found: dict[int, OpenFile] = {}
    for numbers in by_layout.values():
        joined = join_alike([raws[number] for number in numbers])
        if joined is not None:
            opened = _open_joined(*joined, [files[number] for number in numbers])
        else:
            opened = [
                one
                for number in numbers
                for footer in [Footer.parse(raws[number])]
                for one in _open_joined(footer, [footer.row_group_count], [files[number]])
            ]
        found |= zip(numbers, opened, strict=True)
    return [found[number] for number in range(len(files))]


def _open_joined(footer: Footer, counts: Sequence[int], files: Sequence[StoredFile]) -> list[OpenFile]:
    """The files of a footer, with how many of its blocks each has."""
    check_readable(footer)
    sizes = np.repeat(np.array([file.entry.size_bytes for file in files], np.int64), counts)
    check_ranges(footer, sizes[:, None])
    form, places = form_of(footer), block_places(footer)
    ends = accumulate(counts)
    return [
        OpenFile(
            entry=file.entry,
            layout=file.layout,
            footer=footer,
            form=form,
            places=places[end - count : end],
            read=file.read,
            first=end - count,
        )
        for file, count, end in zip(files, counts, ends, strict=True)
    ]


def open_new(new: NewFile) -> OpenFile:
    """A file that was just encoded."""
    data = memoryview(new.data)
    tail = read_tail(bytes(data[-TAIL_BYTES:]), len(data))
    footer = Footer.parse(bytes(data[tail.footer_offset : -TAIL_BYTES]))
    return OpenFile(
        entry=new.entry,
        layout=new.layout,
        footer=footer,
        form=form_of(footer),
        places=block_places(footer),
        read=lambda ranges: [data[begin:end] for begin, end in ranges],
        new=new,
    )


@dataclass(slots=True)
class _Pending:
    """The blocks collected for the next file of one kind."""

    parts: list[tuple[OpenFile, list[int]]] = field(default_factory=list)
    size_bytes: int = 0
    block_count: int = 0

    def add(self, file: OpenFile, block: int, size_bytes: int) -> None:
        if not self.parts or self.parts[-1][0] is not file:
            self.parts.append((file, []))
        self.parts[-1][1].append(block)
        self.size_bytes += size_bytes
        self.block_count += 1


@dataclass(kw_only=True)
class Outputs:
    """Collects blocks, and puts them as files."""

    store: Store
    keys: RevisionKeys
    schema: TableSchema
    most_bytes: int
    most_blocks: int
    next_block: Callable[[int], int]
    """Adds to the number of blocks, and returns the number before."""
    entries: list[FileEntry] = field(default_factory=list)
    layouts: dict[str, FileLayout] = field(default_factory=dict)
    _pending: dict[tuple[object, ...], _Pending] = field(default_factory=dict)

    def add(self, file: OpenFile, blocks: Sequence[int]) -> None:
        """Add blocks of a file, after earlier ones of the same kind."""
        pending = self._pending.setdefault((file.form, *kind_of(file.entry)), _Pending())
        for block in blocks:
            size = file.places[block].size_bytes
            is_full = pending.size_bytes + size > self.most_bytes or pending.block_count >= self.most_blocks
            if pending.parts and is_full:
                self._put(pending)
                pending.parts, pending.size_bytes, pending.block_count = [], 0, 0
            pending.add(file, block, size)

    def finish(self) -> None:
        """Put what is left."""
        for pending in self._pending.values():
            if pending.parts:
                self._put(pending)
        self._pending.clear()

    def _put(self, pending: _Pending) -> None:
        file, blocks = pending.parts[0]
        is_whole = len(pending.parts) == 1 and file.new is not None and len(blocks) == file.footer.row_group_count
        self.put(file.new if is_whole and file.new is not None else self._spliced(pending))

    def put(self, new: NewFile) -> None:
        """Put a finished file."""
        put_all(self.store, new.objects(self.keys))
        self.entries.append(new.entry)
        self.layouts[new.layout.id] = new.layout

    def _spliced(self, pending: _Pending) -> NewFile:
        sources = [
            SourceBlocks(footer=file.footer, blocks=[file.first + block for block in blocks], read=file.read)
            for file, blocks in pending.parts
        ]
        made = splice_file(sources)
        sidecar = sidecar_of(memoryview(made.data), made.footer)
        parts, begin = [], 0
        for file, blocks in pending.parts:
            parts.append(EntryPart(file.entry, blocks, made.deltas[begin : begin + len(blocks)]))
            begin += len(blocks)
        first = pending.parts[0][0]
        count = self.next_block(pending.block_count)
        place = FileEntry(
            location=file_name(count, int.from_bytes(os.urandom(8), "big")),
            size_bytes=len(made.data),
            etag=None,
            footer_bytes=len(made.footer.data),
            footer_crc=crc32(made.footer.data),
            layout=first.entry.layout,
            block_rows=b"",
            columns=(),
            sidecar_bytes=len(sidecar),
            sidecar_crc=identity(sidecar),
        )
        entry = spliced_entry(parts, self.schema, place)
        return NewFile(entry=entry, layout=first.layout, data=made.data, sidecar=sidecar)
