"""A lake with the store below it, and the changes that have no verb of their own yet."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

import underlay
from tests.contract.chaos import ChaoticRegistry
from underlay.errors import Damaged, NotFound
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.prune.predicates.operand import format_column
from underlay.schema.record import FieldRecord
from underlay.store import Store
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import wait_for_background


class World:
    """A lake that a test works with. `store` is where its objects lie."""

    def __init__(self, store: Store, registry: str | ChaoticRegistry = "none") -> None:
        self.store = store
        self.registry = registry
        self._lakes: list[underlay.Lake] = []
        self.lake = self.again()

    def again(self) -> underlay.Lake:
        """The same lake as another process sees it, with nothing in memory."""
        if isinstance(self.registry, str):
            lake = underlay.connect(self.store, registry=self.registry)
        else:
            lake = underlay.Lake(self.store, registry=self.registry)
        self._lakes.append(lake)
        return lake

    def close(self) -> None:
        """Check that the registry tells what the store does, unless the test damaged that; and let go of it."""
        registries = [lake.registry for lake in self._lakes if lake.registry is not None]
        applied = [registry.wait(120) for registry in registries]
        with suppress(Damaged, NotFound):
            if registries and self.lake.exists():
                assert registries[0].differences() == []
                assert all(applied), "the registry did not follow"
        for registry in registries:
            registry.close()

    def create(self, schema: object, name: str = "shop.sales", *, block_rows: int | None = None, **options: object):
        """A new table, by default with blocks of many rows."""
        properties = dict(options.pop("properties", {}))
        if block_rows is not None:
            properties["block_rows"] = str(block_rows)
        return self.lake.create_table(name, schema, properties=properties, **options)

    def put_parquet(self, data: pa.Table | bytes, name: str | None = None, **options: object) -> str:
        """A Parquet file that somebody else put beside the tables; its URL."""
        key = f"in/{name or os.urandom(6).hex()}.parquet"
        if isinstance(data, pa.Table):
            sink = io.BytesIO()
            pq.write_table(data, sink, **options)
            data = sink.getvalue()
        self.store.put(key, data)
        return f"{self.store.url}/{key}"

    def keys(self, part: str) -> list[str]:
        """The keys in which `part` occurs, once hints are there, which are put beside the commits."""
        wait_for_background()
        return sorted(found.key for found in self.store.list_objects("") if part in found.key)

    def overwrite(self, key: str, data: bytes) -> None:
        """Other bytes under a key, whatever was there."""
        self.store.delete([key])
        self.store.put(key, data)


def change(table: underlay.Table, make: Callable[[Transaction], None], operation: str = "change") -> None:
    """Commit what `make` collects."""
    head = table._opened.head()
    transaction = Transaction(head.revision, head.root, Operation(operation), load_segment=table._opened.load_segment)
    make(transaction)
    commit(transaction)


def delete_positions(table: underlay.Table, positions: Mapping[int, Iterable[int]]) -> None:
    """Delete rows by their position in a file; files are numbered as the table reads them."""
    locations = [file.location for file in table.plan().choices.files()]

    def make(transaction: Transaction) -> None:
        for number, rows in positions.items():
            transaction.delete_rows(locations[number], rows)

    change(table, make, "delete")


def evolve(table: underlay.Table, edit: Callable[[tuple[FieldRecord, ...], int], tuple[FieldRecord, ...]]) -> None:
    """Other columns: `edit` gets the old ones and the next free id."""

    def make(transaction: Transaction) -> None:
        definition: Definition = transaction.base.definition
        schema = definition.schema
        fields = edit(schema.fields, schema.last_id + 1)
        last = max([schema.last_id, *(field.id for field in fields)])
        transaction.set_definition(replace(definition, schema=replace(schema, fields=fields, last_id=last)))

    change(table, make, "evolve")


def add_column(table: underlay.Table, name: str, type_: str, default: str | None = None) -> None:
    with table.evolve() as change:
        change.add_column(format_column((name,)), type_, default)


def drop_column(table: underlay.Table, name: str) -> None:
    with table.evolve() as change:
        change.drop_column(name)


def rename_column(table: underlay.Table, old: str, new: str) -> None:
    with table.evolve() as change:
        change.rename_column(old, new)


def widen_column(table: underlay.Table, name: str, type_: str) -> None:
    with table.evolve() as change:
        change.widen_column(name, type_)
