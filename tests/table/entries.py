"""Tables with made-up files: small entries, and a dummy object under each file's key."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Sequence

from underlay.index.entry import ColumnEntry, FileEntry, FileLayout, Flag
from underlay.index.keys import RevisionKeys
from underlay.index.operation import Operation
from underlay.index.root import Definition, Root, SourceRecord
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.store.open import open_store
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.revision import Revision

LAYOUT = FileLayout(id="plain", elements=b"elements", created_by="tests", fields=(1,))
DEFINITION = Definition(
    schema=SchemaRecord(fields=(FieldRecord(id=1, name="id", type="int64"),), last_id=1),
    key=(1,),
)
ROWS = 100
"""Rows of a made-up file, in two blocks."""


def memory() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


def surroundings(writer: str = "tests", **given: object) -> Surroundings:
    """No waiting, hints at once, and a clock that ticks."""
    ticks = itertools.count(1_000_000)
    quick = {
        "now_us": lambda: next(ticks),
        "sleep": lambda seconds: None,
        "chance": lambda: 0.5,
        "in_background": run_at_once,
        "writer": writer,
    }
    return Surroundings(**(quick | given))  # type: ignore[arg-type]  # fields of many types


def run_at_once(work: Callable[[], None]) -> None:
    work()


def entry(location: str, low: int = 0, deletes: bytes | None = None) -> FileEntry:
    """A file with ids `low` to `low + 99`."""
    half = ROWS // 2
    column = ColumnEntry(
        field=1,
        column=0,
        low=struct.pack("<2q", low, low + half),
        high=struct.pack("<2q", low + half - 1, low + ROWS - 1),
        null_counts=struct.pack("<2q", 0, 0),
        flags=bytes([Flag.HAS_LOW | Flag.HAS_HIGH | Flag.HAS_NULL_COUNT] * 2),
        begins=struct.pack("<2q", 4, 404),
        sizes=struct.pack("<2q", 400, 400),
        codecs=bytes([0, 0]),
    )
    return FileEntry(
        location=location,
        size_bytes=len(location),
        etag=None,
        footer_bytes=10,
        footer_crc=7,
        layout=LAYOUT.id,
        block_rows=struct.pack("<2q", half, half),
        columns=(column,),
        deletes=deletes,
    )


def name() -> str:
    """A new name for a file of ours."""
    return f"{0:09}-{os.urandom(8).hex()}.parquet"


def append(
    revision: Revision, *locations: str, token: str | None = None, low: int = 0, base: Root | None = None
) -> Root:
    """Commit an append of made-up files."""
    return commit(appending(revision, *locations, token=token, low=low, base=base))


def appending(
    revision: Revision, *locations: str, token: str | None = None, low: int = 0, base: Root | None = None
) -> Transaction:
    """An append that is not committed yet."""
    transaction = Transaction(revision, base or revision.head(), Operation.APPEND)
    for location in locations:
        transaction.add_file(entry(location, low), LAYOUT)
        transaction.objects[key_of(revision.keys, location)] = location.encode()
    if token is not None:
        transaction.set_token(token)
    return transaction


def deleting(
    revision: Revision, location: str, positions: Sequence[int], operation: Operation = Operation.DELETE
) -> Transaction:
    """A deletion of rows that is not committed yet."""
    transaction = Transaction(revision, revision.head(), operation)
    transaction.delete_rows(location, positions)
    return transaction


def replacing(revision: Revision, old: Sequence[str], new: str) -> Transaction:
    """A compaction that is not committed yet."""
    transaction = Transaction(revision, revision.head(), Operation.COMPACT)
    for location in old:
        transaction.remove_file(location)
    transaction.add_file(entry(new), LAYOUT)
    transaction.objects[key_of(revision.keys, new)] = new.encode()
    return transaction


def source(uri: str) -> SourceRecord:
    return SourceRecord(uri=uri, identity="etag", version=0)


def key_of(keys: RevisionKeys, location: str) -> str:
    key = keys.file(location)
    assert key is not None
    return key


def new_lake(store: Store, **given: object) -> LakeCatalog:
    """A lake without the probe's requests."""
    lake = LakeCatalog(store, surroundings(**given))
    lake.initialise()
    return lake


def new_table(store: Store | None = None, name: str = "taxi.trips") -> tuple[LakeCatalog, Revision]:
    lake = new_lake(store or memory())
    return lake, create(lake, name, DEFINITION)


def other_client(revision: Revision, store: Store | None = None, **given: object) -> Revision:
    """The same revision as another process sees it."""
    folder = revision.keys.folder.rsplit("/", 1)[0]
    return Revision(store or revision.store, folder, revision.id, surroundings(**given))
