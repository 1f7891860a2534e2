"""A unit of work, the sources that one worker reads, and its result. Both travel as bytes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from underlay.change.rows.staged import Staged, Staging
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome
from underlay.ingest.rows.reading import RECORD_BYTES, Dialect, NewColumnsPolicy
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.source.source import Source
from underlay.store.open import Option


class WorkUnit(msgspec.Struct, frozen=True, kw_only=True):
    """Sources to read, and how. `encode` and `decode_work` convert it to bytes and back."""

    run: str
    """The id of the run that owns the claims."""
    at_us: int
    """The time of reading, for the records of rejected rows."""
    sources: tuple[Source, ...]
    kind: FileFormat | None = None
    """The format of all sources; by default each one's extension decides."""
    staging: Staging
    dialect: Dialect = msgspec.field(default_factory=Dialect)
    new_columns: NewColumnsPolicy = "error"
    source_column: str | None = None
    record_bytes: int = RECORD_BYTES
    fingerprint: str | None = None
    """The fingerprint of the options, for the records of failed sources."""
    hive: bool = True
    """Whether folders such as `year=2024` become columns."""
    store_options: dict[str, Option] = {}
    """Options of the sources' stores, credentials included."""

    def __repr__(self) -> str:  # credentials stay out of logs
        return f"WorkUnit(run={self.run!r}, {len(self.sources)} sources)"

    @property
    def size_bytes(self) -> int:
        """The size of the sources as stored."""
        return sum(one.size_bytes for one in self.sources)


class WorkDone(msgspec.Struct, frozen=True, kw_only=True):
    """Files with the rows of all sources that were read, and the outcome of each source."""

    staged: Staged
    outcomes: tuple[SourceOutcome, ...]
    rejected: bytes = b""
    """Rejected rows as a compressed Arrow stream; empty if there are none."""
    told_bytes: int = 0
    """Bytes of the sources already reported to `advance`."""


def encode(value: WorkUnit | WorkDone) -> bytes:
    """A work unit, or its result, as bytes."""
    return msgspec.msgpack.encode(value, enc_hook=_plain_text)


def _plain_text(value: object) -> str:
    """Encode a lake's options: credentials are strings of a class that `repr` hides."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(type(value).__name__)


def decode_work(data: bytes) -> WorkUnit:
    """Decode a work unit."""
    return msgspec.msgpack.decode(data, type=WorkUnit)


def decode_done(data: bytes) -> WorkDone:
    """Decode the result of a work unit."""
    return msgspec.msgpack.decode(data, type=WorkDone)


def pack_rows(tables: Sequence[pa.Table]) -> bytes:
    """Tables of one schema as a compressed stream; empty when there are none."""
    if not tables:
        return b""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, tables[0].schema, options=options) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack_rows(data: bytes) -> pa.Table | None:
    """The rows of such a stream; None when it is empty."""
    return pa.ipc.open_stream(data).read_all() if data else None
