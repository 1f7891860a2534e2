"""Many small files are decoded together: fewer pieces, and the rows that each file has by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import underlay
from tests.cache.remote import remote_store
from underlay.errors import Damaged
from underlay.prune import TRUE
from underlay.scan.portion import portions, read_portion
from underlay.scan.read.file_stores import FileStores
from underlay.scan.slabs import MOST_TOGETHER, REQUEST_WEIGHT
from underlay.store.remote import RemoteStore
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("value", pa.float64())])
FILES = 150
ROWS = 3


def rows_of(number: int) -> pa.Table:
    """Every seventh file has no text at all, which is not fetched."""
    texts = [None] * ROWS if number % 7 == 0 else [f"text {number}", None, "same"]
    ids = [number * ROWS + row for row in range(ROWS)]
    return pa.table({"id": ids, "text": texts, "value": [0.5, None, float(number)]}, schema=SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> underlay.Table:
    made = underlay.connect(tmp_path_factory.mktemp("small") / "lake").create_table("small.files", SCHEMA)
    for number in range(FILES):
        made.append(rows_of(number))
    return made


WHOLE = pa.concat_tables([rows_of(number) for number in range(FILES)])


def test_rows_of_many_files_come_in_few_pieces(table: underlay.Table):
    found = table.scan(columns=["id", "value"]).to_arrow()
    assert found.equals(WHOLE.select(["id", "value"]))
    assert found.column("id").num_chunks == -(-FILES // MOST_TOGETHER)


def test_rows_of_files_that_lack_values_come_in_order(table: underlay.Table):
    assert table.scan().to_arrow().equals(WHOLE)
    assert table.scan(columns=["text"]).to_arrow().equals(WHOLE.select(["text"]))


def test_no_columns_keep_their_rows(table: underlay.Table):
    assert sum(batch.num_rows for batch in table.scan(columns=[]).to_batches()) == FILES * ROWS


@pytest.mark.parametrize("where", ["id % 2 = 0", "id >= 100 and id < 217", "text = 'same'", "value is null", "id < 0"])
def test_a_filter_finds_what_it_finds_in_all_rows(table: underlay.Table, where: str):
    expected = {
        "id % 2 = 0": lambda row: row["id"] % 2 == 0,
        "id >= 100 and id < 217": lambda row: 100 <= row["id"] < 217,
        "text = 'same'": lambda row: row["text"] == "same",
        "value is null": lambda row: row["value"] is None,
        "id < 0": lambda row: False,
    }[where]
    assert table.scan(where=where).to_arrow().to_pylist() == [row for row in WHOLE.to_pylist() if expected(row)]


class MeetingStore(StoreWrapper):
    """A remote store that answers no request for rows before eight of them have come."""

    def __init__(self) -> None:
        super().__init__(RemoteStore(MemoryStore(), "s3://bucket/lake"))
        self.meeting: Barrier | None = None

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        if self.meeting is not None and request.keys[0].endswith(".parquet"):
            self.meeting.wait(60)
        return call()


@pytest.fixture(scope="module")
def remote() -> MeetingStore:
    store = MeetingStore()
    table = underlay.connect(store).create_table("small.files", SCHEMA)
    for number in range(64):
        table.append(rows_of(number))
    return store


def test_remote_files_are_fetched_many_at_once_and_decoded_together(remote: MeetingStore):
    scan = underlay.connect(remote).table("small.files").scan(["id", "value"])
    remote.meeting = Barrier(8)
    found = scan.to_arrow()
    remote.meeting = None
    assert found.equals(WHOLE.select(["id", "value"]).slice(0, 64 * ROWS))
    assert found.column("id").num_chunks == -(-64 // MOST_TOGETHER)


def test_remote_files_of_a_portion_are_fetched_many_at_once(remote: MeetingStore):
    query = underlay.connect(remote).table("small.files").query(["id"], None)
    (portion,) = portions(query, target_bytes=1 << 30)
    remote.meeting = Barrier(8)
    found = list(read_portion(portion, FileStores(remote), TRUE))
    remote.meeting = None
    assert [one for batch in found for one in batch.column("id").to_pylist()] == list(range(64 * ROWS))
    assert len(found) == -(-64 // MOST_TOGETHER)


def test_a_scan_of_remote_files_that_is_left_early_has_not_asked_for_all():
    store = remote_store()
    table = underlay.connect(store).create_table("small.files", SCHEMA)
    for number in range(FILES):
        table.append(rows_of(number))
    few = replace(table.query(["id"], None), budget_bytes=2 * MOST_TOGETHER * REQUEST_WEIGHT)
    store.reset()
    batches = few.batches()
    next(batches)
    batches.close()
    asked = {served.request.keys[0] for served in store.log if served.request.keys[0].endswith(".parquet")}
    assert 0 < len(asked) <= 2 * MOST_TOGETHER


def test_deleted_rows_of_some_files_are_left_out(tmp_path: Path):
    made = underlay.connect(tmp_path / "lake").create_table("small.files", SCHEMA)
    for number in range(20):
        made.append(rows_of(number))
    made.delete("id in (4, 33)")
    made.delete("id = 58")
    ids = [number for number in range(20 * ROWS) if number not in (4, 33, 58)]
    assert made.scan(columns=["id"]).to_arrow().column("id").to_pylist() == ids
    assert made.scan(["id"], "id > 30").to_arrow().column("id").to_pylist() == [one for one in ids if one > 30]


def test_a_damaged_file_among_many_is_named(tmp_path: Path):
    made = underlay.connect(tmp_path / "lake").create_table("small.files", SCHEMA)
    for number in range(1, 7):
        made.append(rows_of(number))
    harmed = sorted((tmp_path / "lake").glob("small/files/*/*.parquet"))[3]
    data = bytearray(harmed.read_bytes())
    data[30] ^= 0xFF
    harmed.write_bytes(data)
    with pytest.raises(Damaged) as caught:
        made.scan().to_arrow()
    assert harmed.name in str(caught.value)
