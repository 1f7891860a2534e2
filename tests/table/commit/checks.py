"""What a chain of commits is checked for, and changes of a definition."""

from __future__ import annotations

from tests.table.checker import Checker
from tests.table.entries import (
    DEFINITION,
)
from underlay.index.root import Definition, Root
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot


def locations(revision: Revision, root: Root | None = None) -> set[str]:
    snapshot = Snapshot(revision.store, revision.keys, root or revision.head())
    return {file.location for file in snapshot.files()}


def check(revision: Revision) -> None:
    Checker(revision.store).check()


def with_column(column: str, *, required: bool = False) -> Definition:
    fields = (*DEFINITION.schema.fields, FieldRecord(id=2, name=column, type="int64", required=required))
    return with_schema(SchemaRecord(fields=fields, last_id=2))


def with_schema(schema: SchemaRecord) -> Definition:
    return Definition(schema=schema, key=DEFINITION.key)
