"""What a statement did, as the row that it returns: the version, and counts by Delta Lake's names."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from underlay.change.update.result import Changed

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
    def of(cls, done: Changed) -> StatementCounts:
        """The counts of what a verb did."""
        return cls(
            version=done.version,
            updated=done.rows_updated,
            deleted=done.rows_deleted,
            inserted=done.rows_inserted,
        )

    def to_arrow(self) -> pa.Table:
        """One row."""
        affected = self.updated + self.deleted + self.inserted
        row = (affected, self.updated, self.deleted, self.inserted, self.version)
        return pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True))], schema=_SCHEMA)
