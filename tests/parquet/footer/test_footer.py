from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet import footers
from underlay.errors import Malformed, SchemaMismatch, Truncated, UnderlayError, Unsupported
from underlay.parquet.footer.checks import check_chunks, check_ranges, check_readable
from underlay.parquet.footer.footer import ColumnOrder, Footer, KeyValue, SortingColumn
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.encode import I32, I64, Bool, List, Struct, ThriftBinary, encode
from underlay.parquet.thrift.tree import ThriftKind, parse
from underlay.values.physical import Codec, PhysicalType

ENCODINGS = {
    "PLAIN": 0,
    "PLAIN_DICTIONARY": 2,
    "RLE": 3,
    "BIT_PACKED": 4,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6,
    "DELTA_BYTE_ARRAY": 7,
    "RLE_DICTIONARY": 8,
    "BYTE_STREAM_SPLIT": 9,
}
CODECS = {Codec.LZ4_RAW: "LZ4", Codec.LZ4: "UNKNOWN"}
"""Codecs that pyarrow names otherwise."""

ROOT = Struct({4: ThriftBinary(b"root"), 5: I32(1)})
COLUMN = Struct({1: I32(2), 3: I32(0), 4: ThriftBinary(b"c")})
META = {1: I32(2), 2: List(ThriftKind.I32, ()), 4: I32(0), 5: I64(3), 6: I64(10), 7: I64(10), 9: I64(4)}


def synthetic(*columns: Struct, **fields: object) -> bytes:
    """A footer with one row group of the given chunks."""
    group = Struct({1: List(ThriftKind.STRUCT, columns), 2: I64(10), 3: I64(3)})
    extra = {int(name[1:]): value for name, value in fields.items()}
    schema = List(ThriftKind.STRUCT, (ROOT, COLUMN))
    return encode(Struct({1: I32(1), 2: schema, 3: I64(3), 4: List(ThriftKind.STRUCT, (group,)), **extra}))


def chunk(**fields: object) -> Struct:
    extra = {int(name[1:]): value for name, value in fields.items()}
    return Struct(dict(sorted({2: I64(0), 3: Struct(META), **extra}.items())))


@pytest.mark.parametrize("folder", ["parquet-testing/data", "questdb/9.4.3", "questdb/10.0.0"])
def test_every_footer_says_what_pyarrow_says(folder):
    compared = 0
    for path in footers.files(folder):
        if path.suffix == ".encrypted":
            continue
        try:
            theirs = pq.read_metadata(path)
        except OSError:
            continue
        ours = load_footer(path)
        compare(ours.footer, theirs)
        check_readable(ours.footer)
        check_ranges(ours.footer, ours.file_size)
        compared += 1
    assert compared > 30


def compare(ours: Footer, theirs: pq.FileMetaData) -> None:
    assert ours.num_rows == theirs.num_rows
    assert (ours.created_by or "") == theirs.created_by
    assert (ours.row_group_count, ours.column_count) == (theirs.num_row_groups, theirs.num_columns)
    assert dict(ours.key_values) == (theirs.metadata or {})
    for index in range(theirs.num_row_groups):
        group = theirs.row_group(index)
        assert int(ours.row_groups.num_rows[index]) == group.num_rows
        assert int(ours.row_groups.total_byte_size[index]) == group.total_byte_size
        sorting = [SortingColumn(c.column_index, c.descending, c.nulls_first) for c in group.sorting_columns]
        assert list(ours.row_groups.sorting_columns[index] or ()) == sorting
        for column in range(theirs.num_columns):
            compare_chunk(ours, index, column, group.column(column))


def compare_chunk(ours: Footer, group: int, column: int, theirs: pq.ColumnChunkMetaData) -> None:
    chunks = ours.chunks
    at = (group, column)
    codec = Codec(int(chunks.codec[at]))
    assert PhysicalType(int(chunks.physical_type[at])).name == theirs.physical_type
    assert CODECS.get(codec, codec.name) == theirs.compression
    assert int(chunks.encodings[at]) == sum(1 << ENCODINGS[name] for name in set(theirs.encodings))
    assert ".".join(ours.schema.leaves[column].path) == theirs.path_in_schema
    assert int(chunks.num_values[at]) == theirs.num_values
    assert int(chunks.total_compressed_bytes[at]) == theirs.total_compressed_size
    assert int(chunks.total_uncompressed_bytes[at]) == theirs.total_uncompressed_size
    assert int(chunks.data_page_offset[at]) == theirs.data_page_offset
    assert int(chunks.file_offset[at]) == theirs.file_offset
    assert bool(chunks.has_dictionary_page_offset[at] & (chunks.dictionary_page_offset[at] > 0)) == bool(
        theirs.has_dictionary_page and theirs.dictionary_page_offset
    )
    if theirs.has_dictionary_page:
        assert int(chunks.dictionary_page_offset[at]) == theirs.dictionary_page_offset
    bloom = int(chunks.bloom_filter_offset[at]) if chunks.has_bloom_filter_offset[at] else None
    assert bloom == theirs.bloom_filter_offset
    assert bool(chunks.has_offset_index[at]) == theirs.has_offset_index
    assert bool(chunks.has_column_index[at]) == theirs.has_column_index
    if theirs.statistics is not None:
        compare_statistics(ours, at, theirs)


def compare_statistics(ours: Footer, at: tuple[int, int], theirs: pq.ColumnChunkMetaData) -> None:
    statistics = ours.chunks.statistics
    assert bool(statistics.has_null_count[at]) == theirs.statistics.has_null_count
    if theirs.statistics.has_null_count:
        assert int(statistics.null_count[at]) == theirs.statistics.null_count
    if theirs.statistics.has_distinct_count:
        assert int(statistics.distinct_count[at]) == theirs.statistics.distinct_count
    numeric = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}.get(theirs.physical_type)
    if theirs.statistics.has_min_max and numeric:
        for spans, old, bound in (
            (statistics.min_value, statistics.deprecated_min, theirs.statistics.min_raw),
            (statistics.max_value, statistics.deprecated_max, theirs.statistics.max_raw),
        ):
            stored = ours.span_bytes(spans, *at)
            stored = ours.span_bytes(old, *at) if stored is None else stored
            assert np.array_equal(np.frombuffer(stored, numeric)[0], bound, equal_nan=True)


def test_bad_files_are_parsed_or_refused_with_a_reason():
    for path in footers.files("parquet-testing/bad_data"):
        try:
            loaded = load_footer(path)
        except UnderlayError as error:
            assert str(path) in str(error)  # noqa: PT017 -- some of the files parse
        else:
            assert loaded.footer.row_group_count >= 0


def test_a_signed_footer_is_parsed_and_its_encrypted_columns_are_refused(fixtures):
    loaded = load_footer(fixtures / "parquet-testing/data/encrypt_columns_plaintext_footer.parquet.encrypted")
    assert loaded.footer.is_encrypted
    assert loaded.footer.chunks.has_crypto.any()
    with pytest.raises(Unsupported, match="encrypted"):
        check_readable(loaded.footer)


def test_a_mutated_footer_gives_no_other_errors():
    generator = random.Random(42)
    data = footers.footer_bytes(footers.example(rows=3))
    for _ in range(600):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 3)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            footer = Footer.parse(bytes(damaged))
            check_readable(footer)
            check_ranges(footer, 10_000)
        except UnderlayError:
            continue
        assert footer.chunks.num_values.shape == (footer.row_group_count, footer.column_count)


def test_exactness_and_counts_tell_absent_from_zero_and_false():
    statistics = Struct({3: I64(0), 5: ThriftBinary(b""), 7: Bool(False), 9: I64(2)})
    footer = Footer.parse(synthetic(chunk(_3=Struct({**META, 12: statistics}))))
    found = footer.chunks.statistics
    assert found.has_null_count.item()
    assert not found.has_distinct_count.item()
    assert (found.has_nan_count.item(), found.nan_count.item()) == (True, 2)
    assert (found.is_min_exact.item(), found.is_max_exact.item()) == (-1, 0)
    assert footer.span_bytes(found.max_value, 0, 0) == b""
    assert footer.span_bytes(found.min_value, 0, 0) is None


def test_a_field_of_another_kind_counts_as_absent():
    footer = Footer.parse(synthetic(chunk(_3=Struct({**META, 14: I64(7), 15: List(ThriftKind.I32, ())}))))
    assert footer.chunks.has_bloom_filter_offset.item()
    assert not footer.chunks.has_bloom_filter_length.item()


def test_column_orders_are_told_apart():
    orders = List(
        ThriftKind.STRUCT, (Struct({1: Struct({})}), Struct({2: Struct({})}), Struct({9: Struct({})}), Struct({}))
    )
    footer = Footer.parse(synthetic(chunk(), _7=orders))
    assert footer.column_orders == (
        ColumnOrder.TYPE_ORDER,
        ColumnOrder.IEEE_754,
        ColumnOrder.UNKNOWN,
        ColumnOrder.UNKNOWN,
    )
    assert Footer.parse(synthetic(chunk())).column_orders is None


def test_key_values_keep_order_duplicates_and_missing_values():
    pairs = tuple(
        Struct({1: ThriftBinary(key)} | ({2: ThriftBinary(b"v")} if key == b"b" else {})) for key in (b"b", b"a", b"b")
    )
    footer = Footer.parse(synthetic(chunk(), _5=List(ThriftKind.STRUCT, pairs)))
    assert footer.key_values == (KeyValue(b"b", b"v"), KeyValue(b"a", None), KeyValue(b"b", b"v"))


def test_no_sorting_columns_differ_from_an_empty_list():
    table = pa.table({"a": [3, 2, 1]})
    data = footers.written(table, sorting_columns=[pq.SortingColumn(0, descending=True)])
    assert Footer.parse(footers.footer_bytes(data)).row_groups.sorting_columns == ((SortingColumn(0, True, False),),)
    group = Struct({1: List(ThriftKind.STRUCT, (chunk(),)), 2: I64(1), 3: I64(1), 4: List(ThriftKind.STRUCT, ())})
    groups = List(ThriftKind.STRUCT, (group,))
    assert Footer.parse(synthetic(chunk(), _4=groups)).row_groups.sorting_columns == ((),)
    assert Footer.parse(synthetic(chunk())).row_groups.sorting_columns == (None,)


def test_a_file_without_row_groups_or_columns_is_parsed():
    empty = Footer.parse(footers.footer_bytes(footers.written(pa.table({"a": pa.array([], pa.int32())}))))
    assert empty.row_group_count in (0, 1)
    none = Footer.parse(footers.footer_bytes(footers.written(pa.table({}))))
    assert (none.column_count, none.chunks.num_values.size) == (0, 0)


def test_another_number_of_chunks_than_columns_is_refused():
    footer = Footer.parse(synthetic(chunk(), chunk()))
    with pytest.raises(SchemaMismatch, match="row group 0"):
        check_chunks(footer)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (Struct({2: I64(0)}), Malformed),
        (chunk(_1=ThriftBinary(b"other.parquet")), Unsupported),
        (chunk(_8=Struct({})), Unsupported),
        (chunk(_3=Struct({**META, 1: I32(1)})), SchemaMismatch),
        (Struct({2: I64(0), 3: Struct(META), 4: I64(1)}), None),
    ],
)
def test_chunks_that_cannot_be_read_are_refused(columns, error):
    footer = Footer.parse(synthetic(columns))
    if error is None:
        check_readable(footer)
    else:
        with pytest.raises(error, match="row group 0, column 0"):
            check_readable(footer)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({9: I64(-1)}, Malformed),
        ({7: I64(-1)}, Malformed),
        ({9: I64(91)}, Truncated),
        ({7: I64(2**63 - 1)}, Truncated),
        ({9: I64(2**63 - 1)}, Truncated),
        ({14: I64(90), 15: I32(11)}, Truncated),
        ({11: I64(0)}, None),
        ({14: I64(90), 15: I32(10)}, None),
        ({14: I64(-5), 15: I32(-1)}, None),
    ],
)
def test_ranges_outside_the_file_are_refused(changes, error):
    footer = Footer.parse(synthetic(chunk(_3=Struct(dict(sorted({**META, **changes}.items()))))))
    if error is None:
        check_ranges(footer, 100)
    else:
        with pytest.raises(error):
            check_ranges(footer, 100)


def test_a_struct_with_a_field_twice_is_refused():
    data = synthetic(chunk())
    tree = parse(data)
    entry = tree.select((4, 0x10000, 1, 0x10000, 3))[0]
    raw = tree.raw(int(entry))
    twice = raw[:-1] + b"\x06\x0a\x02" + b"\x00"  # num_values again, in the long form
    with pytest.raises(Malformed, match="twice"):
        _ = Footer.parse(tree.write({int(entry): twice})).chunks


def test_bytes_after_a_plain_footer_are_refused():
    with pytest.raises(Malformed, match="follow"):
        Footer.parse(synthetic(chunk()) + b"\0" * 28)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({2: List(ThriftKind.STRUCT, (Struct({}),) * 100_001)}, "schema is too large"),
        ({4: List(ThriftKind.STRUCT, (Struct({}),) * 1_000_001)}, "too many row groups"),
        ({5: List(ThriftKind.STRUCT, (Struct({}),) * 100_001)}, "too many keys"),
    ],
)
def test_counts_that_no_file_has_are_refused_before_anything_is_made_of_them(fields, words):
    root = Struct({4: ThriftBinary(b"schema"), 5: I32(0)})
    plain = {1: I32(1), 2: List(ThriftKind.STRUCT, (root,)), 3: I64(0), 4: List(ThriftKind.STRUCT, ())}
    data = encode(Struct(dict(sorted((plain | fields).items()))))
    with pytest.raises(Unsupported, match=words):
        Footer.parse(data)
