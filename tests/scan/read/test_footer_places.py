from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from underlay.api.table import Table
from underlay.cache.memory import MemoryCache
from underlay.cache.objects import DecodedCache
from underlay.prune.parse.sql import parse_where
from underlay.scan.query import Query, row_filter_of
from underlay.scan.read.footer_places import REQUEST_BYTES, is_cheaper_by_footers
from underlay.scan.slabs import slabs_of
from underlay.store import open_store
from underlay.store.testing import CountingStore

FILES = 300
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("nothing", pa.string()),
        ("some", pa.string()),
        ("inner", pa.struct([("x", pa.float64()), ("l", pa.list_(pa.int32()))])),
        *((f"wide{i}", pa.int64()) for i in range(40)),
    ]
)


def rows(first: int) -> pa.Table:
    numbers = range(first, first + 20)
    columns = {
        "n": numbers,
        "nothing": [None] * 20,
        "some": [None if n % 20 < 10 else f"s{n}" for n in numbers],
        "inner": [{"x": 1.5 * n, "l": [n] * (n % 3)} if n % 4 else None for n in numbers],
    }
    return pa.table({**columns, **{f"wide{i}": numbers for i in range(40)}}, SCHEMA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one large segment of registered files."""
    folder = tmp_path_factory.mktemp("footers")
    (folder / "lake" / "in").mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(rows(number * 20), folder / "lake" / "in" / f"{number:04}.parquet", row_group_size=10)
    lake = underlay.connect(folder / "lake")
    lake.create_table("a.t", SCHEMA).register(f"{folder}/lake/in/*.parquet")
    return folder / "lake"


def fresh(folder: Path) -> tuple[Table, CountingStore, DecodedCache]:
    store = CountingStore(open_store(folder))
    return underlay.connect(store).table("a.t"), store, DecodedCache(memory=MemoryCache(1 << 28), disk=None)


def read(query: Query, cache: DecodedCache | None, *, is_remote: bool) -> pa.Table:
    slabs = slabs_of(query.plan, query.files, cache, is_remote=is_remote)
    return pa.concat_tables([slab.rows(query.files, row_filter_of(query.predicate)) for slab in slabs])


@pytest.mark.parametrize("where", ["n = 77", "n between 75 and 203", "some = 's31'"])
def test_rows_by_footers_are_those_by_places(folder: Path, where: str):
    table, _, cache = fresh(folder)
    query = table.query(None, parse_where(where))
    found = read(query, cache, is_remote=True)
    assert found.equals(read(query, None, is_remote=False))
    expected = [n for n in range(FILES * 20) if where_holds(where, n)]
    assert found["n"].to_pylist() == expected


def where_holds(where: str, n: int) -> bool:
    return {"n = 77": n == 77, "some = 's31'": n == 31}.get(where, 75 <= n <= 203)


def test_few_files_of_a_large_segment_cost_their_footers_and_not_its_places(folder: Path):
    table, store, cache = fresh(folder)
    query = table.query(None, parse_where("n = 77"))
    assert is_cheaper_by_footers(query.plan.choices[0], query.plan.columns)
    store.reset()
    read(query, cache, is_remote=True)
    assert store.received_bytes() < REQUEST_BYTES
    read(query, cache, is_remote=True)
    assert store.request_count() == 3  # the footer once, the chunks twice


def test_many_files_are_read_by_the_segments_places(folder: Path):
    table, _, _ = fresh(folder)
    query = table.query(["n"], parse_where("n >= 0"))
    assert not is_cheaper_by_footers(query.plan.choices[0], query.plan.columns)
