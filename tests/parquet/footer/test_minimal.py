"""A footer made of chunk places alone decodes to the same rows as the file's own."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import Damaged
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.minimal import Chunk, MinimalColumns
from underlay.parquet.footer.tail import MAGIC, read_tail, seal

TABLE = pa.table(
    {
        "a": list(range(100)),
        "s": [None if i % 3 else f"text {i}" for i in range(100)],
        "l": [[i, None] if i % 2 else None for i in range(100)],
        "st": [{"x": 1.0 * i, "y": [{"z": i, "w": b"\0"}], "v": i % 2 == 0} for i in range(100)],
        "m": pa.array([[("k", i)] for i in range(100)], pa.map_(pa.string(), pa.int32())),
    }
)


def written(table: pa.Table = TABLE, **options: object) -> tuple[bytes, Footer]:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=30, **options)
    data = sink.getvalue()
    tail = read_tail(data, len(data))
    return data, Footer.parse(data[tail.footer_offset : tail.footer_offset + tail.footer_length])


def chunk(footer: Footer, row_group: int, leaf: int, shift: int = 0) -> Chunk:
    chunks = footer.chunks
    has_dictionary = chunks.has_dictionary_page_offset[row_group, leaf]
    begin = (chunks.dictionary_page_offset if has_dictionary else chunks.data_page_offset)[row_group, leaf]
    return Chunk(
        begin=int(begin) - shift,
        size=int(chunks.total_compressed_bytes[row_group, leaf]),
        codec=int(chunks.codec[row_group, leaf]),
        value_count=int(chunks.num_values[row_group, leaf]),
    )


def decode(data: bytes, footer: Footer, leaves: list[int], row_groups: list[int], shift: int = 0) -> pa.Table:
    lean = MinimalColumns(footer.schema.raw).select(leaves, footer.created_by)
    rows = [int(footer.row_groups.num_rows[group]) for group in row_groups]
    chunks = [[chunk(footer, group, leaf.index, shift) for leaf in lean.leaves] for group in row_groups]
    metadata = pq.read_metadata(pa.BufferReader(MAGIC + seal(lean.footer(rows, chunks))))
    return pq.ParquetFile(pa.BufferReader(data), metadata=metadata).read()


def leaves_of(footer: Footer, names: list[str]) -> list[int]:
    return [leaf.index for leaf in footer.schema.leaves if leaf.top.name in names]


@pytest.mark.parametrize("names", [["a"], ["s", "m"], ["st"], TABLE.column_names])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_chosen_columns_decode_to_the_same_rows(names: list[str], codec: str):
    data, footer = written(compression=codec)
    assert decode(data, footer, leaves_of(footer, names), [0, 1, 2, 3]).equals(TABLE.select(names))


def test_chosen_row_groups_decode_alone():
    data, footer = written()
    assert decode(data, footer, leaves_of(footer, ["a", "l"]), [2]).equals(TABLE.select(["a", "l"]).slice(60, 30))


def test_a_struct_is_decoded_without_the_leaves_that_are_left_out():
    data, footer = written()
    wanted = [leaf.index for leaf in footer.schema.leaves if leaf.path[-1] in ("x", "z")]
    found = decode(data, footer, wanted, [0])
    assert found.column("st").to_pylist() == [{"x": 1.0 * i, "y": [{"z": i}]} for i in range(30)]


def test_chunks_may_lie_elsewhere_in_the_buffer_than_in_the_file():
    data, footer = written()
    first = chunk(footer, 3, 0)
    moved = data[first.begin : first.begin + first.size]
    assert decode(moved, footer, [0], [3], shift=first.begin).equals(TABLE.select(["a"]).slice(90))


def test_many_columns_and_row_groups_take_the_long_list_headers():
    wide = pa.table({f"c{i}": [i] * 700 for i in range(40)})
    data, footer = written(wide)
    assert decode(data, footer, list(range(40)), list(range(24))).equals(wide)


def test_elements_that_are_no_list_are_refused():
    with pytest.raises(Damaged):
        MinimalColumns(b"\xff\xff")
