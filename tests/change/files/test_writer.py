from __future__ import annotations

import io
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.change.define.define import define
from underlay.change.files.writer import FileWriter, NewFile
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.index.keys import is_own
from underlay.parquet.write.writer import SMALL_BLOCK_BYTES
from underlay.pm.format.sidecar import decode

SCHEMA = "id bigint not null, name string, value double"


def data(*numbers: int | None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"n{one}" for one in numbers]),
            "value": pa.array([float(one or 0) for one in numbers]),
        }
    )


def written(rows: pa.Table, **options: object) -> list[NewFile]:
    return list(FileWriter(define(SCHEMA, **options), 7).write([rows]))  # type: ignore[arg-type]  # options of define


def opened(file: NewFile) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(file.data))


def codec_of(file: NewFile) -> str:
    return opened(file).metadata.row_group(0).column(0).compression


def test_rows_are_sorted():
    (file,) = written(data(3, 1, 2), sort_by=["-id"])
    assert opened(file).read()["id"].to_pylist() == [3, 2, 1]
    (order,) = opened(file).metadata.row_group(0).sorting_columns
    assert (order.column_index, order.descending) == (0, True)


def test_rows_of_an_unsorted_table_keep_their_order():
    (file,) = written(data(3, 1, 2))
    assert opened(file).read()["id"].to_pylist() == [3, 1, 2]


def test_blocks_are_filled_to_their_target():
    (file,) = written(data(*range(25)), properties={"block_rows": "10"})
    footer = opened(file).metadata
    assert [footer.row_group(block).num_rows for block in range(footer.num_row_groups)] == [10, 10, 5]
    assert len(file.entry.block_rows) == 3 * 8


def test_a_file_ends_at_its_target():
    files = written(data(*range(40)), properties={"block_rows": "10", "file_bytes": "1"})
    assert [opened(file).metadata.num_rows for file in files] == [10, 10, 10, 10]
    assert len({file.entry.location for file in files}) == 4


def test_names_go_on_from_the_blocks_that_there_are():
    files = written(data(*range(40)), properties={"block_rows": "10", "file_bytes": "1"})
    assert [file.entry.location[:9] for file in files] == ["000000007", "000000008", "000000009", "000000010"]
    assert all(is_own(file.entry.location) for file in files)


def blooms(file: NewFile) -> list[bool]:
    group = opened(file).metadata.row_group(0)
    return [group.column(place).bloom_filter_offset is not None for place in range(group.num_columns)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [False, False, False]),
        ({"key": ["id"]}, [True, False, False]),
        ({"key": ["id"], "properties": {"bloom": ""}}, [False, False, False]),
        ({"key": ["id"], "properties": {"bloom": "name"}}, [False, True, False]),
        ({"properties": {"bloom": "id,name"}}, [True, True, False]),
        ({"key": ["value"]}, [False, False, False]),
    ],
)
def test_filters_are_of_the_key_unless_a_property_says_otherwise(options: dict[str, object], expected: list[bool]):
    (file,) = written(data(1, 2), **options)
    assert blooms(file) == expected


@pytest.mark.parametrize("type_name", ["binary", "fixed(2)"])
def test_bytes_get_a_filter_only_where_a_property_asks_for_it(type_name: str, tmp_path: Path):
    """DuckDB 1.5 finds no row by a filter on a BLOB."""
    raw = pa.binary() if type_name == "binary" else pa.binary(2)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "raw": pa.array([b"\xff\xfe"] * 100, raw)})
    columns = f"id bigint, raw {type_name}"
    (plain,) = FileWriter(define(columns, key=["raw", "id"]), 7).write([rows])
    (asked,) = FileWriter(define(columns, key=["raw"], properties={"bloom": "raw"}), 7).write([rows])
    assert (blooms(plain), blooms(asked)) == ([True, False], [False, True])
    path = tmp_path / "plain.parquet"
    path.write_bytes(plain.data)
    found = duckdb.execute("select count(*) from read_parquet(?) where raw = ?", [str(path), b"\xff\xfe"])
    assert found.fetchone() == (100,)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "brotli", "none"])
def test_the_codec_is_the_tables(codec: str):
    (file,) = written(data(1, 2), properties={"codec": codec})
    assert codec_of(file).lower() == {"none": "uncompressed"}.get(codec, codec)


def test_a_file_of_few_rows_has_a_codec_that_starts_quickly_unless_the_table_names_one():
    few, many = data(*range(1000)), data(*range(3000))
    assert few.nbytes <= SMALL_BLOCK_BYTES < many.nbytes
    assert [codec_of(file) for file in written(few)] == ["SNAPPY"]
    assert [codec_of(file) for file in written(many)] == ["ZSTD"]
    assert [codec_of(file) for file in written(few, properties={"codec": "zstd"})] == ["ZSTD"]


def test_every_partition_has_its_files_and_values():
    files = written(data(1, 2, 11, 3), partition_by=["truncate(10, id)"], sort_by=["-id"])
    assert [opened(file).read()["id"].to_pylist() for file in files] == [[3, 2, 1], [11]]
    assert [file.entry.partition for file in files] == [((0).to_bytes(8, "little"),), ((10).to_bytes(8, "little"),)]


def test_an_entry_says_what_the_file_and_its_sidecar_are():
    (file,) = written(data(1, 2), key=["id"])
    assert file.entry.size_bytes == len(file.data)
    assert file.entry.etag is None
    assert file.entry.sidecar_bytes == len(file.sidecar)
    assert decode(file.sidecar, parquet_size=len(file.data)).header.column_count == 3
    assert file.layout.id == file.entry.layout


def test_no_rows_make_no_file():
    assert written(data()) == []


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(SchemaMismatch, match="id"):
        written(data(1, None))


@pytest.mark.parametrize(
    "properties",
    [{"colour": "red"}, {"block_rows": "0"}, {"block_rows": "many"}, {"codec": "zip"}, {"bloom": "value"}],
    ids=str,
)
def test_properties_that_mean_nothing_are_refused(properties: dict[str, str]):
    with pytest.raises(InvalidRequest):
        define(SCHEMA, properties=properties)
