"""What a user says about an ingest in Python, as keywords."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypedDict, Unpack

from underlay.change.define.define import SchemaLike
from underlay.change.register.find_files import path_text
from underlay.errors import InvalidRequest
from underlay.ingest.exactly_once.ledger import Policy
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.settings import NewColumnsPolicy, Settings, Threshold
from underlay.store.open import Option

Sources = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path, pattern or URL, or several."""


class PlainOptions(TypedDict, total=False):
    """Fields of `Settings`."""

    store_options: Mapping[str, Option]
    dialect: Dialect
    columns: SchemaLike | None
    changed: Policy
    new_columns: NewColumnsPolicy
    has_source_column: bool
    retry_failed: bool
    waits: bool
    may_be_none: bool
    batch_sources: int
    batch_bytes: int
    ttl_seconds: float


class Options(PlainOptions, total=False):
    """The fields of `Settings` but the sources, in forms that are easy to write."""

    kind: str | FileFormat | None
    """Such as `csv`."""
    max_rejected: int | str | Threshold | None
    """Such as 1000 or `5%`."""


def read_options(
    sources: Sources,
    *,
    kind: str | FileFormat | None = None,
    max_rejected: int | str | Threshold | None = None,
    **options: Unpack[PlainOptions],
) -> Settings:
    """The settings that these words mean. Raises InvalidRequest."""
    named = [sources] if isinstance(sources, str | os.PathLike) or not isinstance(sources, Iterable) else [*sources]
    if max_rejected is not None and not isinstance(max_rejected, Threshold):
        max_rejected = Threshold.parse(str(max_rejected))
    return Settings(
        sources=tuple(map(path_text, named)),
        kind=_kind(kind) if isinstance(kind, str) else kind,
        max_rejected=max_rejected,
        **options,
    )


def _kind(name: str) -> FileFormat:
    try:
        return FileFormat(name.lower())
    except ValueError:
        raise InvalidRequest("not a format of sources", found=name, expected=", ".join(FileFormat)) from None
