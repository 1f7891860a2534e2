"""Reads the footers of many Parquet files, and puts what they say together as one segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TypeVar

import numpy as np

from underlay.change.register.find_files import FoundFile
from underlay.errors import UnderlayError
from underlay.index.entry import FileLayout
from underlay.index.intake.entries import FilesAlike, ManyFiles
from underlay.index.intake.schema_match import Misfit
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.segment.merge import MergedArrays, MergeInput
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import FileSubset
from underlay.parquet.footer.stack import FOOTERS_AT_ONCE
from underlay.parquet.footer.tail import GUESS_BYTES, TAIL_BYTES, read_tail
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import LOCAL
from underlay.scan.read.pipeline import Task, run_in_order
from underlay.schema.table_schema import TableSchema
from underlay.store import Store
from underlay.values.ranges import ByteRange

_TASK_FILES = 32
_PAGE_BYTES = 4096
_MANY = 256
_WAITING_SECONDS = 0.002
"""A read that takes longer per file is waiting for a disk or a network; a busy machine is not that slow."""

_FOOTERS_AT_ONCE = 8 * FOOTERS_AT_ONCE
"""Footers that one thread reads together, so that forms it has met are reused."""
_PARSERS = 4
"""Threads that parse footers in memory: more would wait for the interpreter."""
Group = TypeVar("Group", bound=Hashable)

Progress = Callable[[int, int], None]
"""Called with the number of files examined, and of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A file and the Thrift footer that describes it: its own, or one made from a sidecar. It was found at `path`."""

    place: FilePlace
    footer: bytes
    path: str


def read_footers(files: Sequence[FoundFile], progress: Progress | None) -> list[ReadFile]:
    """The footers of these files, in order. One request for each file, a second for a footer beyond the first guess.

    Raises NotFound, Damaged, Unavailable, with the file's location.
    """
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


def join_files(alike: Sequence[FilesAlike], schema: TableSchema) -> tuple[Segment, list[int]]:
    """The files in the order in which they were read, and the position of each among all files read."""
    indices = np.array([index for part in alike for index in part.indices], np.int64)
    inputs = [MergeInput(segment=part.segment) for part in alike]
    files = Segment(MergedArrays(inputs, schema), indices.size)
    if (np.diff(indices) < 0).any():
        order = np.argsort(indices)
        files, indices = Segment(FileSubset(files, order), indices.size), indices[order]
    return files, indices.tolist()


def read_groups(groups: Mapping[Group, Sequence[int]], read: Callable[[Group, Sequence[int]], ManyFiles]) -> ManyFiles:
    """What `read` makes of all files, some of a group at a time: intermediate values take more memory than the results.

    A group holds positions among all files. Almost all of the work is numpy's, so threads do it in parallel.
    """
    batches = [
        (group, every[begin : begin + _FOOTERS_AT_ONCE])
        for group, every in groups.items()
        for begin in range(0, len(every), _FOOTERS_AT_ONCE)
    ]
    alike: list[FilesAlike] = []
    misfits: dict[int, Misfit] = {}
    layouts: dict[str, FileLayout] = {}
    parsers = min(_PARSERS, os.cpu_count() or 1)
    for (_, indices), found in zip(batches, side_by_side(lambda one: read(*one), batches, parsers), strict=True):
        alike += [
            FilesAlike(segment=part.segment, indices=tuple(indices[index] for index in part.indices))
            for part in found.alike
        ]
        misfits |= {indices[index]: misfit for index, misfit in found.misfits.items()}
        layouts |= {layout.id: layout for layout in found.layouts}
    return ManyFiles(alike=tuple(alike), misfits=misfits, layouts=tuple(layouts.values()))
