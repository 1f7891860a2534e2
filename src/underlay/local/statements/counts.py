"""What a statement did, as the row that it returns: the version, and counts by Delta Lake's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from underlay.change.rows.append import Appended
from underlay.change.update.result import Changed
from underlay.local.statements.lake import StatementLake

_SCHEMA = pa.schema(
    [
        ("num_affected_rows", pa.int64()),
        ("num_updated_rows", pa.int64()),
        ("num_deleted_rows", pa.int64()),
        ("num_inserted_rows", pa.int64()),
        ("version", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCounts:
    """The counts of changed rows, and the table's version afterwards; None for a dropped table."""

    version: int | None
    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @classmethod
    def of(cls, done: Changed, name: Callable[[], str], lake: StatementLake) -> StatementCounts:
        """The counts of what a verb did to a table; for a repeated token those of the commit that did it.

        Only a repeat asks for the table's name: a request that is lost after a commit must not look like its failure.
        """
        if done.is_repeat:
            counts = lake.counts_of(name(), done.version)
            return cls(
                version=done.version,
                updated=counts.get("rows_updated", 0),
                deleted=counts.get("rows_deleted", 0),
                inserted=counts.get("rows_inserted", 0),
            )
        return cls(
            version=done.version,
            updated=done.rows_updated,
            deleted=done.rows_deleted,
            inserted=done.rows_inserted,
        )

    @classmethod
    def of_insert(cls, done: Appended, name: str, lake: StatementLake) -> StatementCounts:
        """The same for an INSERT."""
        rows = lake.counts_of(name, done.version).get("rows_added", 0) if done.is_repeat else done.row_count
        return cls(version=done.version, inserted=rows)

    def to_arrow(self) -> pa.Table:
        """One row."""
        affected = self.updated + self.deleted + self.inserted
        row = (affected, self.updated, self.deleted, self.inserted, self.version)
        return pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True))], schema=_SCHEMA)
