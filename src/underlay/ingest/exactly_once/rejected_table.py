"""Stores rejected rows in the table `dataset.table_rejected`, in a commit before that of the accepted rows.

Its own source tree has a record of every source with rejected rows: the content's identity, the number of rows, and the
run that rejected them; so a run that repeats itself adds nothing. Another run, over the same or other content, replaces
a source's rejected rows by its own: it may read the source in another way. The rows are found by the source's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from underlay.change.define.define import define
from underlay.change.files.rows import read_rows
from underlay.change.rows.append import Appended
from underlay.change.rows.staged import Staged, stage, staging_for
from underlay.errors import CommitConflict, InvalidRequest, TableExists
from underlay.index.operation import Operation
from underlay.index.root import SourceRecord
from underlay.ingest.exactly_once.claim import Claims
from underlay.ingest.exactly_once.commit_claimed import check_claims
from underlay.ingest.exactly_once.commit_once import Repeated, add_staged, commit_once, newest_base, rows_of
from underlay.ingest.exactly_once.replaced import delete_rows_of
from underlay.ingest.rows.reading import Rejected
from underlay.ingest.source.source import Source
from underlay.scan.read.file_stores import FileStores
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable

SUFFIX = "_rejected"
COLUMNS = (
    "source string not null, identity string not null, line bigint, byte_offset bigint, reason string not null, "
    "raw string, raw_bytes binary, run string not null, rejected_at timestamptz not null"
)
"""The row's position (its line from 1, the byte at which it begins, or neither), the reason, its text as far as it is
kept, its bytes if they are not UTF-8, and which run rejected it when."""
OLD_TIME = "at"
TIME = "rejected_at"
_ARROW = to_arrow(parse_ddl(COLUMNS))
_OLD_NAMES = (*(name for name in _ARROW.names if name not in (TIME, "raw_bytes")), OLD_TIME)
"""The columns of tables that older versions of Underlay made: `raw` is binary there. These tables keep their
columns."""
_ATTEMPTS = 10


def open_rejected(table: OpenTable) -> OpenTable:
    """The table of rejected rows beside `table`; created if it is missing."""
    name = f"{table.name}{SUFFIX}"
    if name not in table.lake.catalog().tables:
        comment = f"Rows that could not be ingested into {table.name}."
        with suppress(TableExists):  # another run created it
            create(table.lake, name, define(COLUMNS, comment=comment))
    return OpenTable(table.lake, name, table.load_segment)


def rejected_rows(found: Source, rejected: Iterable[Rejected], run: str, at: datetime) -> pa.Table:
    """The rejected records of one source, as rows of the table."""
    every = list(rejected)
    columns = {
        "source": [found.uri] * len(every),
        "identity": [found.identity] * len(every),
        "line": [one.line for one in every],
        "byte_offset": [one.offset for one in every],
        "reason": [one.reason for one in every],
        "raw": [one.raw.decode(errors="replace") for one in every],
        "raw_bytes": [None if _is_text(one.raw) else one.raw for one in every],
        "run": [run] * len(every),
        TIME: [at] * len(every),
    }
    return pa.table(columns, schema=_ARROW)


def time_column(rejected: TableSchema) -> str:
    """The column that says when a row was rejected; tables of older releases name it differently."""
    return TIME if TIME in rejected.names else OLD_TIME


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_old(rows: pa.Table) -> pa.Table:
    """The rows for a table that an older release created."""
    texts: AnyArray = rows["raw"].cast(pa.binary())
    raw: AnyArray = pc.call_function("coalesce", [rows["raw_bytes"], texts])
    columns = {**{name: rows[name] for name in rows.schema.names}, "raw": raw, OLD_TIME: rows[TIME]}
    return pa.table({name: columns[name] for name in _OLD_NAMES})


def no_rejected_rows() -> pa.Table:
    """An empty table of rejected rows."""
    return _ARROW.empty_table()


def recorded(rejected: OpenTable, head: Head, run: str, counts: Mapping[Source, int]) -> set[str]:
    """The sources whose rejected rows this run recorded already, with the same content and number of rows."""
    records = rejected.snapshot(head).find_sources([found.uri for found in counts])
    return {found.uri for found, count in counts.items() if _is_recorded(found, run, count, records)}


def commit_rejected(
    rejected: OpenTable,
    head: Head,
    run: str,
    counts: Mapping[Source, int],
    staged: Iterable[Staged],
    *,
    stores: FileStores | None = None,
) -> Appended:
    """Commit rejected rows that were written for `head`, with records of their sources: `counts` says how many of each.

    Deletes a source's older rejected rows. A source without rejected rows, now and before, gets no record. Raises
    CommitConflict when this run recorded some of the sources already: check again which are `recorded`. After
    CommitUnknown the same call may be repeated.
    """
    every = tuple(staged)
    if (rows := rows_of(every)) != sum(counts.values()):
        raise InvalidRequest(
            "the number of staged rows differs from that of the rejected rows",
            expected=f"{sum(counts.values())} rows",
            found=rows,
        )
    elsewhere = stores or FileStores(rejected.lake.store)

    def prepare(transaction: Transaction, base: Head) -> None:
        records = rejected.snapshot(base).find_sources([found.uri for found in counts])
        _check_recorded(rejected, run, counts, records)
        add_staged(transaction, every)
        gone = [found.uri for found in counts if found.uri in records and records[found.uri].row_count]
        delete_rows_of(transaction, "source", gone, elsewhere)
        for found, count in counts.items():
            if count or found.uri in records:
                transaction.add_source(_record(found, run, count))
        transaction.count("sources", sum(map(bool, counts.values())))

    return commit_once(rejected, newest_base(rejected, head), Operation.REJECT, prepare)


def reject(claims: Claims, rows: pa.Table, *, stores: FileStores | None = None) -> Appended | None:
    """Record rejected rows of claimed sources, all of which were read; `rows` has the columns of `COLUMNS`.

    Returns None when there are no such rows and never were. Raises ClaimLost, so that a run that was paused does not
    replace newer rows by those of older content; RevisionClosed; CommitUnknown (call it again).
    """
    table, run = claims.run.table, claims.run.id
    if not rows.num_rows and f"{table.name}{SUFFIX}" not in table.lake.catalog().tables:
        return None
    check_claims(claims)
    counts = _counts(rows, claims.found)
    rejected = open_rejected(table)
    for _ in range(_ATTEMPTS):
        head = rejected.head()
        fitting = _as_columns_of(rejected, head, rows)
        known = recorded(rejected, head, run, counts)
        new = fitting.filter(pc.invert(pc.is_in(fitting["source"], value_set=pa.array(sorted(known), pa.string()))))
        staged = [stage(staging_for(head), head.revision.store, read_rows(new))] if new.num_rows else []
        missing = {found: count for found, count in counts.items() if found.uri not in known}
        try:
            return commit_rejected(rejected, head, run, missing, staged, stores=stores)
        except CommitConflict:
            continue
    raise CommitConflict("other runs keep recording rejected rows of the same sources", place=rejected.name)


def _as_columns_of(rejected: OpenTable, head: Head, rows: pa.Table) -> pa.Table:
    """The rows with this table's columns. Raises InvalidRequest for a table that was created for something else."""
    names = from_record(head.root.definition.schema).names
    if set(_ARROW.names) <= set(names):
        return rows
    if set(_OLD_NAMES) <= set(names):
        return _as_old(rows)
    missing = next(name for name in _ARROW.names if name not in names)
    raise InvalidRequest(
        "rejected rows cannot be recorded: this table was created for something else",
        place=rejected.name,
        expected=f"a column {missing}",
        hint="Rename it; the next run creates a table for rejected rows.",
    )


def _counts(rows: pa.Table, found: Sequence[Source]) -> dict[Source, int]:
    counted = Counter(str(uri) for uri in rows["source"].to_pylist())
    foreign = counted.keys() - {one.uri for one in found}
    if foreign:
        raise InvalidRequest("there are rejected rows of a source that was not read", found=min(foreign))
    return {one: counted.get(one.uri, 0) for one in found}


def _check_recorded(
    rejected: OpenTable, run: str, counts: Mapping[Source, int], records: Mapping[str, SourceRecord]
) -> None:
    """Raise Repeated when there is nothing to do, CommitConflict when the rows of some sources are recorded already."""
    there = [found for found, count in counts.items() if _is_recorded(found, run, count, records)]
    needed = [found for found, count in counts.items() if count or found.uri in records]
    if not needed or len(there) == len(needed):
        raise Repeated(max((records[found.uri].version for found in there), default=rejected.head().root.version))
    if there:
        raise CommitConflict(
            f"the rejected rows of {there[0].uri} are recorded already",
            place=rejected.name,
            expected=run,
            found=records[there[0].uri].owner,
            hint="Nothing was changed. Retry without the sources that are recorded.",
        )


def _is_recorded(found: Source, run: str, count: int, records: Mapping[str, SourceRecord]) -> bool:
    record = records.get(found.uri)
    if record is None or (record.identity, record.row_count) != (found.identity, count):
        return False
    return not count or record.owner == run


def _record(found: Source, run: str, count: int) -> SourceRecord:
    return SourceRecord(uri=found.uri, identity=found.identity, version=0, owner=run, row_count=count)
