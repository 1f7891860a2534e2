"""The rows of one source, read once from its beginning to its end, and what is rejected of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from underlay.errors import SourceEmpty, SourceUnreadable
from underlay.ingest.rows.reading import Rejected, RowRules, TakenRows
from underlay.ingest.source.file_format import kind_of
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.read_source import read_source
from underlay.ingest.work.work_unit import WorkUnit

REJECTED_ROWS = 200_000
REJECTED_BYTES = 64 << 20
"""What is kept of a source's rejected rows at most. One with more of them is not what it was taken for."""


class SourceRows:
    """Reads a source. `row_count` and `rejected` are of what was read until now."""

    def __init__(self, found: Source, work: WorkUnit, reading: RowRules, advance: Callable[[int], None] | None) -> None:
        self.row_count = 0
        self.rejected: list[Rejected] = []
        self.has_too_many_rejected = False
        self._found = found
        self._work = work
        self._reading = reading
        self._advance = advance
        self._told_bytes = 0
        self._raw_bytes = 0

    def tables(self) -> Iterator[pa.Table]:
        """The rows, some at a time. A source without a byte has none. Raises what `read_source` does."""
        uri = self._found.uri
        kind = self._work.kind or kind_of(uri)
        with open_pinned(self._found, self._work.store_options) as file:
            try:
                for taken in read_source(file, kind, self._reading, name=uri):
                    self._keep(taken)
                    yield taken.rows
            except SourceEmpty:
                return
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
                raise SourceUnreadable("cannot be read", place=uri, found=str(error).strip()) from error

    def tell_rest(self) -> None:
        """Say of all bytes that were not read that they are done with."""
        self._tell(self._found.size_bytes)

    def _keep(self, taken: TakenRows) -> None:
        self.row_count += taken.rows.num_rows
        self.rejected += taken.rejected
        self._raw_bytes += sum(len(one.raw) for one in taken.rejected)
        if len(self.rejected) > REJECTED_ROWS or self._raw_bytes > REJECTED_BYTES:
            self.has_too_many_rejected = True
            first = self.rejected[0]
            raise SourceUnreadable(
                f"{len(self.rejected)} rows do not fit the table, with {self.row_count} that do, and there are more",
                place=f"{self._found.uri}, line {first.line}",
                found=first.reason,
                hint="See whether delimiter, header and columns are what they should be.",
            )
        self._tell(taken.read_bytes)

    def _tell(self, read_bytes: int) -> None:
        if self._advance is not None and read_bytes > self._told_bytes:
            self._advance(read_bytes - self._told_bytes)
            self._told_bytes = read_bytes
