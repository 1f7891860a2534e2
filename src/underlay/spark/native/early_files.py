"""Prepares files of finished tasks while other tasks are still writing.

Hadoop's committer moves the winning attempt's folder to `_temporary/<n>/task_…`, and all files to their final place
when the job is done. The inode identifies a file: if Spark ran a task again, the file of that name is another one, and
must be prepared again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import NamedTuple, Self

from underlay.change.rows.adopt import Prepared
from underlay.errors import NotFound, UnderlayError
from underlay.runtime.threads import side_by_side

_COMMITTED = "_temporary/*/task_*/*.parquet"
_LOOK_SECONDS = 0.1
_SHARE = 20
"""A pause is at least this many times as long as a poll."""
_THREADS = 8

Prepare = Callable[[Path], Prepared | None]


class _Identity(NamedTuple):
    inode: int
    size_bytes: int
    modified_ns: int


class EarlyFiles:
    """Prepares files below a folder, between entering and leaving its `with` block."""

    def __init__(self, folder: Path, prepare: Prepare) -> None:
        self._folder = folder
        self._prepare = prepare
        self._pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1), thread_name_prefix="underlay-adopt")
        self._seen: set[int] = set()
        self._known: dict[_Identity, Prepared | None] = {}
        self._made: list[Prepared] = []
        self._failed: dict[int, UnderlayError] = {}
        self._stop = Event()
        self._looking = Thread(target=self._look, name="underlay-adopt-look", daemon=True)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        try:
            self._looking.join()
        finally:
            self._pool.shutdown(cancel_futures=True)

    @property
    def made(self) -> Sequence[Prepared]:
        """All that was prepared, whether it is used or not."""
        return self._made

    def prepare_all(self, paths: Sequence[Path]) -> dict[Path, Prepared]:
        """The files that have rows. Those not prepared early are prepared now. Raises what preparing raises.

        Call it after the `with` block, when no thread prepares files any longer.
        """
        found = side_by_side(self._prepare_now, paths, _THREADS)
        return {path: one for path, one in zip(paths, found, strict=True) if one is not None}

    def _prepare_now(self, path: Path) -> Prepared | None:
        key = _identity(path)
        if key.inode in self._failed:
            raise self._failed[key.inode]
        return self._known[key] if key in self._known else self._make(path)

    def _prepare_early(self, path: Path, inode: int) -> None:
        """Prepare a file early. One that is moved meanwhile is left for the end."""
        try:
            found, key = self._make(path), _identity(path)
            if key.inode == inode:
                self._known[key] = found
        except (NotFound, FileNotFoundError):
            pass
        except UnderlayError as error:
            self._failed[inode] = error  # the file may be half finished; it is not tried early again

    def _make(self, path: Path) -> Prepared | None:
        found = self._prepare(path)
        if found is not None:
            self._made.append(found)
        return found

    def _look(self) -> None:
        pause = _LOOK_SECONDS
        while not self._stop.wait(pause):
            begin = monotonic()
            with suppress(OSError):  # folders come and go
                for path in self._folder.glob(_COMMITTED):
                    inode = _identity(path).inode
                    if inode not in self._seen:
                        self._seen.add(inode)
                        self._pool.submit(self._prepare_early, path, inode)
            pause = max(_LOOK_SECONDS, _SHARE * (monotonic() - begin))


def _identity(path: Path) -> _Identity:
    found = path.stat()
    return _Identity(inode=found.st_ino, size_bytes=found.st_size, modified_ns=found.st_mtime_ns)
