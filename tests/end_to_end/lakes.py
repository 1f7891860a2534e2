"""Lakes with a table of real rows, on stores that tests can look into."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pyarrow as pa

import underlay
from tests.table.entries import surroundings
from underlay.cache.settings import memory_cache
from underlay.store import Store, open_store

NAME = "some.table"
SCHEMA = "id bigint not null, name string, value double"


def rows(numbers: Iterable[int]) -> pa.Table:
    """A row for each number, which its other columns repeat."""
    found = list(numbers)
    return pa.table(
        {
            "id": pa.array(found, pa.int64()),
            "name": pa.array([f"name {number}" for number in found]),
            "value": pa.array([number / 2 for number in found], pa.float64()),
        }
    )


def memory() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


def copy(store: Store) -> Store:
    """The same objects in another store."""
    other = memory()
    for found in store.list_objects():
        other.put(found.key, store.get(found.key)[0])
    return other


def quick(store: Store) -> underlay.Lake:
    """The lake in `store` as a new process sees it; nothing waits, and nothing runs in the background."""
    return underlay.Lake(store, surroundings=surroundings())


def as_new_process(store: Store) -> underlay.Table:
    """The table as a process sees it that has nothing in memory."""
    memory_cache().start_afresh()
    return underlay.connect(store).table(NAME)


def ids(table: underlay.Table, where: str | None = None) -> list[int]:
    """The ids in ascending order. Every row is checked to be whole."""
    found = table.scan(where=where).to_arrow().sort_by("id")
    numbers = found["id"].to_pylist()
    assert found.equals(rows(numbers).cast(found.schema)), "a row is not as it was written"
    return numbers


def data_keys(store: Store) -> set[str]:
    """The keys of all data files, whether a table names them or not."""
    return {found.key for found in store.list_objects() if found.key.endswith(".parquet")}


def named_keys(table: underlay.Table) -> set[str]:
    """The keys of the data files that the table consists of."""
    snapshot = table.snapshot()
    return {key for file in snapshot.files() if (key := snapshot.keys.file(file.location)) is not None}
