"""Brings a table to the newest version of the table of another system that it follows: one commit, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from underlay.change.files.row_checks import checked_columns
from underlay.change.register.read_footers import Progress, ReadFile
from underlay.change.register.register import check_foreign
from underlay.errors import CommitConflict, InvalidRequest, SourceChanged
from underlay.index import deletion_vectors as bitmaps
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.interop.imports.note import ImportNote, columns_digest, files_digest, find_note
from underlay.interop.imports.registered import ImportedFile, registered_files
from underlay.interop.imports.source_columns import NumberedColumns, number_columns
from underlay.interop.imports.source_table import SourceFile, SourceTable, TableSource
from underlay.interop.imports.take_files import add_taken, not_importable, placed, read_source_files, take_files
from underlay.scan.read.file_stores import FileStores
from underlay.schema.cast.widen import is_widening_column
from underlay.schema.record import from_record, to_record
from underlay.schema.table_schema import TableSchema
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import Committed, commit_change
from underlay.table.open_table import OpenTable

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The result of an import or a sync."""

    version: int
    is_new: bool
    """Whether it made a version: not when nothing was new."""
    source: str
    source_version: int
    files_added: int = 0
    files_removed: int = 0
    rows_added: int = 0
    rows_deleted: int = 0


def note_of(source: TableSource, table: SourceTable) -> ImportNote:
    """The note of a table without any files of this source yet."""
    mark = table.mark
    return ImportNote(
        kind=source.kind,
        url=source.url,
        table_id=table.table_id,
        version=mark.version,
        stamp=mark.stamp,
        files=files_digest({}),
        columns="",
        known={},
    )


def follow(
    table: OpenTable,
    stores: FileStores,
    source: TableSource,
    source_table: SourceTable,
    *,
    first: ImportNote | None = None,
    progress: Progress | None = None,
) -> Synced:
    """Commit what the source has and the table has not, and the reverse. `first` is the note of a new table.

    Raises SourceChanged when the table's imported files or columns were changed here; Unsupported; CommitConflict,
    CommitUnknown.
    """
    _check_once(source_table.files)
    check_foreign([one.found for one in source_table.files], table.lake, stores)
    footers = dict(source_table.reads)

    def prepare(transaction: Transaction) -> None:
        _Sync(transaction, stores, source_table, footers, progress).prepare(first)

    attempt = 1
    while True:
        try:
            return synced(source, source_table.mark.version, commit_change(table, Operation.SYNC, prepare))
        except CommitConflict:
            # Two syncs add the same files: the one that lost has less to do, or nothing, on the new head.
            if attempt == _ATTEMPTS:
                raise
            attempt += 1


def _check_once(files: Sequence[SourceFile]) -> None:
    twice = [name for name, count in Counter(one.found.location for one in files).items() if count > 1]
    if twice:
        raise not_importable([f"{name}: the source has it more than once." for name in twice])


def synced(source: TableSource, version: int, done: Committed) -> Synced:
    """What a commit did."""
    counts = done.head.root.counts if done.is_new else {}
    return Synced(
        version=done.version,
        is_new=done.is_new,
        source=f"{source.kind}:{source.url}",
        source_version=version,
        files_added=counts.get("files_added", 0),
        files_removed=counts.get("files_removed", 0),
        rows_added=counts.get("rows_added", 0),
        rows_deleted=counts.get("rows_deleted", 0),
    )


def check_history(note: ImportNote, source: TableSource, now: SourceTable) -> None:
    """Refuse a source that is not the table, or not the history, that was imported. Raises SourceChanged."""
    if now.table_id != note.table_id:
        raise SourceChanged(
            "the source is another table now",
            place=note.address,
            expected=f"table id {note.table_id}",
            found=f"table id {now.table_id}",
            hint=_OTHER,
        )
    problem = source.contradiction(note.mark)
    if problem is not None:
        raise SourceChanged(
            f"the source {problem}",
            place=note.address,
            expected=f"version {note.version} and what came after it",
            found=f"version {now.mark.version}",
            hint=_OTHER,
        )


_OTHER = "Import it as a table of its own: underlay import NAME SOURCE. This table stays as it is."
_CHANGED = (
    "A sync would bring deleted rows back, or add rows twice. Roll back to the version of the last sync, or import the "
    "source as another table."
)


class _Sync:
    """One attempt, on one version of the table."""

    def __init__(
        self,
        transaction: Transaction,
        stores: FileStores,
        source: SourceTable,
        footers: dict[str, ReadFile],
        progress: Progress | None,
    ) -> None:
        self._transaction = transaction
        self._stores = stores
        self._source = source
        self._footers = footers
        self._progress = progress

    def prepare(self, first: ImportNote | None) -> None:
        """Put the difference into the transaction."""
        transaction, snapshot = self._transaction, self._transaction.snapshot
        note = first or find_note(snapshot)
        if note is None:
            raise InvalidRequest("the table was not imported", hint="underlay import NAME SOURCE makes one.")
        have = registered_files(snapshot)
        if first is None:
            _check_unchanged(note, snapshot.schema, have)
        definition = transaction.base.definition
        old = from_record(definition.schema)
        columns = columns_of(self._source, note.known, old.last_id if first is None else 0)
        if first is None:
            definition = _evolved(definition, columns.schema)
        want = {one.found.location: one for one in self._source.files}
        added, changed, gone = self._compare(want, have)
        for name in gone:
            transaction.remove_file(have[name].location)
        for name, bits in changed.items():
            transaction.delete_rows(have[name].location, bits)
        deletes = self._add([want[name] for name in added], columns, definition)
        left = {name: one.deletes for name, one in have.items() if name not in gone} | changed
        after = left | {name: deletes.get(name) for name in added}
        if definition != transaction.base.definition:
            transaction.set_definition(definition)
        if first is None and not transaction.has_changes:
            return
        mark = self._source.mark
        note = with_fields(
            note,
            version=mark.version,
            stamp=mark.stamp,
            files=files_digest(after),
            columns=columns_digest(columns.schema),
            known=dict(columns.known),
        )
        transaction.add_source(note.record(0))
        if mark.version:
            transaction.count("source_version", mark.version)

    def _compare(
        self, want: Mapping[str, SourceFile], have: Mapping[str, ImportedFile]
    ) -> tuple[list[str], dict[str, bytes], set[str]]:
        """Files to add, rows to delete by file, and files to remove."""
        both = [name for name in want if name in have]
        replaced = {name for name in both if not _is_same(want[name], have[name])}
        with_deletes = [want[name] for name in both if want[name].deletes is not None and name not in replaced]
        bits = self._source.load_deletes(with_deletes)
        changed: dict[str, bytes] = {}
        for name in both:
            theirs, ours = bits.get(name), have[name].deletes
            if name in replaced or theirs == ours:
                continue
            if theirs is not None and (ours is None or not bitmaps.count(bitmaps.difference(ours, theirs))):
                changed[name] = theirs
            else:  # rows came back, as after RESTORE: deletion bits are never taken back, so the file comes anew
                replaced.add(name)
        gone = {name for name in have if name not in want} | replaced
        return [name for name in want if name not in have or name in replaced], changed, gone

    def _add(
        self, files: Sequence[SourceFile], columns: NumberedColumns, definition: Definition
    ) -> Mapping[str, bytes]:
        if not files:
            return {}
        missing = [one for one in files if one.found.location not in self._footers]
        for one, read in zip(missing, read_source_files(missing, self._progress), strict=True):
            self._footers[one.found.location] = read
        reads = [self._footers[one.found.location] for one in files]
        base = self._transaction.base
        if base.may_return or base.removed or self._transaction.has_changes:
            reads = placed(reads, base.version + 1)
        taken = take_files(self._source, columns, files, reads)
        if taken is None:
            return {}
        add_taken(self._transaction, taken, definition, self._stores)
        return taken.deletes


def columns_of(source: SourceTable, known: Mapping[str, int], last_id: int) -> NumberedColumns:
    """The source's columns as ours."""
    return number_columns(source.columns, known, last_id, by_ids=source.by_ids, by_names=source.by_names)


def _is_same(theirs: SourceFile, ours: ImportedFile) -> bool:
    """Whether a file is the one that was imported, as far as the source tells."""
    if theirs.etag is not None and ours.etag is not None and theirs.etag != ours.etag:
        return False
    return theirs.size_bytes is None or theirs.size_bytes == ours.size_bytes


def _check_unchanged(note: ImportNote, schema: TableSchema, have: Mapping[str, ImportedFile]) -> None:
    problems = []
    if columns_digest(schema) != note.columns:
        problems.append("its columns were changed")
    if files_digest({name: one.deletes for name, one in have.items()}) != note.files:
        problems.append("imported files were copied or removed, rows of them deleted, or other files registered")
    if problems:
        raise SourceChanged(
            f"the imported table was changed here since the last sync: {' and '.join(problems)}",
            place=note.address,
            hint=_CHANGED,
        )


def _evolved(definition: Definition, schema: TableSchema) -> Definition:
    """The definition with the source's columns. Raises Unsupported for what files here cannot follow."""
    old = from_record(definition.schema)
    if columns_digest(old) == columns_digest(schema):
        return definition
    now = schema.leaf_by_id
    problems = [
        f"Column {'.'.join(leaf.path)} was {known.type} and is {leaf.type}, which does not have all of its values."
        for ident, leaf in now.items()
        if (known := old.leaf_by_id.get(ident)) is not None
        and known.type != leaf.type
        and not is_widening_column(known.type, leaf.type)
    ]
    used = {
        *definition.key,
        *(one.field for one in definition.sort_by),
        *(one.field for one in definition.partition_by),
    }
    problems += [
        f"Column {'.'.join(old.leaf_by_id[ident].path)} was dropped, and the key, order or partitioning here needs it."
        for ident in sorted(used - now.keys())
        if ident in old.leaf_by_id
    ]
    for name, text in definition.checks.items():
        moved = [one for one in checked_columns(text, old) if _ident(old, one) != _ident(schema, one)]
        if moved:
            problems.append(f"Check {name} is about {', '.join(moved)}, which was renamed or dropped.")
    if problems:
        raise not_importable(problems, "Change the table here first (underlay alter), or import the source anew.")
    return with_fields(definition, schema=to_record(replace(schema, last_id=max(schema.last_id, old.last_id))))


def _ident(schema: TableSchema, name: str) -> int | None:
    return next((one.id for one in schema.fields if one.name == name), None)
