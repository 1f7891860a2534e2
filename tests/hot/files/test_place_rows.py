"""Where new rows go: blocks stay in the order of time, nothing is lost, and only blocks that change are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from underlay.hot.files.blocks import HotBlock
from underlay.hot.files.layout import HotLayout
from underlay.hot.files.place_rows import FAN, TOP_UP_ROWS, NewBlock, place_rows
from underlay.parquet.footer.assemble import GroupBytes
from underlay.parquet.write.writer import WriteOptions
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind

TIME = Field(id=1, name="ts", type=Scalar(TypeKind.TIMESTAMP, unit="us"))
ID = Field(id=2, name="id", type=Scalar(TypeKind.INT64))
SCHEMA = TableSchema(fields=(TIME, ID), last_id=2)


def layout(*, block_rows: int = 8, key: tuple[str, ...] = ()) -> HotLayout:
    return HotLayout(schema=SCHEMA, time=TIME, options=WriteOptions(), key=key, block_rows=block_rows)


def table(times: list[int], ids: list[int]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "id": pa.array(ids, pa.int64())})


def moments(rows: pa.Table) -> list[int]:
    return rows.column("ts").cast(pa.int64()).to_pylist()


class Model:
    """Blocks in memory, and a list of all rows in the order in which they came."""

    def __init__(self, how: HotLayout) -> None:
        self.layout = how
        self.blocks: list[pa.Table] = []
        self.rows: list[tuple[int, int]] = []
        self.read: set[int] = set()

    def described(self) -> list[HotBlock]:
        return [
            HotBlock(
                row_count=rows.num_rows,
                low=moments(rows.slice(0, 1))[0],
                high=moments(rows.slice(rows.num_rows - 1))[0],
                begin=0,
                end=100 * rows.num_rows,
                group=GroupBytes(b"", None),
            )
            for rows in self.blocks
        ]

    def _read(self, number: int) -> pa.Table:
        self.read.add(number)
        return self.blocks[number]

    def add(self, times: list[int]) -> None:
        first = len(self.rows)
        new = list(range(first, first + len(times)))
        self.rows += zip(times, new, strict=True)
        self.read = set()
        rows = table(times, new)
        placed = place_rows(self.described(), rows, np.array(times, np.int64), self.layout, self._read)
        kept = {one for one in placed if isinstance(one, int)}
        assert self.read | kept == set(range(len(self.blocks))), "a block is kept, or read to be replaced"
        assert not self.read & kept
        self.blocks = [one.rows if isinstance(one, NewBlock) else self.blocks[one] for one in placed]

    def check(self) -> None:
        found = [
            (at, number)
            for rows in self.blocks
            for at, number in zip(moments(rows), rows["id"].to_pylist(), strict=True)
        ]
        assert sorted(found) == sorted(self.expected())
        assert [at for at, _ in found] == sorted(at for at, _ in found)

    def expected(self) -> list[tuple[int, int]]:
        if not self.layout.key:
            return self.rows
        return list({at: (at, number) for at, number in self.rows}.values())


batches = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=12), min_size=1, max_size=12)


@given(batches, st.sampled_from([2, 8, 40]))
def test_rows_in_any_order_end_up_in_the_order_of_time(some: list[list[int]], block_rows: int):
    model = Model(layout(block_rows=block_rows))
    for times in some:
        model.add(times)
        model.check()


@given(batches, st.sampled_from([2, 8, 40]))
def test_of_rows_with_one_key_the_last_stays(some: list[list[int]], block_rows: int):
    model = Model(layout(block_rows=block_rows, key=("ts",)))
    for times in some:
        model.add(times)
        model.check()


def test_rows_of_one_time_stay_in_the_order_in_which_they_came():
    model = Model(layout(block_rows=1000))
    for _ in range(5):
        model.add([7, 7, 3])
    found = [number for rows in model.blocks for number in rows["id"].to_pylist()]
    assert found == [2, 5, 8, 11, 14, 0, 1, 3, 4, 6, 7, 9, 10, 12, 13]


def test_the_number_of_blocks_grows_with_the_logarithm_of_the_commits():
    model = Model(layout(block_rows=1 << 20))
    largest = 0
    for commit in range(600):
        model.add(list(range(commit * TOP_UP_ROWS, (commit + 1) * TOP_UP_ROWS)))
        largest = max(largest, len(model.blocks))
    assert largest <= 3 * FAN
    assert sum(rows.num_rows for rows in model.blocks) == 600 * TOP_UP_ROWS


def test_a_small_last_block_is_topped_up_and_no_other_is_read():
    model = Model(layout(block_rows=1 << 20))
    model.add(list(range(2 * TOP_UP_ROWS)))
    model.add([5000])
    assert model.read == set()
    model.add([5001])
    assert model.read == {1}
    assert [rows.num_rows for rows in model.blocks] == [2 * TOP_UP_ROWS, 2]
