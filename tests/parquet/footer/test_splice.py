from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet import footers
from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.parquet.footer.footer import ROW_GROUPS, Footer, KeyValue
from underlay.parquet.footer.splice import (
    SplicePart,
    join_alike,
    set_key_values,
    shift_offsets,
    splice,
    take_row_groups,
)
from underlay.parquet.footer.tail import load_footer, read_tail, seal

OPTIONS = {"write_page_index": True, "bloom_filter_options": {"number": {"ndv": 10}}}


def opened(data: bytes) -> Footer:
    return load_footer(io.BytesIO(data)).footer


def body(data: bytes) -> bytes:
    """A file without its footer."""
    return data[: read_tail(data, len(data)).footer_offset]


def rows(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def test_a_spliced_footer_reads_the_rows_of_all_files():
    files = [footers.example(start=1000 * n, **OPTIONS) for n in range(3)]
    joined, parts = b"PAR1", []
    for data in files:
        footer = opened(data)
        parts.append(SplicePart(footer, range(footer.row_group_count), len(joined) - 4))
        joined += body(data)[4:]
    joined += seal(splice(parts))
    assert rows(joined).equals(pa.concat_tables([rows(data) for data in files]))
    assert opened(joined).num_rows == 90


@pytest.mark.parametrize("indices", [[0, 1, 2], [2, 0], [1], [], [1, 1, 0]])
def test_row_groups_are_dropped_reordered_and_repeated(indices):
    data = footers.example(**OPTIONS)
    changed = body(data) + seal(take_row_groups(opened(data), indices))
    original = pq.ParquetFile(io.BytesIO(data))
    expected = [original.read_row_group(index) for index in indices]
    assert rows(changed).equals(pa.concat_tables(expected) if expected else original.schema_arrow.empty_table())


def test_taking_all_row_groups_changes_no_byte():
    compared = 0
    for _, data in footers.plain_footers("questdb/10.0.0"):
        footer = Footer.parse(data)
        groups = footer.row_groups
        is_numbered = groups.has_ordinal & (groups.ordinal != np.arange(footer.row_group_count))
        if not is_numbered.any() and footer.num_rows == groups.num_rows.sum():
            assert take_row_groups(footer, range(footer.row_group_count)) == data
            compared += 1
    assert compared > 100


def test_shifting_moves_every_position_and_nothing_else():
    footer = opened(footers.example(**OPTIONS))
    moved = Footer.parse(shift_offsets(footer, 100_000))
    before, after = footer.chunks, moved.chunks
    for name in ("data_page_offset", "dictionary_page_offset", "offset_index_offset", "column_index_offset"):
        assert np.array_equal(getattr(after, name), getattr(before, name) + 100_000)
    has_bloom = before.has_bloom_filter_offset
    assert has_bloom.any()
    assert np.array_equal(after.bloom_filter_offset[has_bloom], before.bloom_filter_offset[has_bloom] + 100_000)
    assert np.array_equal(moved.row_groups.file_offset, footer.row_groups.file_offset + 100_000)
    assert np.array_equal(after.file_offset, before.file_offset)
    assert not before.file_offset.any()
    assert shift_offsets(moved, -100_000) == footer.data
    assert shift_offsets(footer, 0) == footer.data


def test_footers_that_differ_in_their_row_groups_only_are_joined_as_they_are():
    parts = [opened(footers.example(start=n, **OPTIONS)) for n in (0, 50, 5_000_000)]
    longer = opened(footers.example(rows=70, start=7, **OPTIONS))
    joined, counts = join_alike([part.data for part in (*parts, longer)])
    assert counts == [3, 3, 3, longer.row_group_count]
    every = [SplicePart(part, range(part.row_group_count), 0) for part in (*parts, longer)]
    assert joined.data == splice(every)
    assert join_alike([parts[0].data])[0].data == parts[0].data


def test_footers_that_differ_in_more_are_not_joined():
    footer = opened(footers.example())
    for other in (
        set_key_values(footer, [KeyValue(b"key", b"value")]),
        opened(footers.written(pa.table({"a": [1]}))).data,
        take_row_groups(footer, []),
    ):
        assert join_alike([footer.data, other]) is None


def test_a_row_group_that_a_footer_counts_and_has_not_is_not_taken_from_the_next_one():
    footer = opened(footers.example())
    begin = int(footer.tree.begin[footer.tree.fields(0)[ROW_GROUPS]])
    more, fewer = bytearray(footer.data), bytearray(footer.data)
    more[begin] += 1 << 4
    fewer[begin] -= 1 << 4
    assert join_alike([footer.data] * 3) is not None
    assert join_alike([footer.data, bytes(more), bytes(fewer)]) is None


def test_zero_stays_zero(fixtures):
    footer = load_footer(fixtures / "parquet-testing/data/dict-page-offset-zero.parquet").footer
    moved = Footer.parse(shift_offsets(footer, 64))
    assert not moved.chunks.dictionary_page_offset.any()
    assert (moved.chunks.data_page_offset == footer.chunks.data_page_offset + 64).all()


@pytest.mark.parametrize("delta", [-(2**40), 2**63 - 1])
def test_positions_that_would_leave_the_file_are_refused(delta):
    with pytest.raises(InvalidRequest, match="leave"):
        shift_offsets(opened(footers.example()), delta)


def test_ordinals_are_numbered_anew(fixtures):
    footer = load_footer(fixtures / "parquet-testing/data/floating_orders_nan_count.parquet").footer
    assert footer.row_groups.has_ordinal.all()
    last = footer.row_group_count - 1
    taken = Footer.parse(splice([SplicePart(footer, [last, 0], 0), SplicePart(footer, [last], 50)]))
    assert taken.row_groups.ordinal.tolist() == [0, 1, 2]


def test_everything_else_comes_from_the_first():
    sorting = [pq.SortingColumn(0)]
    first, second = (opened(footers.example(start=n, sorting_columns=sorting)) for n in (0, 50))
    joined = Footer.parse(splice([SplicePart(first, [0], 0), SplicePart(second, [1, 2], 0)]))
    assert joined.schema.raw == first.schema.raw
    assert joined.key_values == first.key_values
    assert joined.created_by == first.created_by
    assert joined.column_orders == first.column_orders
    assert joined.row_groups.sorting_columns == (
        *first.row_groups.sorting_columns[:1],
        *second.row_groups.sorting_columns[1:],
    )


def test_files_with_other_columns_are_refused():
    other = opened(footers.written(pa.table({"a": [1]})))
    with pytest.raises(SchemaMismatch, match="footer 1"):
        splice([SplicePart(opened(footers.example()), [0], 0), SplicePart(other, [0], 0)])


@pytest.mark.parametrize("indices", [[3], [-1]])
def test_row_groups_that_do_not_exist_are_refused(indices):
    with pytest.raises(InvalidRequest, match="no such row group"):
        take_row_groups(opened(footers.example()), indices)


def test_splicing_nothing_is_refused():
    with pytest.raises(InvalidRequest):
        splice([])


def test_signed_footers_are_refused(fixtures):
    footer = load_footer(fixtures / "parquet-testing/data/encrypt_columns_plaintext_footer.parquet.encrypted").footer
    for change in (
        lambda: shift_offsets(footer, 1),
        lambda: take_row_groups(footer, [0]),
        lambda: set_key_values(footer, []),
    ):
        with pytest.raises(Unsupported, match="signed"):
            change()


@pytest.mark.parametrize("store_schema", [True, False])
def test_key_values_are_set_whether_the_footer_had_some_or_not(store_schema):
    data = footers.example(store_schema=store_schema)
    footer = opened(data)
    assert bool(footer.key_values) == store_schema
    pairs = (KeyValue(b"k", b"v"), KeyValue(b"none", None))
    changed = Footer.parse(set_key_values(footer, pairs))
    assert changed.key_values == pairs
    assert changed.schema.raw == footer.schema.raw
    assert rows(body(data) + seal(set_key_values(footer, [KeyValue(b"k", b"v")]))).num_rows == 30
