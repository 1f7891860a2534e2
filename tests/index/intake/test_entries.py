"""Entries of many files read together."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from tests.index import patching
from tests.parquet.footers import footer_bytes, written
from underlay.errors import SchemaMismatch, Truncated, Unsupported
from underlay.index.entry import FileEntry, Flag
from underlay.index.intake.entries import file_entry, match_footer, read_files, written_entry
from underlay.index.intake.schema_match import Misfit
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.segment.merge import MergedArrays, MergeInput
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import FileSubset
from underlay.index.segment.write import encode_segment, write_segment
from underlay.parquet.footer.chunks import CHUNKS, META
from underlay.parquet.footer.footer import Footer
from underlay.parquet.thrift.encode import I32, ThriftBinary, encode
from underlay.parquet.write.writer import WriteOptions, write_files
from underlay.pm.convert.build import sidecar_of
from underlay.pm.format.checksum import identity
from underlay.schema.convert.arrow import from_arrow, to_arrow

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string())])
TABLE = from_arrow(SCHEMA)


def footers() -> list[bytes]:
    plain = [pa.table({"a": [n, n + 1, n + 2], "s": [f"{n}", None, "z" * n]}) for n in range(60, 70)]
    others = [
        pa.table({"a": [1, None], "s": ["x", "y"]}),
        pa.table({"a": ["text"], "s": ["x"]}),
        pa.table({"s": ["x"], "a": [1]}),
    ]
    made = [footer_bytes(written(table, row_group_size=2)) for table in plain + others]
    return [*made, patching.written_by(Footer.parse(made[0]), "parquet-mr version 1.8.0").data]


def place(number: int, size_bytes: int = 1 << 30) -> FilePlace:
    return FilePlace(location=f"file {number}", size_bytes=size_bytes, etag=f"{number}")


def alone(data: bytes, number: int) -> FileEntry | Misfit:
    footer = Footer.parse(data)
    layout = match_footer(footer, TABLE)
    return layout if isinstance(layout, Misfit) else file_entry(footer, layout, TABLE, place(number))


def test_many_footers_give_the_entries_that_each_gives_alone():
    data = footers()
    made = read_files(data, [place(number) for number in range(len(data))], TABLE)
    found: dict[int, FileEntry | Misfit] = {}
    for alike in made.alike:
        found.update(zip(alike.indices, alike.segment.entries(), strict=True))
    found.update(made.misfits)
    assert [found[number] for number in range(len(data))] == [alone(footer, n) for n, footer in enumerate(data)]
    assert len(made.misfits) == 2
    named = {entry.layout for entry in found.values() if isinstance(entry, FileEntry)}
    assert {layout.id for layout in made.layouts} == named
    assert len(named) == 3


def test_a_segment_of_many_footers_is_that_of_their_entries():
    data = footers()
    read = read_files(data, [place(number) for number in range(len(data))], TABLE)
    merged = Segment(MergedArrays([MergeInput(segment=part.segment) for part in read.alike], TABLE), len(data))
    found = [index for part in read.alike for index in part.indices]
    rows = [row for row, index in enumerate(found) if index not in read.misfits]
    entries = [entry for row in rows if isinstance(entry := alone(data[found[row]], found[row]), FileEntry)]
    assert len(entries) == len(data) - 2
    fields = list(TABLE.leaf_by_id)
    wanted, wanted_ref = write_segment(entries, TABLE, segment_id="s", bounded_fields=fields)
    chosen = FileSubset(merged, np.array(rows, np.int64))
    made, ref = encode_segment(chosen, segment_id="s", bounded_fields=fields)
    assert ref.bounds == wanted_ref.bounds
    assert (made, ref) == (wanted, wanted_ref)


def test_a_file_that_is_too_short_is_named():
    data = footers()[:5]
    places = [place(number, 10 if number == 3 else 1 << 30) for number in range(5)]
    with pytest.raises(Truncated, match="file 3"):
        read_files(data, places, TABLE)


def test_a_written_file_has_the_entry_that_its_footer_gives():
    schema = to_arrow(TABLE)
    table = pa.table({"a": [1, 2, 3], "s": ["x", None, "y"]}).cast(schema)
    (file,) = write_files([table], schema, WriteOptions(block_rows=2, bloom={"s": 0.01}))
    sidecar = sidecar_of(file.data(), file.footer)
    entry, layout = written_entry(file, TABLE, "name.parquet", sidecar=sidecar)
    assert layout == match_footer(file.footer, TABLE, by="id")
    place = FilePlace(location="name.parquet", size_bytes=len(file.data()))
    alone = file_entry(Footer.parse(footer_bytes(file.data())), layout, TABLE, place)
    assert entry == msgspec.structs.replace(alone, sidecar_bytes=len(sidecar), sidecar_crc=identity(sidecar))
    assert entry.columns[1].flags[0] & Flag.HAS_BLOOM


def test_a_file_written_for_another_table_is_refused():
    (file,) = write_files([pa.table({"b": [1]})], pa.schema([pa.field("b", pa.int64())]))
    with pytest.raises(SchemaMismatch, match="Column b is in the file and not in the table"):
        written_entry(file, TABLE, "name.parquet")


def test_a_codec_that_nobody_knows_is_refused():
    footer = Footer.parse(footers()[0])
    codec = int(footer.tree.select((*CHUNKS, META, 4))[0])
    changed = Footer.parse(footer.tree.write({codec: encode(I32(99))}))
    layout = match_footer(changed, TABLE)
    assert not isinstance(layout, Misfit)
    with pytest.raises(Unsupported):
        file_entry(changed, layout, TABLE, place(0))


def test_bounds_of_text_in_many_row_groups_are_those_that_each_file_gives_alone():
    tables = [pa.table({"a": [n, n + 1], "s": [chr(97 + n % 9), "é" * (n % 4)]}) for n in range(40)]
    data = [footer_bytes(written(table, row_group_size=1)) for table in tables]
    inverted = {patching.MIN_VALUE: ThriftBinary(b"z"), patching.MAX_VALUE: ThriftBinary(b"b")}
    data[3] = patching.with_statistics(Footer.parse(data[3]), 1, inverted).data
    made = read_files(data, [place(number) for number in range(len(data))], TABLE)
    assert [len(alike.indices) for alike in made.alike] == [len(data)]
    assert list(made.alike[0].segment.entries()) == [alone(footer, n) for n, footer in enumerate(data)]
