"""Some files of a segment in another order, in other partitions, or with deleted rows, array by array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from underlay.index import deletion_vectors as bitmaps
from underlay.index.segment.arrays import I64, Arrays, ChunkPlaces, ChunkStatistics, FileArrays, partition_array
from underlay.index.segment.packed import BoundColumn
from underlay.parquet.thrift.tape import ragged_ranges
from underlay.runtime.locks import cached_property


class FileSubset:
    """The arrays of only the files at `rows` of other arrays. See Arrays."""

    def __init__(self, arrays: Arrays, rows: I64) -> None:
        self._arrays = arrays
        self._rows = rows

    @cached_property
    def _blocks(self) -> I64:
        files = self._arrays.files
        return ragged_ranges(files.block_begin[self._rows], files.block_counts[self._rows])

    @cached_property
    def files(self) -> FileArrays:
        """See Arrays."""
        given, rows = self._arrays.files, self._rows
        used, shape_ids = np.unique(given.shape_ids[rows], return_inverse=True)
        names = [field.name for field in fields(FileArrays) if field.name not in ("shape_ids", "shapes")]
        return replace(
            given,
            **{name: getattr(given, name).take(rows) for name in names},
            shape_ids=shape_ids.astype(np.int32),
            shapes=tuple(given.shapes[shape] for shape in used.tolist()),
        )

    @cached_property
    def block_rows(self) -> I64:
        """See Arrays."""
        return self._arrays.block_rows[self._blocks]

    def statistics(self, field: int) -> ChunkStatistics | None:
        """See Arrays."""
        given = self._arrays.statistics(field) if field in self.files.fields else None
        if given is None:
            return None
        return replace(
            given,
            low=self._taken(given.low),
            high=self._taken(given.high),
            null_counts=given.null_counts[self._blocks],
            flags=given.flags[self._blocks],
        )

    def places(self, field: int) -> ChunkPlaces | None:
        """See Arrays."""
        given = self._arrays.places(field) if field in self.files.fields else None
        if given is None:
            return None
        counts = None if given.value_counts is None else given.value_counts[self._blocks]
        return ChunkPlaces(
            begins=given.begins[self._blocks],
            sizes=given.sizes[self._blocks],
            codecs=given.codecs[self._blocks],
            value_counts=None if counts is None or (counts < 0).all() else counts,
        )

    def _taken(self, bounds: BoundColumn | None) -> BoundColumn | None:
        if bounds is None or isinstance(bounds, np.ndarray):
            return None if bounds is None else bounds[self._blocks]
        taken: BoundColumn = bounds.take(self._blocks)
        return taken


class PartitionedFiles:
    """Other arrays with these partitions of the files, by one spec. See Arrays."""

    def __init__(self, arrays: Arrays, partitions: Sequence[Sequence[bytes | None]], spec: int) -> None:
        specs = np.full(len(partitions), spec, np.int64)
        self.files: FileArrays = replace(arrays.files, partitions=partition_array(partitions), specs=specs)
        self.block_rows: I64 = arrays.block_rows
        self.statistics = arrays.statistics
        self.places = arrays.places


class DeletedFiles:
    """Other arrays with these deleted rows, as packed bitmaps; None for a file without any. See Arrays."""

    def __init__(self, arrays: Arrays, deletes: Sequence[bytes | None]) -> None:
        counts = np.array([0 if bits is None else bitmaps.count(bits) for bits in deletes], np.int64)
        self.files: FileArrays = replace(arrays.files, deletes=pa.array(deletes, pa.binary()), deleted_rows=counts)
        self.block_rows: I64 = arrays.block_rows
        self.statistics = arrays.statistics
        self.places = arrays.places
