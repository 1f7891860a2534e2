"""New rows for a table, in process: written as files of their own, then committed at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from underlay.change.add_files import add_files
from underlay.change.files import FileWriter, NewFile
from underlay.change.rows import Rows, read_rows
from underlay.errors import RevisionClosed
from underlay.index.change import TOKEN
from underlay.index.keys import RevisionKeys
from underlay.index.root import Root
from underlay.table.commit import commit, put_all
from underlay.table.opened import Head, OpenTable
from underlay.table.transaction import Transaction

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
    if token is not None:
        known = table.snapshot(head).find_sources([TOKEN + token]).get(TOKEN + token)
        if known is not None:
            return Appended(version=known.version, row_count=0, file_count=0, is_repeat=True)

    prepared: list[Transaction] = []

    def prepare(base: Root) -> Transaction:
        prepared.append(_prepare(table, Head(head.revision, base), rows, token))
        return prepared[-1]

    transaction = prepare(head.root)
    if transaction.is_empty:
        return Appended(version=head.root.version, row_count=0, file_count=0)
    root = commit(transaction, redo=prepare)
    if not prepared[-1].is_in(root):
        return Appended(version=root.version, row_count=0, file_count=0, is_repeat=True)
    counts = root.counts
    return Appended(version=root.version, row_count=counts["rows_added"], file_count=counts["files_added"])


def _prepare(table: OpenTable, head: Head, rows: Rows, token: str | None) -> Transaction:
    transaction = table.begin(head, "append")
    if token is not None:
        transaction.set_token(token)
    blocks = sum(ref.block_count for ref in head.root.segments) + len(head.root.tail)
    writer = FileWriter(head.root.definition, blocks)
    files: list[NewFile] = []
    held = 0
    for run in rows():
        for file in writer.write(run):
            transaction.objects |= _objects(head.revision.keys, file)
            files.append(replace(file, data=b"", sidecar=b""))
            held += len(file.data)
            if held >= HELD_BYTES:
                put_all(head.revision.store, transaction.objects)
                transaction.objects.clear()
                held = 0
    add_files(transaction, [file.entry for file in files], {file.layout.id: file.layout for file in files}.values())
    return transaction


def _objects(keys: RevisionKeys, file: NewFile) -> dict[str, bytes]:
    location = file.entry.location
    key = keys.file(location)
    if key is None:
        raise AssertionError(f"a new file lies elsewhere: {location}")
    return {key: file.data, keys.sidecar(location): file.sidecar}
