"""Commits each epoch of a stream once. A stream is (query id, sink name), and its source record says how far it is.

The record's uri is `stream:<query id>/<sink>`, its row count that of the last epoch, and its identity the facts of the
newest epochs that had rows: number, rows, and a digest of whatever else the writer says about them (its offsets, for
example), which is compared if both are known.

- An epoch that is newer than the last is committed. Numbers may be skipped: Spark runs no batch when no data arrived,
  and a sink may be new to a query that ran before.
- An epoch without rows makes no version.
- A committed epoch that is replayed with the same row count and digest is done already; with others it raises
  ReplayDiffers. An older epoch that is not remembered was empty, or is too old to tell: with rows it raises. Spark
  repeats only the last epoch, unless an older copy of its checkpoint was restored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from underlay.change.files.rows import read_rows
from underlay.change.rows.append import Appended
from underlay.change.rows.staged import Staged, stage, staging_for
from underlay.errors import InvalidRequest, Malformed, ReplayDiffers
from underlay.index.operation import Operation
from underlay.index.root import SourceRecord
from underlay.ingest.exactly_once.commit_once import Repeated, add_staged, commit_once, newest_base, rows_of
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable

STREAM = "stream:"
REMEMBERED = 16
"""The facts of this many epochs are kept."""
_DIGEST_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKey:
    """A stream: the id of its query, which a restart keeps, and the name of the sink."""

    query_id: str
    sink: str

    @property
    def uri(self) -> str:
        """The stream's name in the source tree."""
        return f"{STREAM}{quote(self.query_id, safe='')}/{quote(self.sink, safe='')}"


class _Epoch(msgspec.Struct, frozen=True, array_like=True):
    """What the record remembers about an epoch."""

    number: int
    row_count: int
    digest: str
    """Empty if unknown."""

    def is_same(self, other: _Epoch) -> bool:
        """Whether the two are the same, as far as is known."""
        is_told_apart = bool(self.digest and other.digest) and self.digest != other.digest
        return (self.number, self.row_count) == (other.number, other.row_count) and not is_told_apart


_DECODER = msgspec.json.Decoder(tuple[_Epoch, ...])


def find_repeat(
    table: OpenTable, head: Head, key: StreamKey, epoch: int, count: Callable[[], int], *, facts: str = ""
) -> Appended | None:
    """The earlier outcome of an epoch that is not newer than the last, so that nothing need be written; None for a
    newer one.

    `count` returns the epoch's rows, and is called only for such an epoch. Raises ReplayDiffers.
    """
    remembered = _remembered(table, head, key)
    if not remembered or epoch > remembered[-1].number:
        return None
    version = _done_version(table, head, key, remembered, _epoch(key, epoch, count(), facts))
    return None if version is None else Appended(version=version, row_count=0, file_count=0, is_repeat=True)


def commit_epoch(
    table: OpenTable, head: Head, key: StreamKey, epoch: int, staged: Iterable[Staged], *, facts: str = ""
) -> Appended:
    """Commit the rows of an epoch, written for `head`, unless the table has them. `facts` is text that identifies the
    epoch's content, such as its offsets.

    Raises ReplayDiffers, CommitConflict when the table was changed so that the rows no longer fit, RevisionClosed, and
    CommitUnknown, after which this process, or a restarted query, may repeat the call.
    """
    every = tuple(staged)
    mine = _epoch(key, epoch, rows_of(every), facts)

    def prepare(transaction: Transaction, base: Head) -> None:
        remembered = _remembered(table, base, key)
        version = _done_version(table, base, key, remembered, mine)
        if version is not None:
            raise Repeated(version)
        add_staged(transaction, every)
        kept = (*remembered[1 - REMEMBERED :], mine)
        identity = msgspec.json.encode(kept).decode()
        transaction.add_source(SourceRecord(uri=key.uri, identity=identity, version=0, row_count=mine.row_count))
        transaction.count("epoch", epoch)

    return commit_once(table, newest_base(table, head), Operation.STREAM, prepare)


def append_epoch(table: OpenTable, key: StreamKey, epoch: int, data: object, *, facts: str = "") -> Appended:
    """The same for rows in memory (see `change.files.rows`). Files that a replay wrote stay unreferenced."""
    head = table.head()
    staged = stage(staging_for(head), head.revision.store, read_rows(data))
    return commit_epoch(table, head, key, epoch, [staged], facts=facts)


def _epoch(key: StreamKey, number: int, row_count: int, facts: str) -> _Epoch:
    if number < 0:
        raise InvalidRequest("an epoch cannot be negative", place=key.uri, found=number)
    digest = hashlib.blake2b(facts.encode(), digest_size=_DIGEST_DIGITS // 2).hexdigest() if facts else ""
    return _Epoch(number, row_count, digest)


def _remembered(table: OpenTable, head: Head, key: StreamKey) -> tuple[_Epoch, ...]:
    record = table.snapshot(head).find_sources([key.uri]).get(key.uri)
    if record is None:
        return ()
    try:
        return _DECODER.decode(record.identity)
    except msgspec.MsgspecError as error:
        raise Malformed(f"invalid record of a stream: {error}", place=key.uri, found=record.identity) from error


def _done_version(
    table: OpenTable, head: Head, key: StreamKey, remembered: tuple[_Epoch, ...], mine: _Epoch
) -> int | None:
    """The version that already contains the epoch, or the head if it has no rows; None when it must be committed."""
    before = next((one for one in remembered if one.number == mine.number), None)
    if (before is not None and before.is_same(mine)) or (before is None and not mine.row_count):
        return head.root.version
    if before is None and (not remembered or mine.number > remembered[-1].number):
        return None
    raise ReplayDiffers(
        f"epoch {mine.number} was replayed with different rows",
        place=f"{table.name}: {key.uri}",
        expected=_describe(before) if before is not None else f"an epoch after {remembered[-1].number}",
        found=_describe(mine),
        hint="Nothing was changed. Another query wrote to this sink, the checkpoint is an older copy, or the source "
        "gave different rows. To add these rows as well, start with a new checkpoint or under a new sink name.",
    )


def _describe(epoch: _Epoch) -> str:
    return f"{epoch.row_count} rows" + (f" of offsets {epoch.digest}" if epoch.digest else "")
