"""Appends rows to a table, in this process: writes them as new files, then commits these together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from underlay.change.files.add_files import add_files
from underlay.change.files.rows import Rows, read_rows
from underlay.change.files.writer import FileWriter, NewFile, next_block
from underlay.index.operation import Operation
from underlay.schema.cast.conform import conform
from underlay.table.commit.commit import put_all
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import Committed, commit_change, version_of_token
from underlay.table.open_table import Head, OpenTable

HELD_BYTES = 64 << 20
"""New files are held until the commit, which puts them in parallel; beyond this size they are put at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of an append. `is_repeat`: its token was committed before, in this version, and nothing was added
    now."""

    version: int
    row_count: int
    file_count: int
    is_repeat: bool = False


def append(table: OpenTable, data: object, *, token: str | None = None) -> Appended:
    """Add the rows of `data` (see `rows.read_rows`), all or none.

    With a token, rows are added once however often this is called with it. Without rows there is no new version. Raises
    SchemaMismatch, CommitUnknown (then call it again with the same token), CommitConflict.
    """
    rows = read_rows(data)
    done = commit_change(table, Operation.APPEND, partial(add_rows, rows=rows), token=token)
    return appended(done)


def append_read(
    table: OpenTable,
    read: Callable[[int], object],
    *,
    is_of_table: bool,
    then: Callable[[pa.Table], object] | None = None,
    token: str | None = None,
) -> Appended:
    """Add the rows that `read` finds for the version that they are added to, all or none.

    `is_of_table`: the rows depend on those of that version, so they are read again when other commits come first.
    `then` gets the rows as the table will have them, before the commit. With a token, rows are added once. Raises
    SchemaMismatch, CommitUnknown, CommitConflict, and what `read` and `then` raise.
    """

    def prepare(transaction: Transaction) -> None:
        if is_of_table:
            transaction.rely_on(ReadSet(is_whole=True))
        rows = read_rows(read(transaction.base.version))
        if then is not None:
            whole = pa.concat_tables(conform(run, transaction.snapshot.schema) for run in rows())
            rows = read_rows(whole)
        add_rows(transaction, rows)
        if then is not None:
            then(whole)

    return appended(commit_change(table, Operation.APPEND, prepare, token=token))


def find_token(table: OpenTable, head: Head, token: str | None) -> Appended | None:
    """The result for a caller that repeats this token; None if the token was not committed. Raises InvalidRequest."""
    known = version_of_token(table, head, token)
    return None if known is None else Appended(version=known, row_count=0, file_count=0, is_repeat=True)


def appended(done: Committed) -> Appended:
    """The result of a change that adds rows."""
    counts = done.head.root.counts if done.is_new else {}
    return Appended(
        version=done.version,
        row_count=counts.get("rows_added", 0),
        file_count=counts.get("files_added", 0),
        is_repeat=done.is_repeat,
    )


def add_rows(transaction: Transaction, rows: Rows, *, is_dry: bool = False) -> int:
    """Write the rows as files and add them; returns their bytes, with those of sidecars.

    The commit puts the files, except where they take too much memory. `is_dry`: nothing is put, now or later.
    """
    base, revision = transaction.base, transaction.revision
    writer = FileWriter(base.definition, next_block(base))
    files: list[NewFile] = []
    held = size_bytes = 0
    for file in writer.write(rows()):
        size_bytes += len(file.data) + len(file.sidecar)
        files.append(replace(file, data=b"", sidecar=b""))
        if is_dry:
            continue
        transaction.objects |= file.objects(revision.keys)
        held += len(file.data)
        if held >= HELD_BYTES:
            put_all(revision.store, transaction.objects)
            transaction.objects.clear()
            held = 0
    add_files(transaction, [file.entry for file in files], {file.layout.id: file.layout for file in files}.values())
    return size_bytes
