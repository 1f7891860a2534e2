"""Registers existing Parquet files with a table, in place: only their footers are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from deflate import crc32

from underlay.change.files.add_files import add_segment_files
from underlay.change.register.check_rows import check_rows
from underlay.change.register.find_files import FoundFile, find_files, path_text
from underlay.change.register.partition_values import partition_values
from underlay.change.register.path_constants import Constants, given_fields, path_constants, with_constants
from underlay.change.register.read_footers import Progress, ReadFile, join_files, read_footers, read_groups
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.index.entry import FileEntry
from underlay.index.intake.entries import ManyFiles, read_files
from underlay.index.intake.schema_match import Misfit
from underlay.index.keys import RevisionKeys, again
from underlay.index.operation import Operation
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import PartitionedFiles
from underlay.scan.read.file_stores import FileStores
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The result of a registration."""

    version: int
    file_count: int
    row_count: int
    known_count: int = 0
    """Files that were already part of the table, with the same bytes if that was checked."""
    replaced_count: int = 0
    """Files that were part of the table with other bytes; they are in `file_count` too."""
    native_partitions: tuple[str, ...] = ()
    """Partitions of QuestDB's tables that were left out, since only QuestDB can read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    ignore_surplus: bool
    hive: bool
    skip_known: bool
    refresh: bool


def register(
    table: OpenTable,
    patterns: Sequence[str | PathLike[str]],
    stores: FileStores,
    *,
    ignore_surplus: bool = False,
    hive: bool = True,
    skip_known: bool = False,
    refresh: bool = False,
    progress: Progress | None = None,
    described: Sequence[ReadFile] = (),
) -> Registered:
    """Make these files part of the table, all or none. They stay where they are and must never change. The files in
    `described` are not opened.

    One request for each file, a second for a footer beyond the first guess. Columns are matched by name; with `hive`,
    columns given by the folders of a path (`year=2024/`) are constants of the file. `skip_known` leaves files alone
    that are part of the table; `refresh` does too, except for those whose bytes changed, which replace their old
    entries. Raises SchemaMismatch with the reasons of each file that does not fit; InvalidRequest, NotFound, Damaged,
    Unsupported. If the table has checks, the columns that they name are read.
    """
    files = find_files([path_text(pattern) for pattern in patterns], stores)
    if not files and not described:
        raise InvalidRequest("no files to register")
    check_foreign(files, table.lake, stores)
    reads = [*(read_footers(files, progress) if files else ()), *described]
    options = _Options(ignore_surplus=ignore_surplus, hive=hive, skip_known=skip_known, refresh=refresh)
    done = commit_change(table, Operation.REGISTER, lambda change: _prepare(change, reads, options, stores))
    counts = done.head.root.counts if done.is_new else {}
    added = counts.get("files_added", 0)
    return Registered(
        version=done.version,
        file_count=added,
        row_count=counts.get("rows_added", 0),
        known_count=len(reads) - added,
        replaced_count=counts.get("files_removed", 0),
    )


def check_foreign(files: Sequence[FoundFile], lake: LakeCatalog, stores: FileStores) -> None:
    """Refuse files that belong to a table: their rows would exist twice, and a sweep of that table may delete them."""
    catalog = lake.catalog()
    known = [(record.folder, record.revisions) for record in catalog.tables.values()]
    dropped = [(folder, record.revisions) for folder, record in catalog.dropped.items()]
    folders = tuple(f"{RevisionKeys.of(at, one).folder}/" for at, revisions in known + dropped for one in revisions)
    ours = [file for file in files if file.place.store is stores.lake and file.place.key.startswith(folders)]
    if ours:
        raise InvalidRequest(
            f"{len(ours)} of the files belong to tables of this lake",
            found=", ".join(file.location for file in ours[:_SHOWN]),
            hint="Scan that table and append its rows instead.",
        )


def _prepare(transaction: Transaction, reads: Sequence[ReadFile], options: _Options, stores: FileStores) -> None:
    reads, replaced = _wanted(transaction.snapshot, reads, options)
    if not reads:
        return
    definition = transaction.base.definition
    schema = from_record(definition.schema)
    paths = [read.path for read in reads] if options.hive else [""] * len(reads)
    given = path_constants(paths, schema, ignore_surplus=options.ignore_surplus)
    problems = {index: one for index, one in enumerate(given) if isinstance(one, Misfit)}
    constants = [() if isinstance(one, Misfit) else one for one in given]
    read = _read_files(_placed(transaction, reads, replaced), constants, schema, options.ignore_surplus)
    problems = {**read.misfits, **problems}
    files: Segment | None = None
    if read.alike:
        files, indices = join_files(read.alike, schema)
        files, contradictions = with_constants(files, [constants[index] for index in indices], schema)
        problems = {indices[row]: misfit for row, misfit in contradictions.items()} | problems
        if definition.partition_by or definition.spec:
            values = partition_values(files, definition, schema)
            wrong = {index: value for index, value in zip(indices, values, strict=True) if isinstance(value, Misfit)}
            problems = wrong | problems
            partitions = [() if isinstance(value, Misfit) else value for value in values]
            files = Segment(PartitionedFiles(files, partitions, definition.spec), len(values))
    if problems or files is None:
        reasons = [f"{reads[index].place.location}: {' '.join(problems[index].reasons)}" for index in sorted(problems)]
        raise _refused(reasons, len(reads))
    if definition.checks:
        check_rows(transaction.snapshot, files, read.layouts, stores)
    for entry in replaced.values():
        transaction.remove_file(entry.location)
    add_segment_files(transaction, files, read.layouts)


def _wanted(
    snapshot: Snapshot, reads: Sequence[ReadFile], options: _Options
) -> tuple[Sequence[ReadFile], dict[str, FileEntry]]:
    """The files to add, and by location the entries with other bytes that they replace."""
    known = snapshot.files_at({read.place.location for read in reads})
    if not known:
        return reads, {}
    if not (options.skip_known or options.refresh):
        names = sorted(known)
        raise InvalidRequest(
            f"{len(names)} of the files are already part of the table",
            found=", ".join(names[:_SHOWN]),
            hint="Skip them with --skip-known (skip_known=True), or replace those that changed with --refresh "
            "(refresh=True).",
        )
    changed = {
        read.place.location: known[read.place.location]
        for read in reads
        if options.refresh and read.place.location in known and not _is_same(read, known[read.place.location])
    }
    return [r for r in reads if r.place.location not in known or r.place.location in changed], changed


def _is_same(read: ReadFile, entry: FileEntry) -> bool:
    """Whether a file has the bytes that its entry was made from, as far as its size and footer tell."""
    if read.place.own_footer_bytes is not None:
        return (read.place.size_bytes, read.place.etag) == (entry.size_bytes, entry.etag)
    facts = (read.place.size_bytes, len(read.footer), crc32(read.footer))
    return facts == (entry.size_bytes, entry.footer_bytes, entry.footer_crc)


def _placed(
    transaction: Transaction, reads: Sequence[ReadFile], replaced: Mapping[str, FileEntry]
) -> Sequence[ReadFile]:
    """The files, with locations that no version uses for other bytes."""
    if not replaced and not transaction.base.may_return and not transaction.base.removed:
        return reads
    version = transaction.base.version + 1
    return [replace(r, place=replace(r.place, location=again(r.place.location, version))) for r in reads]


def _read_files(
    reads: Sequence[ReadFile], constants: Sequence[Constants], schema: TableSchema, ignore_surplus: bool
) -> ManyFiles:
    by_given: dict[frozenset[int], list[int]] = {}
    for index, of_file in enumerate(constants):
        by_given.setdefault(given_fields(of_file), []).append(index)

    def read_some(given: frozenset[int], indices: Sequence[int]) -> ManyFiles:
        footers, places = [reads[index].footer for index in indices], [reads[index].place for index in indices]
        return read_files(footers, places, schema, ignore_surplus=ignore_surplus, given=given)

    return read_groups(by_given, read_some)


def _refused(problems: list[str], count: int) -> SchemaMismatch:
    shown = "\n  ".join(problems[:_SHOWN])
    more = f"\n  … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return SchemaMismatch(
        f"{len(problems)} of {count} files do not match the table; nothing was registered:\n  {shown}{more}"
    )
