"""One file of blocks of others: pages, indexes and filters are the same, and found where the footer says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import SchemaMismatch
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.splice import join_alike
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail
from underlay.parquet.thrift.tree import ITEM, ThriftKind, parse
from underlay.parquet.write.splice_file import SourceBlocks, form_of, splice_file
from underlay.values.ranges import ByteRange


def write(begin: int, count: int, **options) -> bytes:
    ids = np.arange(begin, begin + count)
    table = pa.table({"id": ids, "word": [f"w{one % 50}" for one in ids.tolist()]})
    sink = pa.BufferOutputStream()
    given = {
        "row_group_size": 100,
        "write_page_index": True,
        "data_page_size": 64,
        "write_batch_size": 16,
        "bloom_filter_options": {"id": {"ndv": 100, "fpp": 0.01}},
    } | options
    pq.write_table(table, sink, **given)
    return sink.getvalue().to_pybytes()


def footer_of(data: bytes) -> Footer:
    tail = read_tail(data[-TAIL_BYTES:], len(data))
    return Footer.parse(data[tail.footer_offset : -TAIL_BYTES])


def source(data: bytes, blocks: Sequence[int]) -> SourceBlocks:
    view = memoryview(data)

    def read(ranges: Sequence[ByteRange]) -> list[memoryview]:
        return [view[begin:end] for begin, end in ranges]

    return SourceBlocks(footer=footer_of(data), blocks=blocks, read=read)


def pages(data: bytes, footer: Footer, block: int, column: int) -> list[bytes]:
    """The pages of a chunk as its offset index finds them."""
    begin = int(footer.chunks.offset_index_offset[block, column])
    tree = parse(data[begin : begin + int(footer.chunks.offset_index_length[block, column])])
    places = tree.number[tree.select((1, ITEM, 1), (ThriftKind.I64,))].tolist()
    sizes = tree.number[tree.select((1, ITEM, 2), (ThriftKind.I32,))].tolist()
    return [data[place : place + size] for place, size in zip(places, sizes, strict=True)]


def filter_of(data: bytes, footer: Footer, block: int) -> bytes:
    begin = int(footer.chunks.bloom_filter_offset[block, 0])
    return data[begin : begin + int(footer.chunks.bloom_filter_length[block, 0])]


def test_pages_indexes_and_filters_are_those_of_the_blocks():
    old = [write(0, 350), write(1_000_000, 250)]
    chosen = [[1, 2], [2, 0]]
    made = splice_file([source(data, blocks) for data, blocks in zip(old, chosen, strict=True)])
    new = bytes(made.data)
    place = 0
    for data, blocks in zip(old, chosen, strict=True):
        footer = footer_of(data)
        for block in blocks:
            for column in range(2):
                wanted = pages(data, footer, block, column)
                assert len(wanted) > 1
                assert pages(new, made.footer, place, column) == wanted
                index = slice(
                    int(made.footer.chunks.column_index_offset[place, column]),
                    int(made.footer.chunks.column_index_offset[place, column])
                    + int(made.footer.chunks.column_index_length[place, column]),
                )
                begin = int(footer.chunks.column_index_offset[block, column])
                assert new[index] == data[begin : begin + index.stop - index.start]
            assert filter_of(new, made.footer, place) == filter_of(data, footer, block)
            place += 1
    wanted = [*range(100, 300), *range(1_000_200, 1_000_250), *range(1_000_000, 1_000_100)]
    with pq.ParquetFile(pa.BufferReader(new), page_checksum_verification=True) as file:
        assert file.read()["id"].to_pylist() == wanted
        assert file.metadata.row_group(2).column(0).statistics.min == 1_000_200


def test_blocks_of_files_with_one_joined_footer_make_the_same_file():
    old = [write(0, 350), write(1_000_000, 250), write(2_000_000, 100)]
    alone = [source(data, blocks) for data, blocks in zip(old, [[1, 2], [2, 0], [0]], strict=True)]
    footer, counts = join_alike([one.footer.data for one in alone])
    assert counts == [4, 3, 1]
    shared = [
        replace(one, footer=footer, blocks=[first + block for block in one.blocks])
        for one, first in zip(alone, (0, 4, 7), strict=True)
    ]
    assert splice_file(shared).data == splice_file(alone).data


def test_a_filter_whose_writer_did_not_say_its_length_gets_one(fixtures):
    data = (fixtures / "parquet-testing/data/data_index_bloom_encoding_stats.parquet").read_bytes()
    footer = footer_of(data)
    assert not footer.chunks.has_bloom_filter_length.any()
    made = splice_file([source(data, [0])])
    assert made.footer.chunks.has_bloom_filter_length.all()
    begin = int(footer.chunks.bloom_filter_offset[0, 0])
    assert data[begin:].startswith(filter_of(bytes(made.data), made.footer, 0))
    table = pq.read_table(pa.BufferReader(bytes(made.data)))
    assert table.equals(pq.read_table(pa.BufferReader(data)))


def test_a_single_block_may_move_far_back():
    data = write(0, 5000)
    made = splice_file([source(data, [49])])
    assert pq.read_table(pa.BufferReader(bytes(made.data)))["id"].to_pylist() == list(range(4900, 5000))
    assert len(made.data) < len(data) / 10


def test_files_of_other_forms_are_not_made_one():
    plain, other = write(0, 100), write(0, 100, store_schema=False)
    assert form_of(footer_of(plain)) == form_of(footer_of(write(50, 30)))
    assert form_of(footer_of(plain)) != form_of(footer_of(other))
    wide = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a"]}), wide)
    with pytest.raises(SchemaMismatch):
        splice_file([source(plain, [0]), source(wide.getvalue().to_pybytes(), [0])])
