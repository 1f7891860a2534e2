"""The settings of an ingest: one value, made from keywords at the edge and passed down unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypedDict, Unpack, get_args

import msgspec
import xxhash

from underlay.change.define.define import SchemaLike
from underlay.change.register.find_files import path_text
from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import RECORD_BYTES, ChangedPolicy, Dialect, NewColumnsPolicy
from underlay.ingest.source.file_format import FileFormat
from underlay.schema.record import SchemaRecord
from underlay.store.open import Option

Sources = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One or several paths, patterns or URLs."""
TTL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """How many rows may be rejected: a number of rows, or a fraction of those read."""

    rows: int | None = None
    fraction: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1000` (rows) or `5%` (of them). Raises InvalidRequest."""
        number = text.strip().removesuffix("%")
        try:
            found = cls(fraction=float(number) / 100) if text.strip().endswith("%") else cls(rows=int(number))
        except ValueError:
            found = cls(rows=-1)
        if (found.rows or 0) < 0 or not 0 <= (found.fraction or 0.0) <= 1:
            raise InvalidRequest("not a limit for rejected rows", found=text, expected="such as 1000 or 5%")
        return found

    def is_exceeded(self, rejected: int, read: int) -> bool:
        """Whether this many rejected rows, of all that were read, are too many."""
        if self.rows is not None:
            return rejected > self.rows
        return self.fraction is not None and rejected > self.fraction * read

    def __str__(self) -> str:
        return f"{self.rows} rows" if self.rows is not None else f"{100 * (self.fraction or 0.0):g}% of the rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to ingest and how. Made by `make_settings`. Raises InvalidRequest for an invalid value."""

    sources: tuple[str, ...]
    """Paths, patterns and URLs for `find.find_sources`."""
    store_options: Mapping[str, Option] = field(default_factory=dict, repr=False)
    """Options of the stores of remote sources."""
    kind: FileFormat | None = None
    """The format of all sources; by default each one's extension decides."""
    dialect: Dialect = field(default_factory=Dialect)
    columns: SchemaLike | None = None
    """Columns of a table to create; inferred if missing."""
    changed: ChangedPolicy = "error"
    new_columns: NewColumnsPolicy = "error"
    hive: bool = True
    """Whether folders such as `year=2024` become columns."""
    has_source_column: bool = False
    """Whether a table to create gets the column `_source`; with `changed="replace"` it always does."""
    max_rejected: Threshold | None = None
    """The run fails when it rejects more rows."""
    retry_failed: bool = False
    again: tuple[str, ...] = ()
    """Paths, patterns and URLs of sources that are read again, whatever the table knows of them."""
    waits: bool = True
    """Whether to wait for sources that another live run has claimed."""
    may_be_none: bool = False
    """Whether a pattern may match nothing."""
    record_bytes: int = RECORD_BYTES
    """A longer record of CSV or JSON is rejected."""
    batch_sources: int = 1000
    batch_bytes: int = 4 << 30
    """At most this much is taken by one claim and one commit; a source is never split."""
    ttl_seconds: float = TTL_SECONDS

    def __post_init__(self) -> None:
        if isinstance(self.sources, str) or not (self.sources or self.again):
            raise InvalidRequest("name at least one source", found=repr(self.sources))
        _check_policy("changed", self.changed, get_args(ChangedPolicy))
        _check_policy("new_columns", self.new_columns, get_args(NewColumnsPolicy))
        if self.batch_sources < 1 or self.batch_bytes < 1:
            raise InvalidRequest("a batch takes at least one source and one byte")
        if self.record_bytes < 1:
            raise InvalidRequest("a record has at least one byte", found=self.record_bytes)

    def fingerprint(self, schema: SchemaRecord) -> str:
        """Identifies how sources are read: it differs for other options and other columns."""
        facts = (self.kind, self.dialect, self.new_columns, self.hive, self.record_bytes, schema)
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(facts))


class Options(TypedDict, total=False):
    """The keywords of an ingest: the fields of `Settings` but `sources`, in forms that are easy to write."""

    store_options: Mapping[str, Option]
    kind: str | FileFormat | None
    """For example `csv`."""
    dialect: Dialect | Mapping[str, Any]
    """For example `{"delimiter": ";"}`."""
    columns: SchemaLike | None
    changed: ChangedPolicy
    new_columns: NewColumnsPolicy
    hive: bool
    has_source_column: bool
    max_rejected: int | str | Threshold | None
    """For example 1000 or `5%`."""
    retry_failed: bool
    again: Sources
    waits: bool
    may_be_none: bool
    record_bytes: int
    batch_sources: int
    batch_bytes: int
    ttl_seconds: float


def make_settings(sources: Sources | Settings, **options: Unpack[Options]) -> Settings:
    """Make settings from these keywords, or given settings with these options replaced. Raises InvalidRequest."""
    made: dict[str, Any] = {**options}
    if "kind" in made:
        made["kind"] = _kind(made["kind"])
    if "dialect" in made:
        made["dialect"] = _dialect(made["dialect"])
    if made.get("max_rejected") is not None and not isinstance(made["max_rejected"], Threshold):
        made["max_rejected"] = Threshold.parse(str(made["max_rejected"]))
    if "again" in made:
        made["again"] = _paths(made["again"])
    if isinstance(sources, Settings):
        return replace(sources, **made)
    return Settings(sources=_paths(sources), **made)


def _paths(sources: Sources) -> tuple[str, ...]:
    named = [sources] if isinstance(sources, str | os.PathLike) or not isinstance(sources, Iterable) else [*sources]
    return tuple(map(path_text, named))


def _kind(kind: str | FileFormat | None) -> FileFormat | None:
    try:
        return None if kind is None else FileFormat(str(kind).lower())
    except ValueError:
        raise InvalidRequest("not a format of sources", found=kind, expected=", ".join(FileFormat)) from None


def _dialect(given: object) -> Dialect:
    if isinstance(given, Dialect):
        return given
    known = [one.name for one in fields(Dialect)]
    if not isinstance(given, Mapping) or not set(given) <= set(known):
        expected = f"a Dialect, or a mapping with some of {', '.join(known)}"
        raise InvalidRequest("not a dialect of CSV", found=repr(given), expected=expected)
    words = dict(given)
    for name in ("nulls", "columns"):
        if name in words:
            words[name] = (words[name],) if isinstance(words[name], str) else tuple(words[name])
    return Dialect(**words)


def _check_policy(name: str, found: str, known: tuple[str, ...]) -> None:
    if found not in known:
        raise InvalidRequest(f"not a value of {name}", found=found, expected=", ".join(known))
