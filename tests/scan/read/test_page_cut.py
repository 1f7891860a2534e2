"""Pages that no wanted row lies in are left out of a block, and what is left has the rows that it had."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import Malformed
from underlay.parquet.footer.minimal import Chunk
from underlay.parquet.footer.pages import read_pages
from underlay.scan.read import page_cut
from underlay.scan.read.page_cut import cut_pages

COUNT = 1000


def written(**options):
    rows = pa.table({"a": range(COUNT), "b": [f"w{number % 9}" for number in range(COUNT)]})
    sink = io.BytesIO()
    pq.write_table(rows, sink, data_page_size=256, write_batch_size=50, max_rows_per_page=50, **options)
    group = pq.ParquetFile(sink).metadata.row_group(0)
    chunks = {}
    for leaf in range(2):
        column = group.column(leaf)
        begin = column.dictionary_page_offset or column.data_page_offset
        chunks[leaf] = Chunk(begin=begin, size=column.total_compressed_size, codec=0, value_count=column.num_values)
    return sink.getvalue(), chunks


@pytest.fixture(autouse=True)
def every_block(monkeypatch):
    monkeypatch.setattr(page_cut, "WORTH_BYTES", 0)


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_the_values_of_a_chunks_pages_are_those_of_the_chunk(options):
    data, chunks = written(**options)
    for leaf, chunk in chunks.items():
        pages = list(read_pages(memoryview(data), chunk.begin, chunk.begin + chunk.size))
        assert len(pages) > 5
        assert pages[0].begin == chunk.begin
        assert pages[-1].end == chunk.begin + chunk.size
        assert sum(page.value_count for page in pages) == COUNT
        assert pages[0].is_dictionary == (leaf in (0, 1) and options.get("use_dictionary", True))


@pytest.mark.parametrize("rows", [(0, 1), (420, 430), (0, COUNT), (999, 1000), (50, 100)])
def test_rows_begin_at_a_page_of_all_columns(rows):
    data, chunks = written()
    cut = cut_pages(pa.py_buffer(data), chunks, COUNT, rows, frozenset())
    assert cut is not None
    assert rows[0] - 50 < cut.first <= rows[0]
    assert cut.end == rows[1]
    assert all(cut.end - cut.first <= one.value_count < cut.end - cut.first + 50 for one in cut.chunks.values())


def test_of_lists_only_the_end_is_left_out():
    data, chunks = written()
    cut = cut_pages(pa.py_buffer(data), chunks, COUNT, (420, 430), frozenset([1]))
    assert (cut.first, cut.end) == (0, 430)
    assert cut.chunks[1].value_count == COUNT


def test_a_header_that_is_damaged_leaves_the_block_whole():
    """No checksum covers headers: one that has other numbers would move the rows of all pages after it."""
    data, chunks = written()
    pages = list(read_pages(memoryview(data), chunks[0].begin, chunks[0].begin + chunks[0].size))
    for page in pages[1:3]:
        for at in range(page.begin, page.begin + 24):
            for bit in range(8):
                harmed = bytearray(data)
                harmed[at] ^= 1 << bit
                cut = cut_pages(pa.py_buffer(bytes(harmed)), chunks, COUNT, (420, 430), frozenset())
                same = cut is None or (cut.first, cut.end, [one.value_count for one in cut.chunks.values()]) == (
                    400,
                    430,
                    [50, 50],
                )
                assert same, (at, bit)


@pytest.mark.parametrize(
    "data", [b"", b"\x15", b"\xff" * 40, b"\x00" * 8, b"\x15\x00\x15\x10\x15\x10\x00", b"\x1c" * 60]
)
def test_what_is_no_page_is_refused(data):
    with pytest.raises(Malformed):
        list(read_pages(memoryview(data), 0, max(len(data), 4)))
