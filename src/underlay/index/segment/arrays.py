"""The arrays of a segment, whether from its pieces or from entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.index.segment.packed import BoundColumn
from underlay.runtime.locks import cached_property
from underlay.schema.types import Scalar

I64 = NDArray[np.int64]
Shape = tuple[tuple[int, int], ...]
"""The columns of a file, in the order of its entry: field id, and position among the leaves of the file's schema."""


@dataclass(frozen=True, kw_only=True)
class FileArrays:
    """All files. Files with equal columns share a shape, of which `shape_ids` holds the number."""

    locations: pa.StringArray
    size_bytes: I64
    etags: pa.StringArray
    """Null where none is kept."""
    footer_bytes: I64
    footer_crcs: I64
    layouts: pa.StringArray
    partitions: pa.ListArray[pa.BinaryScalar]
    specs: I64
    """The partition spec of each file. A stored segment has files of one only."""
    deletes: pa.BinaryArray
    """Serialised, null where no row is deleted."""
    deleted_rows: I64
    sidecar_bytes: I64
    sidecar_crcs: I64
    constants: pa.BinaryArray
    """Packed, see `index.constants`; null where a file has none."""
    block_counts: I64
    shape_ids: NDArray[np.int32]
    shapes: tuple[Shape, ...]

    @property
    def file_count(self) -> int:
        """The number of files."""
        return len(self.size_bytes)

    @cached_property
    def block_begin(self) -> I64:
        """The first block of each file, and the number of blocks after the last."""
        found = np.zeros(self.file_count + 1, dtype=np.int64)
        np.cumsum(self.block_counts, out=found[1:])
        return found

    @cached_property
    def file_of_block(self) -> I64:
        """The file of each block."""
        return np.repeat(np.arange(self.file_count, dtype=np.int64), self.block_counts)

    @cached_property
    def fields(self) -> frozenset[int]:
        """The leaves that at least one file has."""
        return frozenset(field for shape in self.shapes for field, _ in shape)

    def columns_of(self, field: int) -> NDArray[np.int32]:
        """For each file the position of a leaf in the file's own schema, -1 where it has no such leaf."""
        by_shape = np.array([columns.get(field, -1) for columns in self._columns] or [-1], dtype=np.int32)
        return by_shape[self.shape_ids]

    @cached_property
    def _columns(self) -> tuple[dict[int, int], ...]:
        """The shapes as mappings."""
        return tuple(map(dict, self.shapes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkStatistics:
    """What is known about one leaf's chunks, a row for each block; see `index.entry.Flag`."""

    type: Scalar
    low: BoundColumn | None
    """None for a type without bounds."""
    high: BoundColumn | None
    null_counts: I64
    flags: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlaces:
    """Where one leaf's chunks lie, a row for each block."""

    begins: I64
    sizes: I64
    codecs: NDArray[np.uint8]
    value_counts: I64 | None
    """-1 where a chunk has a value for each row; None when all chunks do."""


class Arrays(Protocol):
    """Anything that has the arrays of a segment."""

    @property
    def files(self) -> FileArrays:
        """All files."""

    @property
    def block_rows(self) -> I64:
        """The rows of each block."""

    def statistics(self, field: int) -> ChunkStatistics | None:
        """What is known of one leaf; None when no file has it."""

    def places(self, field: int) -> ChunkPlaces | None:
        """Where one leaf's chunks lie; None when no file has it."""


def partition_array(values: Sequence[Sequence[bytes | None]]) -> Any:  # noqa: ANN401  # a list array, which the stubs lose
    """The partitions of files in the form that `FileArrays` holds."""
    return pa.array(values, pa.list_(pa.binary()))
