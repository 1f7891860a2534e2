"""Applies a table's checks to files that are about to be registered: it reads the columns that the checks name."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from underlay.change.files.row_checks import RowChecks, checked_columns
from underlay.errors import SchemaMismatch
from underlay.index.entry import FileLayout
from underlay.index.segment.segment import Segment
from underlay.runtime.locks import cached_property
from underlay.scan.positions import matched_rows
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.table.versions.snapshot import Snapshot


class _NewFiles(Snapshot):
    """Files that are in no version yet, as the only files of a table."""

    def __init__(self, base: Snapshot, files: Segment, layouts: Iterable[FileLayout]) -> None:
        known = {layout.id: layout for layout in (*base.root.layouts, *layouts)}
        root = replace(
            base.root, segments=(), tail=tuple(files.entries()), removed=(), deletes={}, layouts=tuple(known.values())
        )
        super().__init__(base.store, base.keys, root, base.load_segment)
        self._files = files

    @cached_property
    def tail(self) -> Segment:
        """The files."""
        return self._files


def check_rows(base: Snapshot, files: Segment, layouts: Iterable[FileLayout], stores: FileStores) -> None:
    """Raise SchemaMismatch with the first file and row that contradict a check of the table."""
    schema = base.schema
    checks = base.definition.checks
    named = {name for text in checks.values() for name in checked_columns(text, schema)} or {schema.names[0]}
    columns = tuple(name for name in schema.names if name in named)
    query = Query(snapshot=_NewFiles(base, files, layouts), columns=columns, stores=stores)
    verifier = RowChecks(checks, schema)
    for found in matched_rows(query):
        if not found.rows.num_rows:
            continue
        try:
            verifier.verify(found.rows, first_row=int(found.positions[0]))
        except SchemaMismatch as error:
            error.hint = "Nothing was registered. Ingest the file, which rejects such rows, or leave it out."
            raise error.at(found.location) from None
