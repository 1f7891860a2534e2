from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, data_keys, ids, memory, quick, rows
from underlay.errors import Damaged, NotFound, Replaced, UnderlayError
from underlay.store import Store
from underlay.store.local import LocalStore

NUMBERS = list(range(50))


@pytest.fixture
def store() -> Store:
    store = memory()
    quick(store).create_table(NAME, SCHEMA, properties={"codec": "none"}).append(rows(NUMBERS))
    return store


def key_of(store: Store) -> str:
    (key,) = data_keys(store)
    return key


def replace(store: Store, key: str, data: bytes) -> None:
    store.delete([key])
    store.put(key, data)


def test_our_pages_have_checksums(store: Store):
    data = bytearray(store.get(key_of(store))[0])
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(2)
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()


def test_no_flipped_byte_of_a_block_gives_another_answer(store: Store):
    key = key_of(store)
    data = bytes(store.get(key)[0])
    whole = quick(store).table(NAME).to_arrow()
    footer = pq.read_metadata(io.BytesIO(data))
    end = max(
        footer.row_group(0).column(place).data_page_offset + footer.row_group(0).column(place).total_compressed_size
        for place in range(footer.num_columns)
    )
    messages = []
    for at in range(4, end, 5):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        replace(store, key, broken)
        try:
            found = quick(store).table(NAME).to_arrow()
        except Damaged as error:
            messages.append(str(error))
        else:
            assert found.equals(whole), f"byte {at} changes the answer"
    assert len(messages) > end / 5 / 2
    assert all(key in message for message in messages)


def test_a_file_of_ours_with_another_size_is_another_one(store: Store):
    key = key_of(store)
    replace(store, key, bytes(store.get(key)[0]) + b"more")
    with pytest.raises(Replaced, match="parquet"):
        ids(quick(store).table(NAME))


@pytest.mark.parametrize("size", [0, 4, 300])
def test_a_file_that_is_cut_short_is_no_answer(store: Store, size: int):
    key = key_of(store)
    replace(store, key, bytes(store.get(key)[0])[:size])
    with pytest.raises(Damaged, match="parquet"):
        ids(quick(store).table(NAME))


def test_a_file_that_is_gone_is_named(store: Store):
    key = key_of(store)
    store.delete([key])
    with pytest.raises(NotFound, match=key):
        ids(quick(store).table(NAME))


def test_a_copied_lake_is_read(store: Store, tmp_path):
    other = LocalStore(tmp_path)
    for found in store.list_objects():
        other.put(found.key, store.get(found.key)[0])
    assert ids(quick(other).table(NAME)) == NUMBERS


def registered(store: Store) -> underlay.Table:
    table = quick(store).create_table("some.registered", SCHEMA)
    sink = io.BytesIO()
    pq.write_table(rows([1, 2, 3]), sink)
    store.put("in/a.parquet", sink.getvalue())
    table.register(f"{store.url}/in/a.parquet")
    return table


def test_a_registered_file_that_was_replaced_is_not_read(tmp_path):
    store = LocalStore(tmp_path)
    table = registered(store)
    sink = io.BytesIO()
    pq.write_table(rows([4, 5, 6]), sink)
    replace(store, "in/a.parquet", sink.getvalue())
    with pytest.raises(Replaced, match=r"in/a\.parquet"):
        ids(table)
    assert table.count() == 3


def test_a_registered_file_that_was_only_touched_is_the_same_file(tmp_path):
    store = LocalStore(tmp_path)
    table = registered(store)
    before = ids(table)
    (tmp_path / "in" / "a.parquet").touch()
    assert ids(table) == before


def test_chunks_of_nulls_are_not_fetched_and_read_as_nulls(store: Store):
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("s", pa.struct([("x", pa.int64())]))])
    table = quick(store).create_table("some.nulls", schema, properties={"block_rows": "2"})
    data = pa.table(
        {"a": [1, 2, 3, 4, 5, 6], "b": [None, None, "x", None, None, None], "s": [None, {"x": None}] * 3}, schema
    )
    table.append(data)
    assert table.to_arrow().to_pylist() == data.to_pylist()
    assert table.scan(["b"]).to_arrow().to_pylist() == data.select(["b"]).to_pylist()
    assert table.scan(["b"], "b is null").to_arrow().num_rows == 5


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_every_codec_is_read_back(codec: str):
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, properties={"codec": codec, "block_rows": "7"})
    table.append(rows(NUMBERS))
    assert ids(table) == NUMBERS
    assert ids(table, "id >= 20 and id < 30") == NUMBERS[20:30]


def test_errors_of_a_scan_end_it_and_leave_the_table_usable(store: Store):
    table = quick(store).table(NAME)
    for number in range(10):
        table.append(rows([1_000 + number]))
    victim = sorted(data_keys(store))[4]
    data = bytes(store.get(victim)[0])
    store.delete([victim])
    with pytest.raises(UnderlayError):
        table.to_arrow()
    store.put(victim, data)
    assert ids(table) == [*NUMBERS, *range(1_000, 1_010)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_no_flipped_bit_moves_rows_from_one_block_to_another(codec: str):
    """A page's header is under no checksum: one that claims more values must not take them from the next block."""
    store = memory()
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string(), nullable=False)])
    given = pa.table({"a": list(range(12)), "s": list("abcdefghijkl")}, schema)
    table = quick(store).create_table(NAME, given.schema, properties={"block_rows": 6, "codec": codec})
    table.append(given)
    key = key_of(store)
    data = bytes(store.get(key)[0])
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1)
    refused = 0
    for at in range(4, chunk.data_page_offset + chunk.total_compressed_size):
        for bit in (0, 1, 3, 5):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            store.put(key, broken)
            try:
                assert table.to_arrow().equals(given), f"bit {bit} of byte {at} changes the answer"
            except Damaged:
                refused += 1
    assert refused > 100
