"""The column chunks of a footer as arrays of shape [row groups, columns].

Every array comes from one field of ColumnChunk, its ColumnMetaData (field 3) or its Statistics (field 12 of that).
Numbers are as stored, negative ones too; a `has_` array distinguishes absent from 0. Spans are positions in the
footer's own bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from underlay.parquet.records.records import FieldValues, Flags, Integers, Spans, StructRecords
from underlay.parquet.records.stacked import StackedRecords
from underlay.parquet.thrift.places import FieldPath
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
class IndexedChunks:
    """What we check and index of every chunk. Type and codec are -1 where the chunk has none."""

    has_meta_data: Flags
    has_file_path: Flags
    has_crypto: Flags
    physical_type: Integers
    codec: Integers
    num_values: Integers
    total_compressed_bytes: Integers
    data_page_offset: Integers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks(IndexedChunks):
    """Every chunk of a file. `encodings` has bit k for encoding k."""

    file_offset: Integers
    encodings: npt.NDArray[np.uint32]
    total_uncompressed_bytes: Integers
    index_page_offset: Integers
    has_index_page_offset: Flags


_NUMBERS: dict[str, FieldPath] = {
    "file_offset": ((2,), ThriftKind.I64),
    "offset_index_offset": ((4,), ThriftKind.I64),
    "offset_index_length": ((5,), ThriftKind.I32),
    "column_index_offset": ((6,), ThriftKind.I64),
    "column_index_length": ((7,), ThriftKind.I32),
    "num_values": ((META, 5), ThriftKind.I64),
    "total_uncompressed_bytes": ((META, 6), ThriftKind.I64),
    "total_compressed_bytes": ((META, 7), ThriftKind.I64),
    "data_page_offset": ((META, 9), ThriftKind.I64),
    "index_page_offset": ((META, 10), ThriftKind.I64),
    "dictionary_page_offset": ((META, 11), ThriftKind.I64),
    "bloom_filter_offset": ((META, 14), ThriftKind.I64),
    "bloom_filter_length": ((META, 15), ThriftKind.I32),
    "null_count": ((META, STATISTICS, 3), ThriftKind.I64),
    "distinct_count": ((META, STATISTICS, 4), ThriftKind.I64),
    "nan_count": ((META, STATISTICS, 9), ThriftKind.I64),
}
"""0 where they are absent."""

_CODES: dict[str, FieldPath] = {
    "physical_type": ((META, 1), ThriftKind.I32),
    "codec": ((META, 4), ThriftKind.I32),
    "is_min_exact": ((META, STATISTICS, 8), ThriftKind.TRUE),
    "is_max_exact": ((META, STATISTICS, 7), ThriftKind.TRUE),
}
"""-1 where they are absent."""

_SPANS: dict[str, FieldPath] = {
    "min_value": ((META, STATISTICS, 6), ThriftKind.BINARY),
    "max_value": ((META, STATISTICS, 5), ThriftKind.BINARY),
    "deprecated_min": ((META, STATISTICS, 2), ThriftKind.BINARY),
    "deprecated_max": ((META, STATISTICS, 1), ThriftKind.BINARY),
}
_OTHERS: dict[str, FieldPath] = {
    "meta_data": ((META,), ThriftKind.STRUCT),
    "statistics": ((META, STATISTICS), ThriftKind.STRUCT),  # read so that a chunk that has them twice is refused
    "encodings": ((META, 2), ThriftKind.LIST),
    "file_path": ((1,), ThriftKind.BINARY),
    "crypto": ((8,), ThriftKind.STRUCT),
    "encrypted": ((9,), ThriftKind.BINARY),
}
_NAMES = (*_NUMBERS, *_CODES, *_SPANS, *_OTHERS)
_FIELDS = (*_NUMBERS.values(), *_CODES.values(), *_SPANS.values(), *_OTHERS.values())
_OPTIONAL = slice(len(_NUMBERS), len(_NUMBERS) + len(_CODES) + len(_SPANS))
_BINARIES = slice(_OPTIONAL.stop - len(_SPANS), _OPTIONAL.stop)
_ENCODINGS = _NAMES.index("encodings")
_UNINDEXED = frozenset(
    _NAMES.index(name)
    for name in ("file_offset", "total_uncompressed_bytes", "index_page_offset", "encodings", "file_path", "encrypted")
)
"""Fields of which the index needs no values, at most to know whether they are there."""


def read_chunks(tree: ThriftTree, row_group_count: int, column_count: int) -> Chunks:
    """All chunks of a footer in which every row group has `column_count` of them.

    All fields are read at once: the cost of a small footer is its numpy calls, not its bytes.
    """
    records = StructRecords(tree, CHUNKS)
    values = records.read(_FIELDS)
    encodings = records.masks_at(values.entries[_ENCODINGS])
    fields = _Fields(records, values, (row_group_count, column_count))
    number, has = fields.number, fields.has
    return Chunks(
        **fields.indexed(),
        file_offset=number["file_offset"],
        encodings=encodings.reshape(row_group_count, column_count),
        total_uncompressed_bytes=number["total_uncompressed_bytes"],
        index_page_offset=number["index_page_offset"],
        has_index_page_offset=has["index_page_offset"],
    )


def indexed_chunks(records: StackedRecords, row_group_count: int, column_count: int) -> IndexedChunks:
    """The chunks of many footers. All fields are located and checked as in one footer; some are not decoded."""
    values = records.read(_FIELDS, _UNINDEXED)
    return IndexedChunks(**_Fields(records, values, (row_group_count, column_count)).indexed())


class _Fields:
    """Fields by their names, as arrays of one shape."""

    def __init__(self, records: StructRecords | StackedRecords, values: FieldValues, shape: tuple[int, int]) -> None:
        found = values.numbers.reshape(len(_FIELDS), *shape)
        present = values.present.reshape(len(_FIELDS), *shape)
        found[_OPTIONAL][~present[_OPTIONAL]] = -1
        begins = records.begins_at(values.entries[_BINARIES]).reshape(len(_SPANS), *shape)
        self.number = dict(zip(_NAMES, found, strict=True))
        self.has = dict(zip(_NAMES, present, strict=True))
        self._span = {name: Spans(begin, self.number[name]) for name, begin in zip(_SPANS, begins, strict=True)}

    def indexed(self) -> dict[str, Any]:  # Any: numbers, flags and Statistics, which the names tell
        """Those of IndexedChunks."""
        number, has = self.number, self.has
        return {
            "has_meta_data": has["meta_data"],
            "has_file_path": has["file_path"],
            "has_crypto": has["crypto"] | has["encrypted"],
            "physical_type": number["physical_type"],
            "codec": number["codec"],
            "num_values": number["num_values"],
            "total_compressed_bytes": number["total_compressed_bytes"],
            "data_page_offset": number["data_page_offset"],
            "dictionary_page_offset": number["dictionary_page_offset"],
            "has_dictionary_page_offset": has["dictionary_page_offset"],
            "bloom_filter_offset": number["bloom_filter_offset"],
            "has_bloom_filter_offset": has["bloom_filter_offset"],
            "bloom_filter_length": number["bloom_filter_length"],
            "has_bloom_filter_length": has["bloom_filter_length"],
            "offset_index_offset": number["offset_index_offset"],
            "offset_index_length": number["offset_index_length"],
            "has_offset_index": has["offset_index_offset"],
            "column_index_offset": number["column_index_offset"],
            "column_index_length": number["column_index_length"],
            "has_column_index": has["column_index_offset"],
            "statistics": _statistics(number, has, self._span),
        }


def _statistics(number: dict[str, Integers], has: dict[str, Flags], span: dict[str, Spans]) -> Statistics:
    return Statistics(
        null_count=number["null_count"],
        has_null_count=has["null_count"],
        distinct_count=number["distinct_count"],
        has_distinct_count=has["distinct_count"],
        nan_count=number["nan_count"],
        has_nan_count=has["nan_count"],
        min_value=span["min_value"],
        max_value=span["max_value"],
        is_min_exact=number["is_min_exact"].astype(np.int8),
        is_max_exact=number["is_max_exact"].astype(np.int8),
        deprecated_min=span["deprecated_min"],
        deprecated_max=span["deprecated_max"],
    )
