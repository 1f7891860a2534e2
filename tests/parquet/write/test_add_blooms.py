from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import Malformed
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.write.add_blooms import add_blooms
from underlay.pm import from_parquet

COUNT = 1000
HOW = {"row_group_size": 400, "store_schema": False, "store_decimal_as_integer": True, "use_dictionary": False}
TYPES: Mapping[str, pa.DataType] = {
    "i64": pa.int64(),
    "i32": pa.int32(),
    "i16": pa.int16(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "d9": pa.decimal128(9, 2),
    "d18": pa.decimal128(18, 2),
    "d38": pa.decimal128(38, 2),
}


def rows() -> pa.Table:
    numbers = pa.array([number if number % 7 else None for number in range(COUNT)])
    texts = numbers.cast(pa.string())
    columns = {}
    for name, type_ in TYPES.items():
        if pa.types.is_decimal(type_):
            columns[name] = pa.array([None if n is None else Decimal(n) / 100 for n in numbers.to_pylist()], type_)
        else:
            columns[name] = (texts if name in ("text", "bytes") else numbers.cast(_through(type_))).cast(type_)
    columns["list"] = pa.ListArray.from_arrays(pa.array(range(COUNT + 1), pa.int32()), texts)
    return pa.table(columns)


def _through(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date(type_) else pa.int64()


PATHS = {**dict.fromkeys(TYPES, 0.01), "list.list.element": 0.05}


def filters(path: Path, footer: Footer) -> dict[tuple[int, int], bytes]:
    data, chunks = path.read_bytes(), footer.chunks
    found = {}
    for block in range(footer.row_group_count):
        for column in range(footer.column_count):
            if chunks.has_bloom_filter_offset[block, column]:
                begin = int(chunks.bloom_filter_offset[block, column])
                found[block, column] = data[begin : begin + int(chunks.bloom_filter_length[block, column])]
    return found


def test_filters_are_those_that_pyarrow_writes_and_all_else_stays(tmp_path: Path):
    path, with_filters = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(rows(), path, write_page_index=True, **HOW)
    sizes = {name: {"ndv": 400, "fpp": chance} for name, chance in PATHS.items()}
    pq.write_table(rows(), with_filters, bloom_filter_options=sizes, **HOW)
    before, loaded = path.read_bytes(), load_footer(path)
    after = add_blooms(path, loaded, PATHS)
    assert path.read_bytes()[: loaded.tail.footer_offset] == before[: loaded.tail.footer_offset]
    assert pq.read_table(path).equals(rows())
    found, expected = filters(path, after.footer), filters(with_filters, load_footer(with_filters).footer)
    assert len(found) == 3 * len(PATHS)
    whole = {chunk: data for chunk, data in expected.items() if chunk[0] < 2}  # the last block has fewer rows
    assert {chunk: found[chunk] for chunk in whole} == whole
    assert duckdb.sql(f"select count(*) from '{path}' where text = '44' and i64 = 44 and d38 = 0.44").fetchall() == [
        (1,)
    ]
    plain = {name: value for name, value in pq.read_metadata(path).to_dict().items() if name != "row_groups"}
    expected_plain = {name: value for name, value in pq.read_metadata(with_filters).to_dict().items() if name in plain}
    assert {**plain, "serialized_size": 0} == {**expected_plain, "serialized_size": 0}
    assert len(from_parquet(path)) > sum(map(len, found.values()))


def test_chunks_that_have_filters_keep_theirs(tmp_path: Path):
    path = tmp_path / "a.parquet"
    pq.write_table(rows(), path, bloom_filter_options={"i64": {"ndv": 10, "fpp": 0.1}}, **HOW)
    before = path.read_bytes()
    loaded = load_footer(path)
    assert add_blooms(path, loaded, {"i64": 0.01, "other": 0.01}) == loaded
    assert path.read_bytes() == before
    after = add_blooms(path, loaded, {"i64": 0.01, "i32": 0.01})
    kept = {chunk: data for chunk, data in filters(path, after.footer).items() if chunk[1] == 0}
    assert kept == filters(path, loaded.footer)
    assert pq.read_table(path).equals(rows())


def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path):
    path = tmp_path / "a.parquet"
    pq.write_table(rows(), path, **HOW)
    loaded = load_footer(path)
    damaged = bytearray(path.read_bytes())
    damaged[4:60] = b"\xff" * 56
    path.write_bytes(damaged)
    with pytest.raises(Malformed, match="cannot be read"):
        add_blooms(path, loaded, {"i64": 0.01})
    assert path.read_bytes() == damaged
