"""Imports and syncs whose store fails, or whose process dies, at any request leave the old version or the new one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import copy, memory, quick
from tests.gate import every_third
from underlay.errors import TableExists, UnderlayError
from underlay.store import Store
from underlay.store.testing.faulty import Crashed, Fault, at_every_request
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

NAME = "d.t"
T = TypeVar("T")
FAULTS = [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL, Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


def add(store: Store, name: str, ids: list[int]) -> dict[str, object]:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), sink)
    store.put(f"theirs/{name}", sink.getvalue())
    return {"add": {"path": name, "partitionValues": {}, "size": len(sink.getvalue()), "dataChange": True}}


def commit(store: Store, version: int, *actions: object) -> None:
    store.put(f"theirs/_delta_log/{version:020}.json", "\n".join(map(json.dumps, actions)).encode())


@cache
def template() -> Store:
    """A Delta table in a lake's own store, beside a table of ours."""
    store = memory()
    quick(store).create_table("d.other", "id bigint")
    metadata = {"id": "x", "schemaString": json.dumps(SCHEMA), "partitionColumns": [], "configuration": {}}
    first = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    commit(store, 0, *first, add(store, "a.parquet", [1, 2, 3]), add(store, "b.parquet", [4]))
    return store


@cache
def imported() -> Store:
    """The same with the table imported, and changed in the other system since."""
    store = copy(template())
    quick(store).import_table(NAME, f"delta:{store.url}/theirs")
    commit(store, 1, {"remove": {"path": "a.parquet", "dataChange": True}}, add(store, "c.parquet", [5, 6]))
    return store


def ids(lake: underlay.Lake) -> list[int]:
    return sorted(lake.table(NAME).scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("fault", FAULTS)
def test_an_import_is_whole_or_there_is_no_table(fault: Fault) -> None:
    for store in at_every_request(lambda: copy(template()), [fault], **every_third()):
        try:
            quick(store).import_table(NAME, f"delta:{store.url}/theirs")
            was_told = True
        except (UnderlayError, Crashed):
            was_told = False
        lake = quick(store.inner)
        if NAME in lake:
            assert ids(lake) == [1, 2, 3, 4]
            with pytest.raises(TableExists):
                lake.import_table(NAME, f"delta:{store.url}/theirs")
        else:
            assert not was_told
            assert len(lake.import_table(NAME, f"delta:{store.url}/theirs")) == 4
        assert not lake.table(NAME).sync().is_new


@pytest.mark.parametrize("fault", FAULTS)
def test_a_sync_is_whole_or_nothing(fault: Fault) -> None:
    for store in at_every_request(lambda: moved(imported()), [fault], **every_third()):
        try:
            quick(store).table(NAME).sync()
            was_told = True
        except (UnderlayError, Crashed):
            was_told = False
        lake = quick(store.inner)
        found = ids(lake)
        assert found in ([1, 2, 3, 4], [4, 5, 6])
        assert found == [4, 5, 6] or not was_told
        assert lake.table(NAME).sync().is_new == (found != [4, 5, 6])
        assert ids(lake) == [4, 5, 6]
        assert not lake.verify().findings


def moved(store: Store) -> Store:
    """The same objects elsewhere: the note of the import has the old address."""
    other = copy(template())
    quick(other).import_table(NAME, f"delta:{other.url}/theirs")
    for found in store.list_objects("theirs"):
        other.put(found.key, store.get(found.key)[0])
    return other


class Overtaken(StoreWrapper):
    """A store in which another process syncs just before this one's first commit."""

    is_over = False

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        if request.op is StoreMethod.CREATE and request.keys[0].endswith(".root") and not self.is_over:
            self.is_over = True
            assert quick(self.inner).table(NAME).sync().is_new
        return call()


def test_two_syncs_at_once_take_everything_once() -> None:
    store = moved(imported())
    assert not quick(Overtaken(store)).table(NAME).sync().is_new
    assert ids(quick(store)) == [4, 5, 6]
    assert quick(store).table(NAME).version == 2
