"""Lets Arrow's C++ read rows as files, from our own file system, whose files are made when Arrow opens them.

Arrow's datasets cannot call Python for rows, but they can for files. Each file here holds some rows of a scan in
Arrow's IPC format, in memory from when it is opened until its last batch is dropped. So whatever Arrow does with a
dataset (scan it twice, write it, join it, put it into a union) reads rows on demand.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Iterable, Sequence
from threading import Condition
from time import monotonic
from typing import NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs, ipc

from underlay.errors import Unsupported
from underlay.runtime.fork import start_afresh_after_fork

ReadFile = Callable[[int], Iterable[pa.RecordBatch]]
"""Reads the rows of the file with this number."""

LOG = logging.getLogger("underlay.dataset")
_FORMAT = ds.IpcFileFormat()
_QUIET_SECONDS = 0.1
_MOST_SECONDS = 5.0


def dataset_of_files(
    count: int, read: ReadFile, *, file_schema: pa.Schema, schema: pa.Schema, name: str
) -> ds.FileSystemDataset:
    """A dataset of files with these columns; it may have more columns. `read` may be called repeatedly, by many
    threads.
    """
    handler = _Handler(name, read, file_schema)
    file_system = fs.PyFileSystem(handler)
    files = [_FORMAT.make_fragment(f"{name}/{number}.arrow", file_system) for number in range(count)]
    for file in files:
        file.physical_schema  # noqa: B018  # remembered: Arrow would open each file once more to learn it
    handler.is_ready = True
    return ds.FileSystemDataset(files, schema, _FORMAT, file_system)


class _Handler(fs.FileSystemHandler):
    """The file system. Until it is ready, its files have no rows.

    It must not hold the dataset that is made from it: with C++ between the two, the cycle would never be collected.
    """

    def __init__(self, name: str, read: ReadFile, schema: pa.Schema) -> None:
        self._name = name
        self._read = read
        self._schema = schema
        self._empty = _as_file((), schema)
        self.is_ready = False

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file with its rows. Called by Arrow's threads."""
        if not self.is_ready:
            return pa.BufferReader(self._empty)
        try:
            return pa.BufferReader(self._opened(path))
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not get into C++
            # Arrow formats a Python error while it holds a lock, and waits for the GIL, which `Scanner.to_reader` holds
            # while it waits for that lock: a deadlock. So the error is logged, and Arrow gets a file that it cannot
            # read: it raises ArrowInvalid.
            LOG.error("%s cannot be read: %s", self._name, error)
            return pa.BufferReader(f"not a file, since it cannot be read: {error}".encode(errors="replace"))

    def _opened(self, path: str) -> pa.Buffer:
        _openings.begin()
        try:
            return _as_file(self._read(self._number(path)), self._schema)
        finally:
            _openings.end()

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """The same."""
        return self.open_input_file(path)

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """All files exist; their sizes are known only when they are opened."""
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def get_type_name(self) -> str:
        """The name that Arrow shows."""
        return "underlay"

    def normalize_path(self, path: str) -> str:
        """The path, unchanged."""
        return path

    def _number(self, path: str) -> int:
        number = path.removeprefix(f"{self._name}/").removesuffix(".arrow")
        if not number.isdecimal():
            raise FileNotFoundError(path)
        return int(number)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise Unsupported("the files of a table's dataset are virtual", hint="Read the table.")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a dataset cannot be pickled", hint="Open the lake in the other process at the same version.")


def _as_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


class _Openings:
    """Files that threads of Arrow are opening.

    If such a thread asks for the GIL after the interpreter has gone, the process aborts. So at exit no file is opened
    any longer, and we wait for unfinished scans that read ahead.
    """

    def __init__(self) -> None:
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        self._changed = Condition()
        self._count = 0
        self._last_end = 0.0
        self._is_over = False

    def begin(self) -> None:
        with self._changed:
            if self._is_over:
                raise Unsupported("the interpreter is exiting: no more rows can be read")
            self._count += 1

    def end(self) -> None:
        with self._changed:
            self._count -= 1
            self._last_end = monotonic()
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._is_over = True
            until = monotonic() + _MOST_SECONDS
            while (now := monotonic()) < until and (self._count or now < self._last_end + _QUIET_SECONDS):
                self._changed.wait(_QUIET_SECONDS)


_openings = _Openings()
atexit.register(_openings.finish)
