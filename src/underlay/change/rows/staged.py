"""Files that many processes write for one commit: what each must know, and what it gives to the one that commits."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from underlay.change.files.add_files import add_files
from underlay.change.files.rows import Rows
from underlay.change.files.writer import FileWriter, next_block
from underlay.change.rows.append import Appended, appended
from underlay.change.rows.replace_all import replace_all
from underlay.errors import RevisionClosed
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import RevisionKeys
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.store.store import Store
from underlay.table.commit.commit import put_all
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to write files for a table: its revision's folder, and the table's definition."""

    folder: str
    definition: Definition
    next_block: int


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are in the store, but that no version references yet."""

    entries: tuple[FileEntry, ...] = ()
    layouts: tuple[FileLayout, ...] = ()


def staging_for(head: Head) -> Staging:
    """How to write files for a commit on top of this version."""
    return Staging(folder=head.revision.keys.folder, definition=head.root.definition, next_block=next_block(head.root))


def stage(staging: Staging, store: Store, rows: Rows) -> Staged:
    """Put the rows into the store as new files. Raises SchemaMismatch; files put before that are unreferenced."""
    keys = RevisionKeys(staging.folder)
    writer = FileWriter(staging.definition, staging.next_block)
    entries: list[FileEntry] = []
    layouts: dict[str, FileLayout] = {}
    for file in writer.write(rows()):
        put_all(store, file.objects(keys))
        entries.append(file.entry)
        layouts[file.layout.id] = file.layout
    return Staged(entries=tuple(entries), layouts=tuple(layouts.values()))


def commit_staged(
    table: OpenTable, head: Head, staged: Iterable[Staged], *, token: str | None = None, is_overwrite: bool = False
) -> Appended:
    """Make staged files part of the table in one version, on top of `head` or a later version.

    With `is_overwrite` they replace every file that `head` had. Raises CommitConflict when a commit since `head`
    conflicts with this one (with an overwrite: any that touched rows), RevisionClosed, and CommitUnknown, after which
    the files may be part of the table. Nothing is deleted.
    """

    def prepare(transaction: Transaction) -> None:
        add_staged(transaction, staged)
        if is_overwrite:
            replace_all(transaction)

    operation = Operation.OVERWRITE if is_overwrite else Operation.APPEND
    try:
        return appended(commit_change(table, operation, prepare, token=token, base=head, can_redo=False))
    except RevisionClosed as closed:
        closed.hint = "The files were written for a revision that is closed now. Do the write again."
        raise


def discard(staging: Staging, store: Store, staged: Iterable[Staged]) -> None:
    """Delete staged files for which no commit was tried."""
    keys = RevisionKeys(staging.folder)
    names = [entry.location for one in staged for entry in one.entries]
    store.delete([key for name in names for key in (keys.file(name), keys.sidecar(name)) if key is not None])


def add_staged(transaction: Transaction, staged: Iterable[Staged]) -> None:
    """Add staged files to a transaction."""
    every = list(staged)
    layouts = {layout.id: layout for one in every for layout in one.layouts}
    add_files(transaction, [entry for one in every for entry in one.entries], layouts.values())
