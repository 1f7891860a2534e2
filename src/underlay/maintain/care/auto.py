"""Background care in a process that writes: checked after each of its commits, done in parallel with them.

A commit never waits for care, and never fails because of it. Failures are logged, and retried after a later commit. A
forked child does no care: its parent does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition

import pyarrow as pa

from underlay.change.update.edit import FileAccess
from underlay.errors import InvalidRequest, UnderlayError
from underlay.index.root import Root
from underlay.maintain.care.look_after import has_surplus, look_after
from underlay.runtime.fork import start_afresh_after_fork
from underlay.table.care_settings import DEFAULT_KEEP_VERSIONS, read_settings
from underlay.table.open_table import OpenTable

LOG = logging.getLogger("underlay.care")
_CLOSE_SECONDS = 10.0
_LEAST_SURPLUS = 10


class AutoCare:
    """Looks after the tables of one lake in this process. Thread-safe."""

    def __init__(self, files: Callable[[], FileAccess], in_background: Callable[[Callable[[], None]], None]) -> None:
        self._files = files
        self._in_background = in_background
        self._open()
        self._seen: dict[str, tuple[int, int]] = {}
        """The file count and version of each table after its last care."""
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Do nothing in a forked child."""
        self._open()
        self._is_closed = True

    def committed(self, table: OpenTable, root: Root) -> None:
        """This process committed a version. Makes no request, and does not raise when the properties are invalid."""
        if self._is_closed:
            return
        try:
            is_due = self._is_due(table.name, root)
        except InvalidRequest:  # perhaps properties of a newer Underlay
            return
        if not is_due:
            return
        with self._changed:
            if table.name in self._running:
                return
            self._running.add(table.name)
        self._in_background(lambda: self._run(table))

    def close(self) -> None:
        """Start nothing more. Wait, up to a limit, until care under way reaches a point where it can stop."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._running, _CLOSE_SECONDS)

    def _open(self) -> None:
        self._changed = Condition()
        self._running: set[str] = set()
        self._is_closed = False

    def _is_due(self, name: str, root: Root) -> bool:
        settings = read_settings(root.definition.properties)
        files, version = self._seen.get(name, (0, -1))
        if settings.compact_after_files is not None and root.file_count - files >= settings.compact_after_files:
            return True
        keep = DEFAULT_KEEP_VERSIONS if settings.keep_versions is None else settings.keep_versions
        return has_surplus(settings, root) and (version < 0 or root.version - version > max(keep // 2, _LEAST_SURPLUS))

    def _run(self, table: OpenTable) -> None:
        try:
            if self._is_closed:
                return
            done = look_after(table, self._files(), is_over=lambda: self._is_closed)
            root = table.head().root
            self._seen[table.name] = root.file_count, root.version
            if done.compacted is not None or done.expired is not None:
                LOG.debug("%s was looked after, version %s", table.name, root.version)
        except (UnderlayError, pa.ArrowException, OSError, MemoryError) as error:
            if not self._is_closed:
                LOG.warning("%s could not be looked after: %s", table.name, error)
        finally:
            with self._changed:
                self._running.discard(table.name)
                self._changed.notify_all()
