"""Existing Parquet files as files of a table, in place: their footers are read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from msgspec.structs import replace

from underlay.change.add_files import add_files
from underlay.change.find_files import FoundFile, find_files
from underlay.change.partition_values import partition_values
from underlay.errors import InvalidRequest, RevisionClosed, SchemaMismatch, UnderlayError
from underlay.index.entry import FileEntry, Layout
from underlay.index.facts import FilePlace, read_entries
from underlay.index.keys import RevisionKeys
from underlay.index.layout import Misfit
from underlay.index.root import Root
from underlay.parquet.tail import GUESS_BYTES, TAIL_BYTES, read_tail
from underlay.scan.locate import FileStores
from underlay.schema.record import from_record
from underlay.store import Store
from underlay.table.commit import commit
from underlay.table.opened import Head, OpenTable
from underlay.table.transaction import Transaction
from underlay.values.ranges import ByteRange

_READERS = 16
_BATCH = 512
_SHOWN = 20

Progress = Callable[[int, int], None]
"""Told how many of how many files were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What a registration did."""

    version: int
    file_count: int
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    place: FilePlace
    footer: bytes


def register(
    table: OpenTable,
    patterns: Sequence[str],
    stores: FileStores,
    *,
    ignore_surplus: bool = False,
    progress: Progress | None = None,
) -> Registered:
    """Make these files part of the table, all or none. They stay where they are and must not change any more.

    One request for each file, a second for a footer beyond the first guess. Columns are matched by name. Raises
    SchemaMismatch with the reasons of each file that does not fit; NotFound, Damaged, Unsupported.
    """
    files = find_files(patterns, stores)
    if not files:
        raise InvalidRequest("no files to register")
    _check_foreign(files, table, stores)
    reads = _read_all(files, progress)
    while True:
        head = table.head()

        def prepare(base: Root, head: Head = head) -> Transaction:
            return _prepare(table, Head(head.revision, base), reads, ignore_surplus)

        try:
            root = commit(prepare(head.root), redo=prepare)
        except RevisionClosed as closed:
            if closed.successor is None:
                raise
            table.forget()
            continue
        counts = root.counts
        return Registered(version=root.version, file_count=counts["files_added"], row_count=counts.get("rows_added", 0))


def _check_foreign(files: Sequence[FoundFile], table: OpenTable, stores: FileStores) -> None:
    """Refuse files of tables: their rows would be there twice, and a sweep of their own table may delete them."""
    catalog = table.lake.catalog()
    known = [(record.folder, record.revisions) for record in catalog.tables.values()]
    dropped = [(folder, record.revisions) for folder, record in catalog.dropped.items()]
    folders = tuple(f"{RevisionKeys.of(at, one).folder}/" for at, revisions in known + dropped for one in revisions)
    ours = [file for file in files if file.place.store is stores.lake and file.place.key.startswith(folders)]
    if ours:
        raise InvalidRequest(
            f"{len(ours)} of the files belong to tables of this lake",
            found=", ".join(file.location for file in ours[:_SHOWN]),
            hint="Append what a scan of that table gives.",
        )


def _read_all(files: Sequence[FoundFile], progress: Progress | None) -> list[_Read]:
    found: list[_Read] = []
    with ThreadPoolExecutor(min(_READERS, len(files))) as pool:
        for number, read in enumerate(pool.map(_read_footer, files), start=1):
            found.append(read)
            if progress is not None:
                progress(number, len(files))
    return found


def _read_footer(file: FoundFile) -> _Read:
    store, key = file.place
    try:
        end, described = store.get_tail(key, GUESS_BYTES)
        tail = read_tail(bytes(end[-TAIL_BYTES:]), described.size_bytes)
        missing = described.size_bytes - len(end) - tail.footer_offset
        if missing > 0:
            end = _rest(store, key, tail.footer_offset, described.size_bytes, described.etag)
        begin = len(end) - (described.size_bytes - tail.footer_offset)
        footer = bytes(end[begin : begin + tail.footer_length])
    except UnderlayError as error:
        raise error if error.place and key in error.place else error.at(file.location) from None
    return _Read(
        place=FilePlace(location=file.location, size_bytes=described.size_bytes, etag=described.etag), footer=footer
    )


def _rest(store: Store, key: str, begin: int, end: int, etag: str | None) -> memoryview:
    (data,) = store.get_ranges(key, [ByteRange(begin, end)], if_match=etag)
    return data


def _prepare(table: OpenTable, head: Head, reads: Sequence[_Read], ignore_surplus: bool) -> Transaction:
    entries: list[FileEntry] = []
    layouts: dict[str, Layout] = {}
    problems: list[str] = []
    definition = head.root.definition
    schema = from_record(definition.schema)
    for begin in range(0, len(reads), _BATCH):
        batch = reads[begin : begin + _BATCH]
        found = read_entries(
            [read.footer for read in batch],
            [read.place for read in batch],
            schema,
            ignore_surplus=ignore_surplus,
        )
        layouts |= {layout.id: layout for layout in found.layouts}
        fitting = [entry for entry in found.entries if isinstance(entry, FileEntry)]
        partitions = dict(zip(fitting, partition_values(fitting, definition, schema), strict=True))
        for read, entry in zip(batch, found.entries, strict=True):
            partition = entry if isinstance(entry, Misfit) else partitions[entry]
            if isinstance(partition, Misfit):
                problems.append(f"{read.place.location}: {' '.join(partition.reasons)}")
            elif isinstance(entry, FileEntry):
                entries.append(replace(entry, partition=partition))
    if problems:
        raise _refused(problems, len(reads))
    _check_new(table, head, entries)
    transaction = Transaction(head.revision, head.root, "register", load_segment=table.load_segment)
    add_files(transaction, entries, layouts.values())
    return transaction


def _check_new(table: OpenTable, head: Head, entries: Sequence[FileEntry]) -> None:
    known = table.snapshot(head).known_files({entry.location for entry in entries})
    if known:
        names = sorted(known)
        raise InvalidRequest(
            f"{len(names)} of the files are part of the table already", found=", ".join(names[:_SHOWN])
        )


def _refused(problems: list[str], count: int) -> SchemaMismatch:
    shown = "\n  ".join(problems[:_SHOWN])
    more = f"\n  … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return SchemaMismatch(
        f"{len(problems)} of {count} files do not fit the table, and nothing was registered:\n  {shown}{more}"
    )
