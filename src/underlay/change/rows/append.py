"""New rows for a table, in process: written as files of their own, then committed at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from underlay.change.files.add_files import add_files
from underlay.change.files.rows import Rows, read_rows
from underlay.change.files.writer import FileWriter, NewFile, next_block
from underlay.errors import InvalidRequest, RevisionClosed
from underlay.index.change import TOKEN
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.table.commit.commit import commit, put_all
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable

HELD_BYTES = 64 << 20
"""New files wait for the commit, to be put side by side, until they have so many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append did. `is_repeat`: its token was committed before, in this version, and nothing was added now."""

    version: int
    row_count: int
    file_count: int
    is_repeat: bool = False


def append(table: OpenTable, data: object, *, token: str | None = None) -> Appended:
    """Add the rows of `data` (see `rows.read_rows`), all or none.

    With a token, rows are added once however often this is called with it. No rows make no version. Raises
    SchemaMismatch, CommitUnknown (then call it again with the same token), CommitConflict.
    """
    rows = read_rows(data)
    while True:
        head = table.head()
        try:
            return _append(table, head, rows, token)
        except RevisionClosed as closed:
            table.follow(closed)


def _append(table: OpenTable, head: Head, rows: Rows, token: str | None) -> Appended:
    known = find_token(table, head, token)
    if known is not None:
        return known
    prepared: list[Transaction] = []

    def prepare(base: Root) -> Transaction:
        prepared.append(begin_with_token(table, Head(head.revision, base), Operation.APPEND, token))
        add_rows(prepared[-1], rows)
        return prepared[-1]

    transaction = prepare(head.root)
    if transaction.is_empty:
        return Appended(version=head.root.version, row_count=0, file_count=0)
    root = commit(transaction, redo=prepare)
    return committed(prepared[-1], root)


def find_token(table: OpenTable, head: Head, token: str | None) -> Appended | None:
    """The commit that had this token, if there is one. Raises InvalidRequest for a token that is no text."""
    if not isinstance(token, str | None):
        raise InvalidRequest("a token is text", found=repr(token))
    known = None if token is None else table.snapshot(head).find_sources([TOKEN + token]).get(TOKEN + token)
    return None if known is None else Appended(version=known.version, row_count=0, file_count=0, is_repeat=True)


def begin_with_token(table: OpenTable, head: Head, operation: Operation, token: str | None) -> Transaction:
    """A transaction that is committed once with this token."""
    transaction = table.begin(head, operation)
    if token is not None:
        transaction.set_token(token)
    return transaction


def committed(transaction: Transaction, root: Root) -> Appended:
    """What the commit of a transaction did, `root` being what `commit` returned."""
    if not transaction.is_empty and not transaction.is_in(root):
        return Appended(version=root.version, row_count=0, file_count=0, is_repeat=True)
    counts = root.counts
    return Appended(
        version=root.version, row_count=counts.get("rows_added", 0), file_count=counts.get("files_added", 0)
    )


def add_rows(transaction: Transaction, rows: Rows) -> None:
    """Write the rows as files, and add these. Files are put once many wait for it, else by the commit."""
    base, revision = transaction.base, transaction.revision
    writer = FileWriter(base.definition, next_block(base))
    files: list[NewFile] = []
    held = 0
    for file in writer.write(rows()):
        transaction.objects |= file.objects(revision.keys)
        files.append(replace(file, data=b"", sidecar=b""))
        held += len(file.data)
        if held >= HELD_BYTES:
            put_all(revision.store, transaction.objects)
            transaction.objects.clear()
            held = 0
    add_files(transaction, [file.entry for file in files], {file.layout.id: file.layout for file in files}.values())
