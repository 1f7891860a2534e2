"""Exports in the background of a process that writes: after each of its commits, beside the next ones.

A commit never waits for an export, and never fails because of one. Failures are logged, and made good after a later
commit. Processes that export the same table take turns by the numbers of exports, and none replaces the export of a
newer version by that of an older one. A forked child exports nothing: its parent does.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Mapping
from functools import partial
from threading import Condition
from weakref import WeakSet

import pyarrow as pa

from underlay.errors import InvalidRequest, TableNotFound, UnderlayError
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.interop.export.exporting import export_version
from underlay.interop.exported.settings import kinds_of, settings_of
from underlay.runtime.fork import start_afresh_after_fork
from underlay.table.open_table import OpenTable

LOG = logging.getLogger("underlay.export")
_CLOSE_SECONDS = 10.0
_SAME_ROWS = (Operation.JOB, Operation.SWEEP, Operation.EXPIRE)
"""Commits after which the last export is as good."""
_open: WeakSet[AutoExport] = WeakSet()


class AutoExport:
    """Exports the tables of one lake in this process. Thread-safe."""

    def __init__(self, in_background: Callable[[Callable[[], None]], None], options: Mapping[str, str]) -> None:
        self._in_background = in_background
        self._options = options
        self._start()
        start_afresh_after_fork(self)
        _open.add(self)

    def start_afresh(self) -> None:
        """Do nothing in a forked child."""
        self._start()
        self._is_closed = True

    def committed(self, table: OpenTable, root: Root) -> None:
        """This process committed a version. Makes no request, and does not raise when the properties are invalid."""
        try:
            is_due = root.operation not in _SAME_ROWS and root.terminal is None and kinds_of(root.definition.properties)
        except InvalidRequest:  # perhaps of a newer Underlay
            return
        with self._changed:
            if not is_due or self._is_closed:
                return
            is_running = table.name in self._due
            self._due[table.name] = True
            if is_running:
                return
        self._in_background(partial(self._run, table))

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Start nothing more. Wait, up to a limit, until what was committed is exported."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._due, seconds)

    def _start(self) -> None:
        self._changed = Condition()
        self._due: dict[str, bool] = {}
        """Tables that are being exported; whether a version was committed since this began."""
        self._is_closed = False

    def _run(self, table: OpenTable) -> None:
        try:
            while self._is_due(table.name):
                self._export(table)
        finally:
            with self._changed:
                self._due.pop(table.name, None)
                self._changed.notify_all()

    def _is_due(self, name: str) -> bool:
        """Whether there is a version that this did not look at; if not, the table is no longer being exported."""
        with self._changed:
            is_due = self._due.get(name, False)
            if is_due:
                self._due[name] = False
            else:
                self._due.pop(name, None)
            return is_due

    def _export(self, table: OpenTable) -> None:
        try:
            head = table.head()
            properties = head.root.definition.properties
            for kind in kinds_of(properties):
                settings = settings_of(properties)
                export_version(table.snapshot(head), table.name, head, kind, settings, options=self._options)
        except TableNotFound:  # dropped meanwhile
            return
        except (UnderlayError, pa.ArrowException, OSError, MemoryError) as error:
            LOG.warning("%s could not be exported: %s", table.name, error)


def _close_all() -> None:
    """A process that ends waits for its exports: a program may be nothing but one commit."""
    for one in list(_open):
        one.close()


atexit.register(_close_all)
