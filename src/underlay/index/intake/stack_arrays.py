"""Files of a stack as the arrays of a segment, without an entry for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from deflate import crc32

from underlay.index.entry import NO_CRC
from underlay.index.intake.statistics import LeafArrays
from underlay.index.segment.arrays import I64, ChunkPlaces, ChunkStatistics, FileArrays, partition_array
from underlay.parquet.footer.stack import Origin, Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """Where a file lies and what identifies it, as in `FileEntry`."""

    location: str
    size_bytes: int
    etag: str | None = None
    own_footer_bytes: int | None = None
    """For a file that is described by something else than its own footer, which nobody has read: that footer's length,
    or 0 if bytes follow it. The index has no checksum of it then."""


class StackArrays:
    """The arrays of files that have no deletions, no sidecars and no partition. See Arrays."""

    def __init__(
        self, stack: Stack, leaves: Sequence[LeafArrays], places: Sequence[FilePlace], layouts: Sequence[str]
    ) -> None:
        """`layouts` names the layout of each file."""
        self._leaves = {leaf.field: leaf for leaf in leaves}
        self.block_rows: I64 = stack.row_counts
        count = len(places)
        none = np.zeros(count, np.int64)
        footers = [_footer_facts(origin, place) for origin, place in zip(stack.origins, places, strict=True)]
        self.files = FileArrays(
            locations=pa.array([place.location for place in places], pa.string()),
            size_bytes=np.array([place.size_bytes for place in places], np.int64),
            etags=pa.array([place.etag for place in places], pa.string()),
            footer_bytes=np.array([size for size, _ in footers], np.int64),
            footer_crcs=np.array([crc for _, crc in footers], np.int64),
            layouts=pa.array(layouts, pa.string()),
            partitions=partition_array([()] * count),
            specs=none,
            deletes=pa.nulls(count, pa.binary()),
            deleted_rows=none,
            sidecar_bytes=none,
            sidecar_crcs=none,
            constants=pa.nulls(count, pa.binary()),
            block_counts=np.array([origin.row_group_count for origin in stack.origins], np.int64),
            shape_ids=np.zeros(count, np.int32),
            shapes=(tuple((leaf.field, leaf.column) for leaf in leaves),),
        )

    def statistics(self, field: int) -> ChunkStatistics | None:
        """See Arrays."""
        return self._leaves[field].statistics if field in self._leaves else None

    def places(self, field: int) -> ChunkPlaces | None:
        """See Arrays."""
        return self._leaves[field].places if field in self._leaves else None


def _footer_facts(origin: Origin, place: FilePlace) -> tuple[int, int]:
    """Length and checksum of a file's own footer."""
    if place.own_footer_bytes is not None:
        return place.own_footer_bytes, NO_CRC
    return len(origin.raw), crc32(origin.raw)
