"""A lake with some of everything, and copies of it to break."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from functools import cache
from uuid import UUID

import pyarrow as pa

from tests.contract.worlds import World, add_column, change, delete_positions, drop_column, rename_column, widen_column
from tests.end_to_end.lakes import memory, rows
from tests.table.checker import Checker
from underlay.index.root import SourceRecord
from underlay.maintain.verify.finding import Report, RevisionReport
from underlay.maintain.verify_lake import RegistryCheck, verify
from underlay.scan.read.file_stores import FileStores
from underlay.store import Store
from underlay.table.catalog import lifecycle as succession
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import wait_for_background

SALES, KINDS, OTHER = "shop.sales", "shop.kinds", "shop.other"


def run(
    store: Store, *names: str, deep: bool = False, repair: bool = False, registry: RegistryCheck | None = None
) -> Report:
    """Verify as a process does that knows nothing."""
    return verify(LakeCatalog(store), FileStores(store), names or None, deep=deep, repair=repair, registry=registry)


def active(report: Report, name: str = SALES) -> RevisionReport:
    """The active revision of a table."""
    return next(table.active for table in report.tables if table.name == name)


def objects(store: Store) -> dict[str, tuple[int, str | None]]:
    """Every object with its size and etag, once hints are there, which are put beside the commits."""
    wait_for_background()
    return {found.key: (found.size_bytes, found.etag) for found in store.list_objects()}


def add_sources(table, count: int) -> None:
    def make(transaction: Transaction) -> None:
        for number in range(count):
            uri = f"s3://in/{os.urandom(4).hex()}-{number:06}.csv"
            transaction.add_source(SourceRecord(uri=uri, identity="etag", version=0))

    change(table, make, "ingest")


def build_sales(world: World) -> None:
    """Appends, registered files, deletions, a rollback, tokens, a source tree, other columns, merged segments."""
    table = world.create(
        "id bigint not null, name string, value double",
        SALES,
        block_rows=4,
        key=["id"],
        sort_by=["id"],
        partition_by=["truncate(100, id)"],
    )
    for number in range(10):
        table.append(rows(range(number * 10, number * 10 + 10)), token=f"append {number}")
    table.register(*(world.put_parquet(rows(range(n * 100, n * 100 + 6)), row_group_size=3) for n in range(3, 69)))
    delete_positions(table, {0: [0, 3], 2: [1]})
    add_sources(table, 300)
    add_column(table, "extra", "int32", "7")
    more = rows([5, 6, 7]).append_column("extra", pa.array([1, None, 3], pa.int32()))
    table.append(more)
    widen_column(table, "extra", "int64")
    rename_column(table, "name", "label")
    version = table.version
    add_sources(table, 250)
    delete_positions(table, {5: [2, 3]})
    table.rollback(version)
    drop_column(table, "label")
    for number in range(40):
        table.append(
            pa.table({"id": [number, number + 1], "value": [float("nan"), None], "extra": pa.array([1, 2], pa.int64())})
        )
    delete_positions(table, {0: [1]})


def build_kinds(world: World) -> None:
    """Nested columns and every kind of type."""
    point = pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.string()))])
    data = pa.table(
        {
            "point": pa.array([{"x": 1, "tags": ["a", None]}, None, {"x": None, "tags": []}], point),
            "by": pa.array(
                [[("k", 1.5)], None, [("l", float("nan")), ("m", None)]], pa.map_(pa.string(), pa.float64())
            ),
            "wide": pa.array([Decimal("-1.500"), None, Decimal("99999999999999999999.125")], pa.decimal128(30, 3)),
            "slim": pa.array([Decimal("-1.5"), Decimal("2.25"), None], pa.decimal128(9, 2)),
            "who": pa.array([UUID(int=5).bytes, None, UUID(int=1 << 127).bytes], pa.uuid()),
            "at": pa.array([-1, None, 2**60], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "ns": pa.array([-(2**62), 5, 2**62], pa.int64()).cast(pa.timestamp("ns")),
            "on": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
            "noon": pa.array([0, 86_399_999_999, None], pa.int64()).cast(pa.time64("us")),
            "yes": pa.array([True, False, None]),
            "long": pa.array(["z" * 100, "\U0010ffff" * 30, "é"]),
            "raw": pa.array([b"\xff" * 70, b"", None], pa.binary()),
            "half": pa.array([1.0, float("nan"), None], pa.float16()),
            "single": pa.array([-0.0, 0.0, None], pa.float32()),
            "tiny": pa.array([-128, 127, None], pa.int8()),
            "huge": pa.array([0, 2**64 - 1, None], pa.uint64()),
            "none": pa.array([None, None, None], pa.string()),
        }
    )
    table = world.create(data.schema, KINDS, block_rows=2, key=["who"])
    table.append(data)
    table.append(data.slice(1, 1))
    table.register(world.put_parquet(data, row_group_size=1), world.put_parquet(data, compression="zstd"))


def build_other(world: World) -> None:
    """A table with two revisions, renamed; and one that was dropped."""
    table = world.create("id bigint not null, name string, value double", "shop.before")
    table.append(rows(range(5)))
    lake = LakeCatalog(world.store)
    old = succession.open_active(lake, "shop.before")
    successor = succession.prepare_successor(lake, "shop.before", old.head().definition)
    succession.activate(lake, "shop.before", old, old.head(), successor)
    world.lake.rename_table("shop.before", OTHER)
    world.again().table(OTHER).append(rows(range(3)))
    world.create("id bigint", "shop.gone").append(pa.table({"id": [1]}))
    world.lake.drop_table("shop.gone")


def build_all(world: World) -> None:
    """Some of everything."""
    build_sales(world)
    build_kinds(world)
    build_other(world)


def build_small(world: World) -> None:
    """SALES in twelve versions: files in the tail and in a segment, deletions, a page of sources. And OTHER."""
    table = world.create("id bigint not null, name string, value double", SALES, block_rows=4, key=["id"])
    for number in range(3):
        table.append(rows(range(number * 10, number * 10 + 6)))
    table.register(*(world.put_parquet(rows([n])) for n in range(66)))
    delete_positions(table, {0: [0]})
    add_sources(table, 250)
    delete_positions(table, {66: [1], 3: [0]})
    for number in range(4):
        table.append(rows(range(number, number + 3)))
    world.create("id bigint not null, name string, value double", OTHER).append(rows(range(4)))


def build_tiny(world: World) -> None:
    """SALES with a file in each of three versions, the last one registered; and OTHER."""
    table = world.create("id bigint not null, name string, value double", SALES, block_rows=4, key=["id"])
    table.append(rows(range(10)))
    table.append(rows(range(10, 15)))
    table.register(world.put_parquet(rows(range(20, 25)), row_group_size=3))
    world.create("id bigint not null, name string, value double", OTHER).append(rows(range(4)))


@cache
def built(build: Callable[[World], None]) -> Store:
    """A lake that is built once. Who breaks it puts it together again: see `broken`."""
    world = World(memory())
    build(world)
    wait_for_background()
    return world.store


@contextmanager
def broken(store: Store, key: str, data: bytes | None) -> Iterator[None]:
    """Other bytes under a key, or none, for a while."""
    before = bytes(store.get(key)[0])
    if data is None:
        store.delete([key])
    else:
        store.put(key, data)
    try:
        yield
    finally:
        store.put(key, before)


class Truth:
    """What the versions of a table need, found without any code that is tested here."""

    def __init__(self, store: Store, name: str = SALES) -> None:
        keys = [found.key for found in store.list_objects()]
        entries = [json.loads(bytes(store.get(key)[0])) for key in sorted(keys) if key.startswith("_catalog/0")]
        changed = [(entry.get("changes") or entry).get("tables", {}) for entry in entries]
        record = next(tables[name] for tables in reversed(changed) if name in tables)
        self.store = store
        self.folder = f"{record['folder']}/{record['active']}"
        self.root_keys = sorted(key for key in keys if key.startswith(self.folder) and key.endswith(".root"))
        self.roots = [json.loads(bytes(store.get(key)[0])) for key in self.root_keys]
        self.states = Checker(store).check_revision(self.folder, self.root_keys)

    def keys(self, part: str) -> list[str]:
        """The objects of the revision with this in their keys."""
        return [found.key for found in self.store.list_objects(self.folder) if part in found.key]

    def own_files(self) -> list[str]:
        return [key for key in self.keys(".parquet") if "/_" not in key]

    def needing(self, key: str) -> set[int]:
        """The versions that an object is part of, unless it is derived."""
        name = key.rpartition("/")[2].partition(".")[0]
        found = {version for version, root in enumerate(self.root_keys) if root == key}
        for version, root in enumerate(self.roots):
            tree = root.get("sources", {}).get("tree") or {}
            named = {ref["id"] for ref in root.get("segments", ())} | {tree.get("id")}
            if name in named or any(f"{self.folder}/{location}" == key for location in self.states[version]):
                found.add(version)
        return found

    def newest_without(self, key: str) -> int | None:
        return max(set(range(len(self.roots))) - self.needing(key), default=None)
