"""How a source is read for a table, and what comes of it: rows, and rows that do not fit with their reasons.

A null in CSV is an empty unquoted field, or one of the null texts, unquoted. A key that a JSON object lacks is the
column's default, or null. Loads no library that reads data: the command line declares its options by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from underlay.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from underlay.schema.table_schema import TableSchema

ChangedPolicy = Literal["error", "skip", "replace"]
"""What happens to a source whose content differs from what was ingested: it fails the run, its rows stay, or its new
rows replace the old ones."""
NewColumnsPolicy = Literal["error", "ignore", "add"]
"""What happens to columns that the table does not have: their source fails, or they are left out or added."""

BLOCK_BYTES = 2 << 20
RECORD_BYTES = 16 << 20
RAW_BYTES = 4 << 10
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How CSV is written. The default delimiter is the one of `,` `;` `|` and tab that the header has most of.

    Raises InvalidRequest for a delimiter or quote that is not one ASCII character, or when both are the same.
    """

    delimiter: str | None = None
    quote: str | None = '"'
    has_header: bool = True
    """Without one, the columns are the table's in their order, but the source column."""
    nulls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n"):
                raise InvalidRequest(f"the {what} of CSV must be one ASCII character", found=repr(mark))
        if self.delimiter is not None and self.delimiter == self.quote:
            raise InvalidRequest("the delimiter and the quote of CSV are the same", found=repr(self.quote))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The table that rows are read for, and what is let through."""

    schema: TableSchema
    dialect: Dialect = field(default_factory=Dialect)
    new_columns: NewColumnsPolicy = "error"
    """A column to be added is an error as well: it is added before the source is read again."""
    source_column: str | None = None
    """The column that is filled with the source's name, whatever the source has."""
    block_bytes: int = BLOCK_BYTES
    record_bytes: int = RECORD_BYTES
    """A longer record is rejected without being held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that does not fit the table. `raw` is cut at RAW_BYTES.

    `line` counts from 1, the header included; of Parquet it is the row's number. `offset` is a byte of the plain
    source, decompressed; None for Parquet.
    """

    line: int
    offset: int | None
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRows:
    """Rows with the schema of the table in the order of the source, and the records between them that do not fit."""

    rows: pa.Table
    rejected: tuple[Rejected, ...]
    read_bytes: int
    """How much of the source, as it is stored, is read by now."""


def shown(value: object) -> str:
    """A value for messages, cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
