"""A table of another system at one version: its columns, and files with constants and deleted rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from underlay.change.register.find_files import FoundFile
from underlay.change.register.read_footers import ReadFile
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_columns import SourceColumns
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.table_schema import TableSchema

Values = tuple[tuple[int, AnyScalar | None], ...]
"""Values of all rows of a file, by provisional field id; None for null."""


class SourceMark(NamedTuple):
    """A version. `stamp` identifies the version's own metadata, so that another history with the same numbers is
    noticed; None when the source no longer tells."""

    version: int
    stamp: str | None


class ConstantRule(Enum):
    """What holds when a file has a column that is constant by the source's metadata."""

    REPLACES = "the constant"
    FILLS = "the file's values"
    EQUALS = "both, which must be equal by the file's statistics"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of the table. `deletes` identifies its deleted rows, which are read only when needed."""

    found: FoundFile
    size_bytes: int | None = None
    etag: str | None = None
    values: Values = ()
    deletes: str | None = None


LoadDeletes = Callable[[Sequence[SourceFile]], Mapping[str, bytes]]
"""Reads the deleted rows of files that have some: packed bitmaps by the files' locations."""


@dataclass(frozen=True, kw_only=True)
class SourceTable:
    """One version of a table."""

    table_id: str
    mark: SourceMark
    columns: SourceColumns
    partition_by: tuple[str, ...] = ()
    """Columns whose values are constants of each file."""
    files: Sequence[SourceFile]
    constants: ConstantRule
    by_ids: bool
    """Whether field ids in files say which column is which."""
    by_names: bool
    load_deletes: LoadDeletes
    comment: str | None = None
    reads: Mapping[str, ReadFile] = field(default_factory=dict)
    """Footers that were read already, by location."""


class TableSource(Protocol):
    """Where a table of another system is, as it was when this was made."""

    kind: str
    url: str

    def newest(self) -> SourceMark:
        """The newest version. Few requests."""

    def contradiction(self, known: SourceMark) -> str | None:
        """Why the newest version does not come after a version that was imported; None if it does, as far as the
        source still tells."""

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """The newest version, whole, for a table that has these files and columns.

        Raises Unsupported with all reasons why it cannot be a table of ours.
        """
