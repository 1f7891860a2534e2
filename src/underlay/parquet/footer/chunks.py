"""The column chunks of a footer as arrays of shape [row groups, columns].

Every array comes from one field of ColumnChunk, its ColumnMetaData (field 3) or its Statistics (field 12 of that).
Numbers are as stored, negative ones too; a `has_` array tells absent from 0. Spans are positions in the footer's
own bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from underlay.parquet.records.records import Flags, Integers, Spans, StructRecords
from underlay.parquet.records.stacked import StackedRecords
from underlay.parquet.thrift.tree import ITEM, ThriftKind, ThriftTree

CHUNKS = (4, ITEM, 1, ITEM)
"""The path of a footer's column chunks."""

META = 3
STATISTICS = 12

SHIFTING = ((2,), (4,), (6,), (META, 9), (META, 10), (META, 11), (META, 14))
"""The fields of a chunk that are positions in the file: they move when the file's bytes do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What chunks say about their values. `is_*_exact` is 1 or 0, and -1 where the writer did not say."""

    null_count: Integers
    has_null_count: Flags
    distinct_count: Integers
    has_distinct_count: Flags
    nan_count: Integers
    has_nan_count: Flags
    min_value: Spans
    max_value: Spans
    is_min_exact: npt.NDArray[np.int8]
    is_max_exact: npt.NDArray[np.int8]
    deprecated_min: Spans
    deprecated_max: Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Every chunk of a file. Type and codec are -1 where the chunk has none; `encodings` has bit k for encoding k."""

    has_meta_data: Flags
    has_file_path: Flags
    has_crypto: Flags
    file_offset: Integers
    physical_type: Integers
    codec: Integers
    encodings: npt.NDArray[np.uint32]
    num_values: Integers
    total_uncompressed_bytes: Integers
    total_compressed_bytes: Integers
    data_page_offset: Integers
    index_page_offset: Integers
    has_index_page_offset: Flags
    dictionary_page_offset: Integers
    has_dictionary_page_offset: Flags
    bloom_filter_offset: Integers
    has_bloom_filter_offset: Flags
    bloom_filter_length: Integers
    has_bloom_filter_length: Flags
    offset_index_offset: Integers
    offset_index_length: Integers
    has_offset_index: Flags
    column_index_offset: Integers
    column_index_length: Integers
    has_column_index: Flags
    statistics: Statistics


class _Grid:
    """Fields of the chunks, put into rows and columns."""

    def __init__(self, records: StructRecords | StackedRecords, shape: tuple[int, int]) -> None:
        self.records = records
        self.shape = shape

    def numbers(self, *path: int, kind: ThriftKind = ThriftKind.I64, absent: int = 0) -> tuple[Integers, Flags]:
        values, present = self.records.integers(*path, kind=kind, absent=absent)
        return values.reshape(self.shape), present.reshape(self.shape)

    def number(self, *path: int, kind: ThriftKind = ThriftKind.I64, absent: int = 0) -> Integers:
        return self.numbers(*path, kind=kind, absent=absent)[0]

    def flag(self, *path: int) -> npt.NDArray[np.int8]:
        return self.number(*path, kind=ThriftKind.TRUE, absent=-1).astype(np.int8)

    def has(self, *path: int, kind: ThriftKind) -> Flags:
        return self.records.has(*path, kind=kind).reshape(self.shape)

    def spans(self, *path: int) -> Spans:
        begin, length = self.records.spans(*path)
        return Spans(begin.reshape(self.shape), length.reshape(self.shape))

    def masks(self, *path: int) -> npt.NDArray[np.uint32]:
        return self.records.masks(*path).reshape(self.shape)


def read_chunks(tree: ThriftTree, row_group_count: int, column_count: int) -> Chunks:
    """All chunks of a footer in which every row group has `column_count` of them."""
    return chunks_of(StructRecords(tree, CHUNKS), row_group_count, column_count)


def chunks_of(records: StructRecords | StackedRecords, row_group_count: int, column_count: int) -> Chunks:
    """The chunks whose structs these are."""
    grid = _Grid(records, (row_group_count, column_count))
    index_page, has_index_page = grid.numbers(META, 10)
    dictionary_page, has_dictionary_page = grid.numbers(META, 11)
    bloom_offset, has_bloom_offset = grid.numbers(META, 14)
    bloom_length, has_bloom_length = grid.numbers(META, 15, kind=ThriftKind.I32)
    offset_index, has_offset_index = grid.numbers(4)
    column_index, has_column_index = grid.numbers(6)
    return Chunks(
        has_meta_data=grid.has(META, kind=ThriftKind.STRUCT),
        has_file_path=grid.has(1, kind=ThriftKind.BINARY),
        has_crypto=grid.has(8, kind=ThriftKind.STRUCT) | grid.has(9, kind=ThriftKind.BINARY),
        file_offset=grid.number(2),
        physical_type=grid.number(META, 1, kind=ThriftKind.I32, absent=-1),
        codec=grid.number(META, 4, kind=ThriftKind.I32, absent=-1),
        encodings=grid.masks(META, 2),
        num_values=grid.number(META, 5),
        total_uncompressed_bytes=grid.number(META, 6),
        total_compressed_bytes=grid.number(META, 7),
        data_page_offset=grid.number(META, 9),
        index_page_offset=index_page,
        has_index_page_offset=has_index_page,
        dictionary_page_offset=dictionary_page,
        has_dictionary_page_offset=has_dictionary_page,
        bloom_filter_offset=bloom_offset,
        has_bloom_filter_offset=has_bloom_offset,
        bloom_filter_length=bloom_length,
        has_bloom_filter_length=has_bloom_length,
        offset_index_offset=offset_index,
        offset_index_length=grid.number(5, kind=ThriftKind.I32),
        has_offset_index=has_offset_index,
        column_index_offset=column_index,
        column_index_length=grid.number(7, kind=ThriftKind.I32),
        has_column_index=has_column_index,
        statistics=_read_statistics(grid),
    )


def _read_statistics(grid: _Grid) -> Statistics:
    grid.has(META, STATISTICS, kind=ThriftKind.STRUCT)  # refuses a chunk that has statistics twice
    null_count, has_null_count = grid.numbers(META, STATISTICS, 3)
    distinct_count, has_distinct_count = grid.numbers(META, STATISTICS, 4)
    nan_count, has_nan_count = grid.numbers(META, STATISTICS, 9)
    return Statistics(
        null_count=null_count,
        has_null_count=has_null_count,
        distinct_count=distinct_count,
        has_distinct_count=has_distinct_count,
        nan_count=nan_count,
        has_nan_count=has_nan_count,
        min_value=grid.spans(META, STATISTICS, 6),
        max_value=grid.spans(META, STATISTICS, 5),
        is_min_exact=grid.flag(META, STATISTICS, 8),
        is_max_exact=grid.flag(META, STATISTICS, 7),
        deprecated_min=grid.spans(META, STATISTICS, 2),
        deprecated_max=grid.spans(META, STATISTICS, 1),
    )
