"""The system views of a lake by name. A query looks at each table once, and at many of them in parallel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from underlay.api.opened.context import LakeContext
from underlay.api.opened.info import describe
from underlay.api.opened.layout import layout_texts
from underlay.api.opened.versioned_table import VersionedTable
from underlay.api.views.file_rows import BLOCKS, FILES, block_rows, file_rows
from underlay.errors import TableNotFound
from underlay.index.catalog import split_name
from underlay.index.change import TOKEN
from underlay.index.sources.tree import scan_all
from underlay.local.sql.views import NAMES, SystemView
from underlay.runtime.threads import side_by_side
from underlay.schema.arrow_aliases import AnyType
from underlay.table import time_travel as travel

Row = Mapping[str, object]
LookAt = Callable[[VersionedTable], Iterable[Row]]

Columns = Mapping[str, AnyType]

_TEXT, _NUMBER, _TIME = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
_TEXTS = pa.list_(_TEXT)
_TABLES: Columns = {
    "folder": _TEXT, "revision": _TEXT, "version": _NUMBER, "committed_at": _TIME, "rows": _NUMBER, "files": _NUMBER,
    "bytes": _NUMBER, "key": _TEXTS, "partition_by": _TEXTS, "sort_by": _TEXTS, "comment": _TEXT,
}  # fmt: skip
VERSIONS: Columns = {
    "version": _NUMBER, "committed_at": _TIME, "operation": _TEXT, "counts": pa.map_(_TEXT, _NUMBER),
    "rows": _NUMBER, "files": _NUMBER, "bytes": _NUMBER, "writer": _TEXT, "commit_id": _TEXT, "run": _TEXT,
}  # fmt: skip
SOURCES: Columns = {
    "uri": _TEXT, "status": _TEXT, "rows": _NUMBER, "version": _NUMBER, "identity": _TEXT, "run": _TEXT, "error": _TEXT,
}  # fmt: skip
JOBS: Columns = {
    "job": _TEXT, "owner": _TEXT, "epoch": _NUMBER, "started_at": _TIME, "renewed_at": _TIME,
    "ttl_seconds": pa.float64(), "note": _TEXT, "is_exclusive": pa.bool_(), "is_alive": pa.bool_(),
    "is_fenced": pa.bool_(), "problem": _TEXT,
}  # fmt: skip


def system_views(context: LakeContext, jobs: LookAt) -> dict[str, SystemView]:
    """The views by their names in the dataset `underlay`."""
    return {
        "tables": _View(context, _TABLES, _table_rows),
        "versions": _View(context, VERSIONS, version_rows),
        "files": _View(context, FILES, file_rows),
        "blocks": _View(context, BLOCKS, block_rows),
        "sources": _View(context, SOURCES, source_rows),
        "jobs": _View(context, JOBS, jobs),
    }


class _View:
    def __init__(self, context: LakeContext, columns: Columns, look: LookAt) -> None:
        self.schema = pa.schema([*NAMES, *((name, kind) for name, kind in columns.items())])
        self._context = context
        self._look = look
        self._known: dict[str, pa.Table] = {}

    def read(self, tables: Sequence[str], columns: Collection[str]) -> pa.Table:
        """The rows for these tables. A query of names alone does not open them."""
        if set(columns) <= set(NAMES.names) and self._look is _table_rows:
            return pa.concat_tables([self._rows(name, [{}]) for name in tables] or [self.schema.empty_table()])
        unknown = [name for name in tables if name not in self._known]
        found = side_by_side(self._found, unknown, self._context.catalog.store.parallel_requests)
        self._known |= dict(zip(unknown, found, strict=True))
        return pa.concat_tables([self._known[name] for name in tables] or [self.schema.empty_table()])

    def _found(self, name: str) -> pa.Table:
        try:
            table = VersionedTable(self._context.open_table(name), self._context)
            return self._rows(name, list(self._look(table)))
        except TableNotFound:  # the table was dropped since it was listed
            return self.schema.empty_table()

    def _rows(self, name: str, rows: Sequence[Row]) -> pa.Table:
        dataset, table = split_name(name)
        named = [{"dataset": dataset, "table_name": table, **row} for row in rows]
        return pa.Table.from_pylist(named, schema=self.schema)


def _table_rows(table: VersionedTable) -> Iterable[Row]:
    snapshot = table.snapshot()
    definition, facts = snapshot.definition, describe(snapshot.root)
    yield {
        "folder": snapshot.keys.folder,
        "revision": table.read_head().revision.id,
        "version": facts.version,
        "committed_at": facts.committed,
        "rows": facts.row_count,
        "files": facts.file_count,
        "bytes": facts.data_bytes,
        **layout_texts(definition, snapshot.schema),
        "comment": definition.comment,
    }


def version_rows(table: VersionedTable, most: int | None = None) -> Iterable[Row]:
    """The versions up to the one that is read, the newest first."""
    head = table.read_head()
    for root in travel.history(head.revision, most, head.root.version):
        one = describe(root)
        yield {
            "version": one.version,
            "committed_at": one.committed,
            "operation": one.operation,
            "counts": list(one.counts.items()),
            "rows": one.row_count,
            "files": one.file_count,
            "bytes": one.data_bytes,
            "writer": one.writer,
            "commit_id": one.commit_id,
            "run": one.run,
        }


def source_rows(table: VersionedTable) -> Iterable[Row]:
    """What was ingested. Tokens of appends are stored as sources too; they are left out."""
    snapshot = table.snapshot()
    for one in scan_all(snapshot.root.sources, snapshot.fetch_pages):
        if not one.uri.startswith(TOKEN):
            yield {
                "uri": one.uri,
                "status": one.status,
                "rows": one.row_count,
                "version": one.version,
                "identity": one.identity,
                "run": one.owner,
                "error": one.error,
            }
