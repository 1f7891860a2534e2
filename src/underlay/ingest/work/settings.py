"""What a user says about an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from underlay.change.define.define import SchemaLike
from underlay.errors import InvalidRequest
from underlay.ingest.exactly_once.ledger import POLICIES, Policy
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat
from underlay.store.open import Option

NewColumnsPolicy = Literal["error", "ignore", "add"]
"""What becomes of columns of a source that the table does not have: the source fails, or they are left out or added."""
NEW_COLUMNS: tuple[NewColumnsPolicy, ...] = ("error", "ignore", "add")
TTL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """How many rows may be rejected: so many, or such a part of the rows that were read."""

    rows: int | None = None
    fraction: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """`1000` rows, or `5%` of them. Raises InvalidRequest."""
        number = text.strip().removesuffix("%")
        try:
            found = cls(fraction=float(number) / 100) if text.strip().endswith("%") else cls(rows=int(number))
        except ValueError:
            found = cls(rows=-1)
        if (found.rows or 0) < 0 or not 0 <= (found.fraction or 0.0) <= 1:
            raise InvalidRequest("not a number of rejected rows", found=text, expected="such as 1000 or 5%")
        return found

    def is_exceeded(self, rejected: int, read: int) -> bool:
        """Whether so many rejected rows, of so many that were read, are too many."""
        if self.rows is not None:
            return rejected > self.rows
        return self.fraction is not None and rejected > self.fraction * read

    def __str__(self) -> str:
        return f"{self.rows} rows" if self.rows is not None else f"{100 * (self.fraction or 0.0):g}% of the rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to ingest and how. Raises InvalidRequest for what is not known or contradicts itself."""

    sources: tuple[str, ...]
    """Paths, patterns and URLs, as `find.find_sources` takes them."""
    store_options: Mapping[str, Option] = field(default_factory=dict)
    """Of the stores of remote sources."""
    kind: FileFormat | None = None
    """What the sources are; without it, each one's name says so."""
    dialect: Dialect = field(default_factory=Dialect)
    columns: SchemaLike | None = None
    """Of a table that is created; without them they are inferred."""
    changed: Policy = "error"
    new_columns: NewColumnsPolicy = "error"
    has_source_column: bool = False
    """Whether a table that is created has the column `_source`; it does anyway when changed sources are replaced."""
    max_rejected: Threshold | None = None
    """More rejected rows than that fail the run."""
    retry_failed: bool = False
    waits: bool = True
    """For sources that another run, which lives, has claimed."""
    may_be_none: bool = False
    """Whether a pattern may match nothing."""
    batch_sources: int = 1000
    batch_bytes: int = 4 << 30
    """What one claim and one commit take at most; a source is never divided."""
    ttl_seconds: float = TTL_SECONDS

    def __post_init__(self) -> None:
        if isinstance(self.sources, str) or not self.sources:
            raise InvalidRequest("name at least one source", found=repr(self.sources))
        if self.changed not in POLICIES:
            raise InvalidRequest("not a policy for changed sources", expected=", ".join(POLICIES), found=self.changed)
        if self.new_columns not in NEW_COLUMNS:
            expected = ", ".join(NEW_COLUMNS)
            raise InvalidRequest("not a policy for new columns", expected=expected, found=self.new_columns)
        if self.batch_sources < 1 or self.batch_bytes < 1:
            raise InvalidRequest("a batch takes at least one source and one byte")
