"""Writes Arrow tables as Parquet files: blocks filled to a target size, statistics that mislead no reader.

| what | why |
|---|---|
| no dictionary and no bloom filter on floats | readers look up one zero and miss the other |
| no dictionary of values that rarely repeat | it takes time, and saves nothing |
| no bounds for a chunk that holds NaN | readers take bounds for bounds of all values |
| timestamps as 64-bit integers, never INT96 | INT96 has no order |
| short decimals as integers | half the size, and bounds that every reader compares alike |
| a checksum in every page | a flipped bit is an error, not a wrong value; it costs nothing that was measurable |
| field ids, no Arrow schema | columns are found by id; Arrow's own schema would be a kilobyte a file |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import InvalidRequest
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail
from underlay.parquet.records.records import Flags
from underlay.parquet.write.dictionary_choice import dictionary_leaves
from underlay.parquet.write.nan_statistics import find_nan, float_leaves, leaf_paths, without_bounds

CodecName = Literal["gzip", "brotli", "lz4", "zstd", "snappy", "none"]

SMALL_BLOCK_BYTES = 32 << 10
"""Starting zstd takes as long as decoding a small page: blocks of 300 rows in six columns are read twice as fast with
snappy, and are some kilobytes larger."""


@dataclass(frozen=True, slots=True)
class SortedBy:
    """A leaf that rows are sorted by, by its position."""

    column: int
    is_descending: bool = False
    is_nulls_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How files are filled. A block ends at whichever of its targets comes first, and so does a file.

    `bloom` maps dotted paths of leaves to the probability of a false positive. A block's bytes are those of its Arrow
    memory, a file's are as stored. `small_codec`, if given, is the codec of files whose first block is small.
    """

    block_rows: int = 1 << 20
    block_bytes: int = 128 << 20
    file_bytes: int = 512 << 20
    file_blocks: int = 64
    codec: CodecName = "zstd"
    level: int | None = 1
    small_codec: CodecName | None = None
    bloom: Mapping[str, float] = field(default_factory=dict)
    sorted_by: tuple[SortedBy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A finished file in memory. `nan_free` marks the blocks and leaves without NaN."""

    parts: tuple[pa.Buffer | bytes, ...]
    size_bytes: int
    row_count: int
    footer: Footer
    nan_free: Flags

    def data(self) -> bytes:
        """All bytes of the file."""
        return b"".join(self.parts)

    def view(self) -> bytes | memoryview:
        """The same, without a copy where possible; the view keeps the file in memory."""
        return memoryview(self.parts[0]).cast("B") if len(self.parts) == 1 else self.data()


def write_files(
    tables: Iterable[pa.Table], schema: pa.Schema, options: WriteOptions | None = None
) -> Iterator[WrittenFile]:
    """The rows of `tables`, which have `schema`, as files, in their order. No rows make no file.

    Holds one file and one block in memory. Raises InvalidRequest for a bloom filter on a float or an unknown column.
    """
    options = options or WriteOptions()
    check_bloom(schema, options)
    open_file: _OpenFile | None = None
    for block in fill_blocks(tables, schema, options):
        open_file = open_file or _OpenFile(schema, options, block)
        open_file.add(block)
        if open_file.is_full():
            yield open_file.finish()
            open_file = None
    if open_file is not None:
        yield open_file.finish()


def fill_blocks(tables: Iterable[pa.Table], schema: pa.Schema, options: WriteOptions) -> Iterator[pa.Table]:
    """The same rows in tables of the block's target size; only the last may be smaller."""
    pending: list[pa.Table] = []
    rows = size_bytes = 0
    for table in tables:
        rest = table
        while rest.num_rows:
            row_bytes = max(1.0, rest.nbytes / rest.num_rows)
            room = min(options.block_rows - rows, max(1, int((options.block_bytes - size_bytes) / row_bytes)))
            taken = rest.slice(0, room)
            pending.append(taken)
            rows += taken.num_rows
            size_bytes += int(taken.num_rows * row_bytes)
            rest = rest.slice(room)
            if rows >= options.block_rows or size_bytes + row_bytes > options.block_bytes:
                yield _joined(pending, schema)
                pending, rows, size_bytes = [], 0, 0
    if rows:
        yield _joined(pending, schema)


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return table if table.schema.equals(schema, check_metadata=True) else table.cast(schema)


def check_bloom(schema: pa.Schema, options: WriteOptions) -> None:
    """Refuse bloom filters that would lose rows, or that name no column."""
    if not options.bloom:
        return
    paths = leaf_paths(schema)
    floats = {paths[index] for index in float_leaves(schema)}
    for path in options.bloom:
        if path not in paths:
            raise InvalidRequest("the bloom filter names a column that does not exist", place=path)
        if path in floats:
            raise InvalidRequest(
                "a bloom filter on a float would lose rows",
                place=path,
                hint="-0.0 and 0.0 are equal but hash differently.",
            )


class _OpenFile:
    """A file that is being written to memory."""

    def __init__(self, schema: pa.Schema, options: WriteOptions, first: pa.Table) -> None:
        self.options = options
        self.sink = pa.BufferOutputStream()
        self.has_nan: list[Flags] = []
        self.row_count = 0
        self.writer = _open_writer(self.sink, schema, options, first)

    def add(self, block: pa.Table) -> None:
        self.has_nan.append(find_nan(block))
        self.row_count += block.num_rows
        self.writer.write_table(block, row_group_size=block.num_rows)

    def is_full(self) -> bool:
        return len(self.has_nan) >= self.options.file_blocks or self.sink.tell() >= self.options.file_bytes

    def finish(self) -> WrittenFile:
        """The file, its footer mended where a chunk holds NaN."""
        self.writer.close()
        buffer = self.sink.getvalue()
        has_nan = np.stack(self.has_nan)
        end = memoryview(buffer)[-TAIL_BYTES:]
        tail = read_tail(bytes(end), buffer.size)
        footer = Footer.parse(bytes(memoryview(buffer)[tail.footer_offset : buffer.size - TAIL_BYTES]))
        parts: tuple[pa.Buffer | bytes, ...] = (buffer,)
        if has_nan.any():
            footer, sealed = without_bounds(footer, has_nan)
            parts = (buffer.slice(0, tail.footer_offset), sealed)
        return WrittenFile(
            parts=parts,
            size_bytes=sum(len(part) if isinstance(part, bytes) else part.size for part in parts),
            row_count=self.row_count,
            footer=footer,
            nan_free=~has_nan,
        )


def _open_writer(
    sink: pa.BufferOutputStream, schema: pa.Schema, options: WriteOptions, first: pa.Table
) -> pq.ParquetWriter:
    dictionary: Any = dictionary_leaves(first)  # Any: the stub lacks lists
    codec, level = options.codec, options.level
    if options.small_codec is not None and first.nbytes <= SMALL_BLOCK_BYTES:
        codec, level = options.small_codec, None
    return pq.ParquetWriter(
        sink,
        schema,
        version="2.6",
        compression=codec,
        compression_level=level,
        use_dictionary=dictionary,
        use_deprecated_int96_timestamps=False,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
        sorting_columns=[
            pq.SortingColumn(by.column, descending=by.is_descending, nulls_first=by.is_nulls_first)
            for by in options.sorted_by
        ]
        or None,
        bloom_filter_options={
            path: {"ndv": max(1, first.num_rows), "fpp": probability} for path, probability in options.bloom.items()
        }
        or None,
    )
