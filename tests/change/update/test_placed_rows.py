"""Rows by position are those that a scan has there, although blocks are decoded only as far as they are asked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from underlay.scan.read import page_cut

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("word", pa.string()),
        ("price", pa.float64()),
        ("tags", pa.list_(pa.int32())),
        ("place", pa.struct([("zone", pa.string()), ("codes", pa.list_(pa.string()))])),
    ]
)
COUNT = 300


@pytest.fixture(autouse=True)
def pages_are_left_out_of_small_blocks(monkeypatch):
    monkeypatch.setattr(page_cut, "WORTH_BYTES", 0)


def rows() -> pa.Table:
    """Values that repeat and values that do not, nulls at every level, and lists of all lengths."""
    found = []
    for number in range(COUNT):
        place = {
            "zone": f"zone {number % 3}",
            "codes": [None if code % 2 else "x" * code for code in range(number % 5)],
        }
        found.append(
            {
                "id": number,
                "word": None if number % 7 == 0 else f"word {number}",
                "price": number / 4,
                "tags": None if number % 11 == 0 else list(range(number % 6)),
                "place": None if number % 13 == 0 else place,
            }
        )
    return pa.Table.from_pylist(found, SCHEMA)


def own_files(table: ul.Table, folder: Path) -> None:
    table.append(rows())


def small_pages_of_version_2(table: ul.Table, folder: Path) -> None:
    pq.write_table(
        rows(), folder / "a.parquet", row_group_size=100, data_page_size=64, data_page_version="2.0", compression="zstd"
    )
    table.register(str(folder / "a.parquet"))


def small_pages_in_dictionaries(table: ul.Table, folder: Path) -> None:
    pq.write_table(rows(), folder / "a.parquet", row_group_size=100, data_page_size=64, write_batch_size=16)
    table.register(str(folder / "a.parquet"))


@pytest.mark.parametrize("write", [own_files, small_pages_of_version_2, small_pages_in_dictionaries])
@pytest.mark.parametrize("asked", [[0], [99], [100], [42, 43, 250], [7, 100, 199, 299], list(range(0, COUNT, 9))])
def test_updated_rows_keep_their_other_values(tmp_path: Path, write, asked: list[int]):
    lake = ul.connect(f"memory://{os.urandom(6).hex()}")
    table = lake.create_table("a.b", SCHEMA, properties={"block_rows": 100})
    write(table, tmp_path)
    table.delete("id = 5")
    done = table.update({"price": "price + 1000"}, where=f"id in ({', '.join(map(str, asked))})")
    assert done.rows_updated == len(asked)
    expected = rows()
    raised = np.where(np.isin(np.arange(COUNT), asked), 1000.0, 0.0) + expected["price"].to_numpy()
    expected = expected.set_column(2, "price", pa.array(raised)).filter(pa.array(np.arange(COUNT) != 5))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("write", [own_files, small_pages_in_dictionaries])
def test_upserted_rows_keep_the_columns_that_the_update_lacks(tmp_path: Path, write):
    """Keys of several blocks of one file are found block by block, and deleted rows among them come anew."""
    lake = ul.connect(f"memory://{os.urandom(6).hex()}")
    table = lake.create_table("a.b", SCHEMA, key=["id"], properties={"block_rows": 100})
    write(table, tmp_path)
    table.delete("id = 105")
    asked = [3, 99, 100, 105, 201, 299]
    done = table.upsert(pa.table({"id": asked, "price": [1000.0] * len(asked)}))
    assert (done.rows_updated, done.rows_inserted) == (5, 1)
    expected = rows().to_pylist()
    for number in asked:
        expected[number]["price"] = 1000.0
    expected[105] |= {"word": None, "tags": None, "place": None}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == expected


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("asked", [[0], [57, 58], [299], [20, 119, 120, 299]])
def test_pages_before_the_rows_are_left_out_of_columns_without_lists(tmp_path: Path, version: str, asked: list[int]):
    flat = rows().drop_columns(["tags", "place"])
    options = {"row_group_size": 100, "write_batch_size": 10, "max_rows_per_page": 10, "data_page_version": version}
    pq.write_table(flat, tmp_path / "a.parquet", **options)
    table = ul.connect(f"memory://{os.urandom(6).hex()}").create_table("a.b", flat.schema)
    table.register(str(tmp_path / "a.parquet"))
    table.delete("id = 5")
    table.update({"price": "price + 1000"}, where=f"id in ({', '.join(map(str, asked))})")
    raised = np.where(np.isin(np.arange(COUNT), asked), 1000.0, 0.0) + flat["price"].to_numpy()
    expected = flat.set_column(2, "price", pa.array(raised)).filter(pa.array(np.arange(COUNT) != 5))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == expected.to_pylist()
