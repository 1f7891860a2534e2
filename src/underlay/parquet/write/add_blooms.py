"""Adds bloom filters to a local file that was written without them, between its data and a new footer.

pyarrow makes them from the column's values, several times faster than parquet-java does while it writes. Only the bytes
after the file's data change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import Inconsistent
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.footer.splice import set_bloom_filters
from underlay.parquet.footer.tail import TAIL_BYTES, LoadedFooter, load_footer, read_tail, seal
from underlay.parquet.write.arrow_errors import reading
from underlay.values.ranges import ByteRange


def add_blooms(path: Path, loaded: LoadedFooter, probabilities: Mapping[str, float]) -> LoadedFooter:
    """Add a filter to every chunk that lacks one in the columns with these paths; returns the file's new footer.

    `probabilities` are those of false positives, by path. No other process may use the file meanwhile: it is
    incomplete. Raises Malformed, NotFound, Unavailable.
    """
    with reading(path):
        filters = dict(_make_filters(path, loaded.footer, probabilities))
        if not filters:
            return loaded
        with path.open("r+b") as file:
            position = file.seek(loaded.tail.footer_offset)
            places = {}
            for chunk, data in filters.items():
                file.write(data)
                places[chunk] = ByteRange(position, position + len(data))
                position += len(data)
            file.write(seal(set_bloom_filters(loaded.footer, places)))
            file.truncate()
    return load_footer(path)


def _make_filters(
    path: Path, footer: Footer, probabilities: Mapping[str, float]
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """The filters by row group and column, each with its header."""
    has_filter = footer.chunks.has_bloom_filter_offset
    with pq.ParquetFile(path) as file:
        for leaf in footer.schema.leaves:
            name = ".".join(leaf.path)
            for block in range(footer.row_group_count) if name in probabilities else ():
                if not has_filter[block, leaf.index]:
                    values = file.read_row_group(block, columns=[name], use_threads=False)
                    yield (block, leaf.index), _make_filter(values, leaf, probabilities[name])


def _make_filter(values: pa.Table, leaf: Leaf, probability: float) -> bytes:
    """The filter that pyarrow writes into a file of only these values, as it does into Underlay's files."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        values,
        sink,
        row_group_size=values.num_rows,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
        bloom_filter_options={".".join(leaf.path): {"ndv": values.num_rows, "fpp": probability}},
    )
    data = memoryview(sink.getvalue())
    tail = read_tail(bytes(data[-TAIL_BYTES:]), len(data))
    footer = Footer.parse(bytes(data[tail.footer_offset : -TAIL_BYTES]))
    (own,) = footer.schema.leaves
    if own.physical_type is not leaf.physical_type:
        raise Inconsistent(
            "a bloom filter would be of other bytes than the file has",
            place=".".join(leaf.path),
            expected=leaf.physical_type.name,
            found=own.physical_type.name,
        )
    begin = int(footer.chunks.bloom_filter_offset[0, 0])
    return bytes(data[begin : begin + int(footer.chunks.bloom_filter_length[0, 0])])
