"""A lake of many tables with many small versions, written in seconds: one table's history, told of every table.

The roots of the first table come from real commits of appends of one file each, with eight columns. The other tables
have the same roots with commit ids of their own. Nothing is synced, and there are no Parquet files.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from underlay.index.catalog import ACTIVE, WHOLE_FORMAT, CatalogEntry, RevisionRecord, TableRecord, encode_entry
from underlay.index.entry import ColumnEntry, FileEntry, FileLayout, Flag
from underlay.index.keys import catalog_key, file_name, table_folder
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.index.sealed_json import seal, unseal
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.store.open import open_store
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import new_commit_id, uuid7, wait_for_background
from underlay.table.versions.revision import Revision

COLUMNS = 8
_LAYOUT = FileLayout(id="synthetic", elements=b"", created_by="bench", fields=tuple(range(1, COLUMNS + 1)))


def make_lake(folder: Path, table_count: int, version_count: int) -> None:
    """Make the lake in `folder` unless it is there: each table has so many versions, the empty first one included."""
    if folder.exists():
        return
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    _write_lake(making, table_count, version_count)
    making.rename(folder)


def _write_lake(folder: Path, table_count: int, version_count: int) -> None:
    store = open_store(f"memory://{os.urandom(6).hex()}")
    lake = LakeCatalog(store)
    lake.initialise()
    model = create(lake, "synthetic.table", _definition())
    for number in range(version_count - 1):
        _append(model, number)
    wait_for_background()
    begin = f"{model.keys.folder}/"
    objects = [(key.removeprefix(begin), data) for key, data in _objects(store, model.keys.folder)]
    ids = [model.root(version).commit_id for version in range(version_count)]
    tables = {}
    for number in range(table_count):
        place, revision = table_folder("synthetic", f"t{number}"), uuid7()
        _write_table(folder / place / revision, objects, ids)
        record = RevisionRecord(state=ACTIVE, created_us=number)
        tables[f"synthetic.t{number}"] = TableRecord(folder=place, active=revision, revisions={revision: record})
    known = lake.catalog()
    entry = CatalogEntry(
        format=WHOLE_FORMAT,
        lake_id=known.lake_id,
        number=0,
        commit_id=known.commit_id,
        parent_id=None,
        committed_us=known.committed_us,
        operation=known.operation,
        tables=tables,
    )
    _write(folder / catalog_key(0), encode_entry(entry))


def _definition() -> Definition:
    fields = tuple(FieldRecord(id=number, name=f"column_{number}", type="int64") for number in range(1, COLUMNS + 1))
    return Definition(schema=SchemaRecord(fields=fields, last_id=COLUMNS), sort_by=())


def _append(revision: Revision, number: int) -> None:
    transaction = Transaction(revision, revision.head(), Operation.APPEND)
    transaction.add_file(_entry(file_name(number, number), number), _LAYOUT)
    commit(transaction)


def _entry(location: str, number: int) -> FileEntry:
    known = bytes([Flag.HAS_LOW | Flag.HAS_HIGH | Flag.HAS_NULL_COUNT])
    columns = tuple(
        ColumnEntry(
            field=field,
            column=field - 1,
            low=struct.pack("<q", number * 1000),
            high=struct.pack("<q", number * 1000 + 999),
            null_counts=struct.pack("<q", 0),
            flags=known,
            begins=struct.pack("<q", 4 + 8000 * (field - 1)),
            sizes=struct.pack("<q", 8000),
            codecs=b"\1",
        )
        for field in range(1, COLUMNS + 1)
    )
    return FileEntry(
        location=location,
        size_bytes=70_000,
        etag=None,
        footer_bytes=1000,
        footer_crc=number,
        layout=_LAYOUT.id,
        block_rows=struct.pack("<q", 1000),
        columns=columns,
    )


def _objects(store: Store, folder: str) -> list[tuple[str, bytes]]:
    return [(found.key, bytes(store.get(found.key)[0])) for found in store.list_objects(folder)]


def _write_table(folder: Path, objects: list[tuple[str, bytes]], ids: list[str]) -> None:
    """The model's objects, with other commit ids in the roots."""
    new_ids = [new_commit_id().encode() for _ in ids]
    for name, data in objects:
        if name.endswith(".root"):
            version = int(Path(name).stem)
            json = unseal(data)
            for known in range(max(version - 1, 0), version + 1):
                json = json.replace(ids[known].encode(), new_ids[known])
            data = seal(json)
        _write(folder / name, data)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        os.makedirs(path.parent)
        path.write_bytes(data)
