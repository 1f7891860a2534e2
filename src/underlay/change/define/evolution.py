"""Changes a table's definition: several at once (`with table.evolve() as change: …`), or one alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self

import pyarrow as pa
from msgspec.structs import replace

from underlay.change.define import edit_definition as edits
from underlay.change.define.check_data import DataCheck, check_data
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.index.operation import Operation
from underlay.index.root import Definition, Root
from underlay.schema.convert.new_fields import lacking, with_new_fields
from underlay.schema.record import from_record, to_record
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable

Step = Callable[[Definition], Definition]


class Evolution:
    """Changes of a table's columns, key, order, partitions, checks, properties and comments.

    Each is checked when it is made; all are committed as one version when the `with` block ends, and none when it ends
    with an error. No data file is rewritten: columns are found by id, and files stay as they were written. Names of
    fields in structs are paths, `pos.x`; those of list items end in `.element`, of map parts in `.key` and `.value`.
    """

    def __init__(self, table: OpenTable, check: DataCheck) -> None:
        self._table = table
        self._check = check
        self._steps: list[Step] = []
        self._draft: Definition = table.head().root.definition
        self._is_begun = False
        self._is_over = False
        self.result: Changed | None = None
        """What was committed, once the block has ended; the version is the old one when nothing changed."""

    def add_column(
        self,
        name: str,
        type: object,
        default: object = None,
        comment: str | None = None,
        after: str | None = None,
    ) -> None:
        """Add a column, last or after another; existing rows have the default in it.

        `type` is text as in SQL (`double`, `decimal(10, 2)`, `struct<x: int>`, `int not null`), or an Arrow type.
        """
        self._do(partial(edits.add_column, name=name, type_=type, default=default, comment=comment, after=after))

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column. `new` is only the name, even for a field in a struct."""
        self._do(partial(edits.rename_column, old=old, new=new))

    def drop_column(self, name: str) -> None:
        """Remove a column. A column added later under this name is a new one, and has none of its values."""
        self._do(partial(edits.drop_column, name=name))

    def widen_column(self, name: str, type: object) -> None:
        """Give a column a wider type: a longer integer, a double, more digits, a timestamp for a date, a finer unit."""
        self._do(partial(edits.widen_column, name=name, type_=type))

    def move_column(self, name: str, after: str | None = None) -> None:
        """Move a column after another one, or before all."""
        self._do(partial(edits.move_column, name=name, after=after))

    def make_nullable(self, name: str) -> None:
        """Allow nulls in a column."""
        self._do(partial(edits.set_required, name=name, is_required=False))

    def make_required(self, name: str) -> None:
        """Forbid nulls in a column. Raises SchemaMismatch at the end of the block when there are some."""
        self._do(partial(edits.set_required, name=name, is_required=True))

    def set_key(self, columns: Sequence[str]) -> None:
        """Set the key: the columns that upserts match rows by."""
        self._do(partial(edits.set_key, columns=columns))

    def set_sort_by(self, columns: Sequence[str]) -> None:
        """Set the order of rows in new files."""
        self._do(partial(edits.set_sort_by, columns=columns))

    def set_partition_by(self, columns: Sequence[str]) -> None:
        """Set the partitioning of new files; existing files keep theirs, and are pruned by it."""
        self._do(partial(edits.set_partition_by, columns=columns))

    def add_check(self, name: str, condition: str) -> None:
        """Add a condition that must be true, or null, for every row, existing and new."""
        self._do(partial(edits.add_check, name=name, text=condition))

    def drop_check(self, name: str) -> None:
        """Remove a check."""
        self._do(partial(edits.drop_check, name=name))

    def set_property(self, name: str, value: str | int) -> None:
        """Set a property."""
        self._do(partial(edits.set_property, name=name, value=value))

    def drop_property(self, name: str) -> None:
        """Remove a property, so that its default counts."""
        self._do(partial(edits.set_property, name=name, value=None))

    def set_comment(self, text: str | None, column: str | None = None) -> None:
        """Set the comment of the table, or of a column; None removes it."""
        self._do(partial(edits.set_comment, text=text, column=column))

    def begin(self) -> Self:
        """Accept changes from now on, even without a block. Each is checked; only the end of a block commits."""
        self._is_begun = True
        return self

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if error is None:
            done = commit_change(self._table, Operation.EVOLVE, self._prepare)
            self.result = Changed(version=done.version)

    def _do(self, step: Step) -> None:
        if not self._is_begun:
            raise InvalidRequest(
                "changes of a table are made in a block, and committed when it ends",
                hint="Write: with table.evolve() as change: change.add_column(…).",
            )
        if self._is_over:
            raise InvalidRequest("this change of the table is over", hint="Begin another one with table.evolve().")
        self._draft = step(self._draft)
        self._steps.append(step)

    def _prepare(self, transaction: Transaction) -> None:
        base = transaction.base.definition
        definition = base
        for step in self._steps:
            definition = step(definition)
        if definition == base:
            return
        if check_data(self._check, transaction.snapshot, definition):
            transaction.rely_on(ReadSet(is_whole=True))
        transaction.set_definition(definition)


def add_columns(table: OpenTable, columns: pa.Schema) -> Head:
    """Add these columns after the others, and new fields to known columns, null in existing rows. Known columns and
    fields stay as they are.

    Raises SchemaMismatch for invalid names, Unsupported for types that tables do not have, RevisionClosed.
    """

    def prepare(transaction: Transaction) -> None:
        definition = transaction.base.definition
        known = from_record(definition.schema)
        if len(lacking(columns, known)):
            schema = to_record(with_new_fields(known, columns))
            transaction.set_definition(replace(definition, schema=schema))

    return commit_change(table, Operation.ADD_COLUMNS, prepare, base=table.head()).head


def set_comment(table: OpenTable, text: str | None, column: str | None = None) -> Root:
    """Commit a version in which the table, or a column, has this comment. Raises UnknownColumn."""

    def prepare(transaction: Transaction) -> None:
        transaction.set_definition(edits.set_comment(transaction.base.definition, text, column))

    return commit_change(table, Operation.COMMENT, prepare).head.root
