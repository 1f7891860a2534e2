"""Streams appends to a table in batches of limited size, which Spark supports from 4.2 on."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from underlay.errors import Unsupported
from underlay.index.root import Root
from underlay.scan.changes.appended import Limit
from underlay.spark.stream.read import Offset, StreamReader

MOST_FILES = 1000
"""The default limit of files in a batch, as in Delta."""


class LimitedReader(StreamReader, SupportsTriggerAvailableNow):
    """Reads as much at once as an option says; with the trigger `availableNow`, only what existed when it began."""

    _target: Root | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """The limit from the options."""
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadMaxFiles(self._options.max_files or MOST_FILES)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Read no further than what exists now."""
        self._target = self._newest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802  # Spark's
        """How far the next batch goes."""
        return self.advance(start, self._target or self._newest(), _limit(limit))

    def reportLatestOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """How far rows are available."""
        return super().latestOffset()


def _limit(limit: ReadLimit) -> Limit:
    match limit:
        case ReadAllAvailable():
            return Limit()
        case ReadMaxFiles(max_files=files):
            return Limit(files=files)
        case ReadMaxBytes(max_bytes=size):
            return Limit(size_bytes=size)
    raise Unsupported("this limit is not supported for a stream of a table", found=limit)
