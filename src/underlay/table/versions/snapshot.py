"""One version of a table, to read: immutable, and opened piece by piece on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from underlay.errors import Inconsistent, NotFound, SnapshotExpired
from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import COMES_AGAIN, RevisionKeys, plain_location
from underlay.index.root import Definition, PageRef, Root, SegmentRef, SourceRecord, decode_tombstone
from underlay.index.segment.segment import Segment
from underlay.index.sources.tree import lookup
from underlay.plan.part import Part
from underlay.runtime.locks import cached_property
from underlay.runtime.threads import side_by_side
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

_KEPT_FILES = 256
SegmentLoader = Callable[[Store, RevisionKeys, SegmentRef], Segment]
"""Opens a segment, or returns an open one from a cache."""


def open_segment(store: Store, keys: RevisionKeys, ref: SegmentRef) -> Segment:
    """The segment, with nothing fetched yet."""
    key = keys.segment(ref.id)

    def fetch(ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        return store.get_ranges(key, ranges)

    return Segment.open(ref, fetch, key)


class Snapshot:
    """The version that `root` describes. Safe for many threads."""

    def __init__(
        self, store: Store, keys: RevisionKeys, root: Root, load_segment: SegmentLoader = open_segment
    ) -> None:
        self.store = store
        self.keys = keys
        self.root = root
        self.load_segment = load_segment

    @property
    def version(self) -> int:
        """The number of this version."""
        return self.root.version

    @property
    def definition(self) -> Definition:
        """What the table is, apart from its rows."""
        return self.root.definition

    def check_left(self) -> None:
        """Raise SnapshotExpired when the version expired since it was opened: then its objects may be gone (R6). One
        request; to be called when one of them is missing."""
        key = self.keys.root(self.root.version)
        try:
            expired = decode_tombstone(self.store.get(key)[0]) is not None
        except NotFound:
            expired = True  # the table was dropped and swept
        if expired:
            raise SnapshotExpired(
                f"version {self.version} expired while it was read",
                place=self.keys.folder,
                hint="Read a newer version. A lease keeps one for as long as it is read: table.lease().",
            )

    @cached_property
    def schema(self) -> TableSchema:
        """The columns."""
        return from_record(self.root.definition.schema)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, in the root's order. Fetches nothing by itself, and keeps no segment alive."""
        return tuple(map(self.segment, range(len(self.root.segments))))

    def segment(self, place: int) -> Segment:
        """The segment at this position in the root."""
        return self.load_segment(self.store, self.keys, self.root.segments[place])

    @cached_property
    def _layouts(self) -> dict[str, FileLayout]:
        return {layout.id: layout for layout in self.root.layouts}

    def layout(self, layout_id: str) -> FileLayout:
        """A layout that files were written with. Raises Inconsistent when the root does not have it."""
        found = self._layouts.get(layout_id)
        if found is None:
            raise Inconsistent("a file's layout is not in the root", place=self.keys.folder, found=layout_id)
        return found

    @cached_property
    def tail(self) -> Segment:
        """The files that are in no segment, as a segment."""
        return Segment.of_entries(self.root.tail, self.schema)

    def parts(self, segments: Collection[int] | None = None) -> list[Part]:
        """What a planner works on: the segments at these positions in the root, or all of them, then the tail.

        Reads a segment's list of files if files in segments have changed since, according to the root.
        """
        wanted = range(len(self.root.segments)) if segments is None else sorted(segments)
        found = [self._part(self.segment(place)) for place in wanted]
        return [*found, Part(segment=self.tail)] if self.root.tail else found

    def _part(self, segment: Segment) -> Part:
        if not self.root.removed and not self.root.deletes:
            return Part(segment=segment)
        gone = self.rows_at(segment, self.root.removed)
        changed = self.rows_at(segment, self.root.deletes)
        is_removed = np.zeros(segment.file_count, np.bool_)
        is_removed[list(gone.values())] = True
        deletes = {row: self.root.deletes[name] for name, row in changed.items()}
        return Part(segment=segment, is_removed=is_removed if gone else None, deletes=deletes)

    def rows_at(self, segment: Segment, locations: Collection[str]) -> dict[str, int]:
        """The rows of those of these files that are in the segment."""
        if not locations:
            return {}
        found = pc.index_in(segment.locations, value_set=pa.array(list(locations), pa.string()))
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)).tolist()
        return {segment.locations[row].as_py(): row for row in rows}

    def find_files(self, locations: Collection[str]) -> dict[str, FileEntry]:
        """These files, as they are in this version. Raises NotFound for one that is not in it."""
        found = self.known_files(locations)
        missing = set(locations) - found.keys()
        if missing:
            raise NotFound("the table has no such file", place=self.keys.folder, found=", ".join(sorted(missing)))
        return found

    @cached_property
    def _kept_files(self) -> dict[str, FileEntry]:
        """Entries of files that were asked for."""
        return {}

    def known_files(self, locations: Collection[str]) -> dict[str, FileEntry]:
        """Those of these files that are in this version. Reads segments until all are found. Keeps a few of them: each
        change of rows asks repeatedly for the files that it changes."""
        wanted = set(locations).difference(self.root.removed)
        kept = self._kept_files
        found = {name: kept[name] for name in wanted.intersection(kept)}
        found |= {file.location: file for file in self.root.tail if file.location in wanted}
        for place in range(len(self.root.segments)):
            missing = wanted - found.keys()
            if not missing:
                break
            segment = self.segment(place)
            rows = self.rows_at(segment, missing)
            if rows:
                found |= {file.location: self.current(file) for file in segment.entries(rows.values())}
        if len(found) + len(kept) <= _KEPT_FILES:
            kept.update(found)
        return found

    def files_at(self, locations: Collection[str]) -> dict[str, FileEntry]:
        """The registered files of this version at these places, by the location of their first registration."""
        wanted = {plain_location(location) for location in locations}
        names = {name for name in self._returned_files() if plain_location(name) in wanted}
        return {plain_location(name): file for name, file in self.known_files(wanted | names).items()}

    def _returned_files(self) -> Iterator[str]:
        """The locations of files that were removed and registered again."""
        yield from (file.location for file in self.root.tail if plain_location(file.location) != file.location)
        for segment in self.segments:
            yield from segment.remember("returned_files", partial(_returned, segment))

    def files(self) -> Iterator[FileEntry]:
        """Every file, as it is in this version. Reads all segments."""
        gone = set(self.root.removed)
        for segment in self.segments:
            for file in segment.entries():
                if file.location not in gone:
                    yield self.current(file)
        yield from self.root.tail

    def added_files(self) -> tuple[FileEntry, ...]:
        """The files that this version added, as it added them. Reads the segments that it added."""
        delta = self.root.delta
        added = set(delta.added_segments)
        pairs = zip(self.root.segments, self.segments, strict=True)
        inner = [file for ref, segment in pairs if ref.id in added for file in segment.entries()]
        first = len(self.root.tail) - delta.added_in_tail
        return (*inner, *self.root.tail[first:])

    def find_sources(self, uris: Sequence[str]) -> dict[str, SourceRecord]:
        """The records of the uris that are known."""
        return lookup(self.root.sources, uris, self.fetch_pages)

    def fetch_pages(self, pages: Sequence[PageRef]) -> Sequence[memoryview]:
        """The bytes of pages of the source tree, fetched in parallel."""

        def fetch(page: PageRef) -> memoryview:
            return self.store.get(self.keys.source_page(page.id))[0]

        return side_by_side(fetch, pages, self.store.parallel_requests)

    def current(self, file: FileEntry) -> FileEntry:
        """A file of a segment, as it is in this version."""
        bits = self.root.deletes.get(file.location)
        return file if bits is None else replace(file, deletes=bits, deleted_rows=bitmaps.count(bits))


def _returned(segment: Segment) -> tuple[str, ...]:
    chosen = segment.locations.filter(pc.match_substring_regex(segment.locations, f"^{COMES_AGAIN}"))
    return tuple(map(str, chosen.to_pylist()))
