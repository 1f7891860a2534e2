"""Registers existing Parquet files with a table, in place: only their footers are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from time import perf_counter

import numpy as np
from deflate import crc32

from underlay.change.files.add_files import add_segment_files
from underlay.change.register.check_rows import check_rows
from underlay.change.register.find_files import FoundFile, find_files, path_text
from underlay.change.register.partition_values import partition_values
from underlay.change.register.path_constants import Constants, given_fields, path_constants, with_constants
from underlay.errors import InvalidRequest, SchemaMismatch, UnderlayError
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.entries import FilesAlike, ManyFiles, read_files
from underlay.index.intake.schema_match import Misfit
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.keys import RevisionKeys, again
from underlay.index.operation import Operation
from underlay.index.segment.merge import MergedArrays, MergeInput
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import FileSubset, PartitionedFiles
from underlay.parquet.footer.stack import FOOTERS_AT_ONCE
from underlay.parquet.footer.tail import GUESS_BYTES, TAIL_BYTES, read_tail
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import LOCAL, FileStores
from underlay.scan.read.pipeline import Task, run_in_order
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.store import Store
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot
from underlay.values.ranges import ByteRange

_TASK_FILES = 32
_PAGE_BYTES = 4096
_MANY = 256
_WAITING_SECONDS = 0.002
"""A read that takes longer per file is waiting for a disk or a network; a busy machine is not that slow."""
_SHOWN = 20
_FOOTERS_AT_ONCE = 8 * FOOTERS_AT_ONCE
"""Footers that one thread reads together, so that forms it has met are reused."""
_PARSERS = 4
"""Threads that parse footers in memory: more would wait for the interpreter."""

Progress = Callable[[int, int], None]
"""Called with the number of files examined, and of all."""


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
class ReadFile:
    """A file and the footer that describes it: its own, or one made from a sidecar."""

    place: FilePlace
    footer: bytes
    path: str


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
    _check_foreign(files, table, stores)
    reads = [*(_read_all(files, progress) if files else ()), *described]
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


def _check_foreign(files: Sequence[FoundFile], table: OpenTable, stores: FileStores) -> None:
    """Refuse files that belong to a table: their rows would exist twice, and a sweep of that table may delete them."""
    catalog = table.lake.catalog()
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


def _read_all(files: Sequence[FoundFile], progress: Progress | None) -> list[ReadFile]:
    found: list[ReadFile] = []
    for reads in _read_tasks(files):
        for read in reads:
            found.append(read)
            if progress is not None:
                progress(len(found), len(files))
    return found


def _read_tasks(files: Sequence[FoundFile]) -> Iterator[list[ReadFile]]:
    """All footers, in order. Threads read them, unless there are many local files that are read without waiting: those
    are faster without threads."""
    stores = {file.place.store for file in files}
    at_once = max(store.parallel_requests for store in stores)
    size = max(1, min(_TASK_FILES, len(files) // (4 * at_once)))
    tasks = [files[begin : begin + size] for begin in range(0, len(files), size)]
    done = 0
    if len(files) >= _MANY and all(store.url.startswith(f"{LOCAL}://") for store in stores):
        is_waiting = False
        while done < len(tasks) and not is_waiting:
            begin = perf_counter()
            reads = _read_footers(tasks[done])
            is_waiting = perf_counter() - begin > _WAITING_SECONDS * len(reads)
            yield reads
            done += 1
    waiting = (Task(len(task) * GUESS_BYTES, partial(_read_footers, task)) for task in tasks[done:])
    yield from run_in_order(waiting, workers=at_once)


def _read_footers(files: Sequence[FoundFile]) -> list[ReadFile]:
    """The footers of some files. Those of one writer have similar lengths, so each tells how much to read for the
    next."""
    found: list[ReadFile] = []
    guess = GUESS_BYTES
    for file in files:
        found.append(_read_footer(file, guess))
        guess = -(-(len(found[-1].footer) + TAIL_BYTES) * 5 // (4 * _PAGE_BYTES)) * _PAGE_BYTES
    return found


def _read_footer(file: FoundFile, guess_bytes: int) -> ReadFile:
    store, key = file.place
    try:
        end, described = store.get_tail(key, guess_bytes)
        tail = read_tail(bytes(end[-TAIL_BYTES:]), described.size_bytes)
        missing = described.size_bytes - len(end) - tail.footer_offset
        if missing > 0:
            end = _rest(store, key, tail.footer_offset, described.size_bytes, described.etag)
        begin = len(end) - (described.size_bytes - tail.footer_offset)
        footer = bytes(end[begin : begin + tail.footer_length])
    except UnderlayError as error:
        raise error if error.place and key in error.place else error.at(file.location) from None
    place = FilePlace(location=file.location, size_bytes=described.size_bytes, etag=described.etag)
    return ReadFile(place=place, footer=footer, path=file.path)


def _rest(store: Store, key: str, begin: int, end: int, etag: str | None) -> memoryview:
    (data,) = store.get_ranges(key, [ByteRange(begin, end)], if_match=etag)
    return data


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
        files, indices = _joined(read.alike, schema)
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
    """All files, some at a time: intermediate values take more memory than the results.

    Almost all of the work is numpy's, so threads run it in parallel.
    """

    def read_some(some: tuple[frozenset[int], Sequence[int]]) -> ManyFiles:
        given, indices = some
        footers, places = [reads[index].footer for index in indices], [reads[index].place for index in indices]
        return read_files(footers, places, schema, ignore_surplus=ignore_surplus, given=given)

    by_given: dict[frozenset[int], list[int]] = {}
    for index, of_file in enumerate(constants):
        by_given.setdefault(given_fields(of_file), []).append(index)
    batches = [
        (given, every[begin : begin + _FOOTERS_AT_ONCE])
        for given, every in by_given.items()
        for begin in range(0, len(every), _FOOTERS_AT_ONCE)
    ]
    alike: list[FilesAlike] = []
    misfits: dict[int, Misfit] = {}
    layouts: dict[str, FileLayout] = {}
    read = side_by_side(read_some, batches, min(_PARSERS, os.cpu_count() or 1))
    for (_, indices), found in zip(batches, read, strict=True):
        alike += [
            FilesAlike(segment=part.segment, indices=tuple(indices[index] for index in part.indices))
            for part in found.alike
        ]
        misfits |= {indices[index]: misfit for index, misfit in found.misfits.items()}
        layouts |= {layout.id: layout for layout in found.layouts}
    return ManyFiles(alike=tuple(alike), misfits=misfits, layouts=tuple(layouts.values()))


def _joined(alike: Sequence[FilesAlike], schema: TableSchema) -> tuple[Segment, list[int]]:
    """The files in the order in which they were read, and the position of each among all files read."""
    indices = np.array([index for part in alike for index in part.indices], np.int64)
    inputs = [MergeInput(segment=part.segment) for part in alike]
    files = Segment(MergedArrays(inputs, schema), indices.size)
    if (np.diff(indices) < 0).any():
        order = np.argsort(indices)
        files, indices = Segment(FileSubset(files, order), indices.size), indices[order]
    return files, indices.tolist()


def _refused(problems: list[str], count: int) -> SchemaMismatch:
    shown = "\n  ".join(problems[:_SHOWN])
    more = f"\n  … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return SchemaMismatch(
        f"{len(problems)} of {count} files do not match the table; nothing was registered:\n  {shown}{more}"
    )
