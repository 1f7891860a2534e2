"""Entries of files that we wrote: they say what pyarrow reads from the same files, chunk by chunk."""

from __future__ import annotations

import io
import math
import struct
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.index.known import Known, known_of
from tests.parquet.footers import footer_bytes
from underlay.index.entry import FileEntry, Flag
from underlay.index.intake.entries import file_entry, written_entry
from underlay.index.intake.stack_arrays import FilePlace
from underlay.parquet.footer.footer import Footer
from underlay.parquet.write.writer import WriteOptions, WrittenFile, write_files
from underlay.schema.convert.arrow import from_arrow, to_arrow
from underlay.schema.table_schema import TableSchema

FLOATS = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan]))
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "flag": (pa.bool_(), st.booleans()),
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.uint8(), st.integers(0, 255)),
    "unsigned": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "wide": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), FLOATS),
    "text": (pa.string(), st.text(max_size=3) | st.sampled_from(["é" * 40, "\U0010ffff" * 20, "a" * 64, "a" * 65])),
    "bytes": (pa.binary(), st.binary(max_size=3) | st.sampled_from([b"\xff" * 70, b"b" * 70])),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "clock": (pa.time64("us"), st.times()),
    "moment": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 9), max_size=2)),
    "part": (pa.struct([("x", pa.float64())]), st.fixed_dictionaries({"x": st.none() | FLOATS})),
}
NEVER_HASHED = ("flag", "float", "double", "list", "part")
LONGEST_BOUND = 64


@st.composite
def files(draw: st.DrawFn) -> tuple[WrittenFile, TableSchema]:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6, unique=True))
    row_count = draw(st.integers(1, 4))
    columns = {}
    for name in names:
        type_, values = COLUMNS[name]
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=row_count, max_size=row_count)), type_)
    table = pa.table(columns)
    schema = from_arrow(table.schema)
    arrow = to_arrow(schema)
    bloom = {name: 0.01 for name in names if name not in NEVER_HASHED}
    options = WriteOptions(bloom=bloom, block_rows=draw(st.sampled_from([1, 2, 1000])))
    (file,) = write_files([table.cast(arrow)], arrow, options)
    return file, schema


def numbers(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // 8}q", packed)


def assert_bounds(known: Known, statistics: pq.Statistics | None, is_unsigned: bool, holds_nan: bool) -> None:
    """Bounds are pyarrow's own, or shorter ones around them. A chunk that holds NaN has none."""
    if statistics is None or not statistics.has_min_max or holds_nan:
        assert (known.low, known.high) == (None, None)
        return
    low, high = statistics.min_raw, statistics.max_raw
    if is_unsigned and isinstance(low, int):
        bits = 64 if statistics.physical_type == "INT64" else 32
        low, high = low % (1 << bits), high % (1 << bits)
    if not isinstance(low, bytes):
        assert (known.low, known.high) == (low, high)
        assert known.is_low_exact
        assert known.is_high_exact
        return
    assert isinstance(known.low, bytes)
    assert known.low == low if len(low) <= LONGEST_BOUND else low.startswith(known.low)
    if len(high) <= LONGEST_BOUND:
        assert known.high == high
    else:
        assert known.high is None or (isinstance(known.high, bytes) and known.high > high)


@given(files())
def test_an_entry_says_what_pyarrow_reads(written: tuple[WrittenFile, TableSchema]):
    file, schema = written
    entry, _ = written_entry(file, schema, "name.parquet")
    metadata = pq.read_metadata(io.BytesIO(file.data()))
    assert numbers(entry.block_rows) == tuple(metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))
    assert [column.column for column in entry.columns] == list(range(metadata.num_columns))
    for column in entry.columns:
        leaf = schema.leaf_by_id[column.field]
        for block in range(metadata.num_row_groups):
            chunk = metadata.row_group(block).column(column.column)
            pages = (chunk.dictionary_page_offset, chunk.data_page_offset)
            assert numbers(column.begins)[block] == min(page for page in pages if page is not None)
            assert numbers(column.sizes)[block] == chunk.total_compressed_size
            flags = Flag(column.flags[block])
            assert bool(flags & Flag.HAS_BLOOM) == (leaf.path[0] not in NEVER_HASHED)
            known = known_of(column, schema, block, metadata.num_row_groups)
            if leaf.is_repeated:
                assert numbers(column.value_counts)[block] == chunk.num_values
                assert (known.low, known.high, known.nulls) == (None, None, None)
                continue
            assert known.nulls == chunk.statistics.null_count
            is_unsigned = leaf.path[0] in ("byte", "unsigned", "wide")
            assert_bounds(known, chunk.statistics, is_unsigned, known.may_hold_nan)


@given(files())
def test_an_entry_is_that_of_the_stored_file(written: tuple[WrittenFile, TableSchema]):
    file, schema = written
    entry, layout = written_entry(file, schema, "name.parquet")
    data = file.data()
    place = FilePlace(location="name.parquet", size_bytes=len(data))
    read: FileEntry = file_entry(Footer.parse(footer_bytes(data)), layout, schema, place, nan_free=file.nan_free)
    assert entry == read
