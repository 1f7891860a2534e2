"""Files of ours: how they are filled, and that other readers answer rightly from them."""

from __future__ import annotations

import io
import math
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet.footers import footer_bytes
from underlay.errors import InvalidRequest
from underlay.parquet.footer.footer import Footer
from underlay.parquet.write.writer import SortedBy, WriteOptions, WrittenFile, fill_blocks, write_files
from underlay.pm.convert.build import from_parquet, sidecar_of
from underlay.values.physical import Codec, PhysicalType


def numbered(schema: pa.Schema) -> pa.Schema:
    """The schema with field ids."""
    return pa.schema([field.with_metadata({"PARQUET:field_id": str(at + 1)}) for at, field in enumerate(schema)])


def one_file(table: pa.Table, **options: object) -> WrittenFile:
    schema = numbered(table.schema)
    (file,) = write_files([table.cast(schema)], schema, WriteOptions(**options))
    return file


def read(file: WrittenFile) -> pa.Table:
    return pq.read_table(io.BytesIO(file.data()))


def test_rows_come_back_in_order_with_field_ids():
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [[1.5], [], None]})
    file = one_file(table)
    assert read(file).equals(table)
    assert [leaf.node.field_id for leaf in file.footer.schema.leaves][:2] == [1, 2]
    assert (file.row_count, file.size_bytes) == (3, len(file.data()))


def test_the_footer_is_the_one_in_the_file():
    for values in ([1.0], [math.nan]):
        file = one_file(pa.table({"a": values}))
        assert footer_bytes(file.data()) == file.footer.data


def test_no_rows_make_no_file():
    schema = pa.schema([pa.field("a", pa.int64())])
    assert list(write_files([], schema)) == []
    assert list(write_files([schema.empty_table()], schema)) == []


def test_blocks_are_filled_across_tables_to_their_rows():
    schema = pa.schema([pa.field("a", pa.int64())])
    parts = [pa.table({"a": list(range(begin, begin + 7))}) for begin in range(0, 28, 7)]
    (file,) = write_files(parts, schema, WriteOptions(block_rows=10))
    assert file.footer.row_groups.num_rows.tolist() == [10, 10, 8]
    assert read(file).column("a").to_pylist() == list(range(28))


def test_blocks_are_filled_to_their_bytes():
    schema = pa.schema([pa.field("a", pa.int64())])
    options = WriteOptions(block_bytes=800)
    blocks = list(fill_blocks([pa.table({"a": list(range(250))})], schema, options))
    assert [block.num_rows for block in blocks] == [100, 100, 50]


def test_a_row_larger_than_a_block_is_a_block():
    schema = pa.schema([pa.field("a", pa.string())])
    blocks = list(fill_blocks([pa.table({"a": ["x" * 1000] * 3})], schema, WriteOptions(block_bytes=10)))
    assert [block.num_rows for block in blocks] == [1, 1, 1]


def test_files_end_at_their_number_of_blocks_or_bytes():
    schema = pa.schema([pa.field("a", pa.int64())])
    table = pa.table({"a": list(range(50))})
    files = list(write_files([table], schema, WriteOptions(block_rows=10, file_blocks=2)))
    assert [file.footer.row_group_count for file in files] == [2, 2, 1]
    assert pa.concat_tables(map(read, files)).equals(table)
    small = list(write_files([table], schema, WriteOptions(block_rows=10, file_bytes=1)))
    assert len(small) == 5


def test_floats_have_no_dictionary_and_texts_have_one():
    real = pa.array([{"x": 1.0}], pa.struct([pa.field("x", pa.float32())]))
    file = one_file(pa.table({"f": [1.0], "s": ["x"], "n": real, "l": [[2.0]]}))
    has = file.footer.chunks.has_dictionary_page_offset[0].tolist()
    assert has == [False, True, False, False]


def test_values_that_hardly_occur_twice_have_no_dictionary():
    rows, few = 200_000, np.arange(200_000) % 1000
    odd = pa.array(np.where(few == 0, None, np.arange(rows)).tolist(), pa.int64())
    table = pa.table(
        {
            "distinct": np.arange(rows),
            "few": few,
            "nulls and distinct": odd,
            "only nulls": pa.nulls(rows, pa.string()),
            "distinct text": [f"text {number}" for number in range(rows)],
            "few texts": [f"text {number}" for number in few],
            "ids": pa.array([number.to_bytes(16, "big") for number in range(rows)], pa.uuid()),
        }
    )
    file = one_file(table)
    has = dict(zip(table.column_names, file.footer.chunks.has_dictionary_page_offset[0].tolist(), strict=True))
    assert [name for name, is_there in has.items() if is_there] == ["few", "only nulls", "few texts"]
    assert read(file).equals(table)


def test_a_view_of_a_file_is_its_bytes_whether_its_footer_was_mended_or_not():
    for values in ([1.0], [math.nan]):
        file = one_file(pa.table({"f": values}))
        assert bytes(file.view()) == file.data()


def test_bloom_filters_are_made_of_the_columns_asked_for():
    file = one_file(pa.table({"a": [1, 2], "b": ["x", "y"]}), bloom={"b": 0.01})
    assert (file.footer.chunks.bloom_filter_length[0] > 0).tolist() == [False, True]


@pytest.mark.parametrize("path", ["f", "l.list.element", "nowhere"])
def test_bloom_filters_on_floats_and_unknown_columns_are_refused(path):
    with pytest.raises(InvalidRequest):
        one_file(pa.table({"f": [1.0], "l": [[1.0]]}), bloom={path: 0.01})


def test_physical_types_are_those_that_every_reader_orders():
    table = pa.table(
        {
            "s": pa.array([1], pa.timestamp("s")),
            "n": pa.array([1], pa.timestamp("ns", "UTC")),
            "d": pa.array([Decimal("1.00")], pa.decimal128(9, 2)),
            "e": pa.array([Decimal("1.00")], pa.decimal128(18, 2)),
            "u": pa.array([uuid.UUID(int=7).bytes], pa.uuid()),
        }
    )
    file = one_file(table)
    kinds = [leaf.physical_type for leaf in file.footer.schema.leaves]
    integer, fixed = PhysicalType.INT64, PhysicalType.FIXED_LEN_BYTE_ARRAY
    assert kinds == [integer, integer, PhysicalType.INT32, integer, fixed]
    assert read(file).column("s").cast(pa.timestamp("s")).to_pylist() == table.column("s").to_pylist()


def test_chunks_are_compressed_with_zstd():
    assert one_file(pa.table({"a": [1]})).footer.chunks.codec.tolist() == [[Codec.ZSTD]]


def test_sorting_is_recorded_in_every_row_group():
    file = one_file(pa.table({"a": [1, 2], "b": [1, 1]}), sorted_by=(SortedBy(1, is_descending=True),), block_rows=1)
    assert file.footer.row_groups.sorting_columns == (((1, True, True),),) * 2


def test_a_chunk_with_nan_has_no_bounds_and_the_others_keep_theirs():
    values = [1.0, math.nan, 3.0, 4.0]
    table = pa.table({"f": values, "g": pa.array(values, pa.float32()), "i": [1, 2, 3, 4]})
    file = one_file(table, block_rows=2)
    assert file.nan_free.tolist() == [[False, False, True], [True, True, True]]
    statistics = Footer.parse(footer_bytes(file.data())).chunks.statistics
    for span in (statistics.min_value, statistics.max_value, statistics.deprecated_min, statistics.deprecated_max):
        assert (span.begin >= 0).tolist() == [[False, False, True], [True, True, True]]
    assert statistics.has_null_count.all()
    assert read(file).num_rows == 4


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([{"x": None}, {"x": math.nan}], pa.struct([pa.field("x", pa.float64())])),
        ([[1.0], [], [math.nan]], pa.list_(pa.float64())),
        ([[("k", 1.0)], [("k", math.nan)]], pa.map_(pa.string(), pa.float64())),
        ([np.float16(1), np.float16("nan")], pa.float16()),
    ],
)
def test_nan_is_found_wherever_it_is(values, type_):
    column = pa.array(values, type_)
    file = one_file(pa.table({"c": column, "a": pa.array([1.0] * len(values))}))
    statistics = file.footer.chunks.statistics
    assert not file.nan_free[0, -2]
    assert statistics.min_value.begin[0, -2] < 0
    assert file.nan_free[0, -1]
    sliced = one_file(pa.table({"c": column.slice(0, 1)}))
    assert sliced.nan_free.all()


def test_zero_bounds_are_of_both_zeros():
    for values in ([0.0], [-0.0], [0.0, 5.0], [-5.0, -0.0]):
        file = one_file(pa.table({"a": values}))
        statistics = file.footer.chunks.statistics
        low = file.footer.span_bytes(statistics.min_value, 0, 0)
        high = file.footer.span_bytes(statistics.max_value, 0, 0)
        assert low is not None
        assert high is not None
        minimum, maximum = np.frombuffer(low + high, "<f8")
        if minimum == 0:
            assert np.signbit(minimum)
        if maximum == 0:
            assert not np.signbit(maximum)


PREDICATES = [
    "c <> 1",
    "c > 2",
    "not (c < 2)",
    "c < 2",
    "isnan(c)",
    "c = 'nan'::double",
    "c = 0.0",
    "c = -0.0",
    "c >= 0",
]


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("values", [[1.0, math.nan], [math.nan] * 2, [-0.0, 5.0], [0.0], [-0.0] * 500 + [5.0] * 500])
def test_duckdb_answers_rightly_from_our_files(tmp_path, values, predicate):
    table = pa.table({"c": pa.array(values, pa.float64())})
    path = tmp_path / "x.parquet"
    path.write_bytes(one_file(table).data())
    with duckdb.connect() as connection:
        connection.register("given", table)
        connection.execute("create table loaded as select * from given")
        expected = connection.execute(f"select count(*) from loaded where {predicate}").fetchone()
        assert connection.execute(f"select count(*) from '{path}' where {predicate}").fetchone() == expected


@pytest.mark.parametrize("bloom", [{}, {"s": 0.05}])
def test_the_sidecar_from_memory_is_the_one_from_disk(tmp_path, bloom):
    table = pa.table({"a": list(range(20)), "s": [f"row {n}" for n in range(20)], "f": [math.nan] * 20})
    file = one_file(table, bloom=bloom, block_rows=7)
    path = tmp_path / "x.parquet"
    path.write_bytes(file.data())
    assert sidecar_of(file.data(), file.footer) == from_parquet(path)
