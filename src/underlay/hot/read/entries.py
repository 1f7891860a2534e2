"""The index entries of hot partitions: what a planner knows of their files, from the footer that was committed."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from urllib.parse import quote

import numpy as np

from underlay.errors import NotFound, UnderlayError, from_os_error
from underlay.hot.files.read_blocks import fitting_layout
from underlay.hot.files.version import DATA_NAME, read_footer
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.entries import file_entry
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.keys import HOT_SCHEME
from underlay.parquet.footer.footer import Footer
from underlay.parquet.records.records import Flags
from underlay.runtime.locks import ProcessLock
from underlay.runtime.posix import open_flags
from underlay.schema.table_schema import TableSchema

_MOST_KEPT = 256
_READ = os.O_RDONLY | open_flags("O_CLOEXEC")
Known = tuple[FileEntry, FileLayout]


class HotEntries:
    """Entries by file, committed size and columns: what these name never changes. Safe for many threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int, TableSchema], Known] = OrderedDict()
        self._lock = ProcessLock()

    def entry(self, hot_id: str, directory: Path, size_bytes: int, schema: TableSchema) -> Known:
        """The entry of a partition of this hot table at this size, and its layout. Two reads unless it is kept.

        Raises NotFound when the directory was purged, SchemaMismatch, Damaged.
        """
        path = directory / DATA_NAME
        key = (hot_id, str(path), size_bytes, schema)
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            found = make_entry(path, size_bytes, schema)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return found


def load_hot_footer(path: Path, size_bytes: int) -> Footer:
    """The footer of a hot file as it was committed. Raises NotFound, Damaged."""
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise from_os_error(error, str(path)) from error
    try:
        return Footer.parse(read_footer(descriptor, size_bytes, str(path)))
    except UnderlayError as error:
        raise error.at(str(path)) if not isinstance(error, NotFound) else error from None
    finally:
        os.close(descriptor)


def make_entry(path: Path, size_bytes: int, schema: TableSchema) -> Known:
    """The entry and the layout of a hot file."""
    footer = load_hot_footer(path, size_bytes)
    layout = fitting_layout(footer, schema, str(path))
    place = FilePlace(location=f"{HOT_SCHEME}://{quote(str(path))}", size_bytes=size_bytes)
    return file_entry(footer, layout, schema, place, nan_free=nan_free(footer)), layout


def nan_free(footer: Footer) -> Flags:
    """Which chunks of our own files hold no NaN: our writer leaves out the bounds of those that do."""
    statistics = footer.chunks.statistics
    has_bounds = (statistics.min_value.begin >= 0) & (statistics.max_value.begin >= 0)
    is_null = statistics.has_null_count & (statistics.null_count == footer.row_groups.num_rows[:, None])
    found: Flags = np.asarray(has_bounds | is_null, np.bool_)
    return found
