"""The audit log: who ran what, when, on which versions, and how it ended; one JSON object a line."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from underlay.errors import from_os_error
from underlay.server.formats.encode import json_text
from underlay.server.statements.statement import RunStatement

_TURN_BYTES = 16 << 20
_log = logging.getLogger(__name__)


class AuditLog:
    """An append-only file. With `older`, a file that has grown large is moved there. Each line is one write, so that
    several servers may share the file.
    """

    def __init__(self, path: Path, older: Path | None = None) -> None:
        self._path = path
        self._older = older
        self._size = 0
        self._file: int | None = self._open()

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise from_os_error(error, str(self._path)) from None

    def write(self, statement: RunStatement) -> None:
        """Log a statement that ended."""
        if self._file is None:
            return
        line = {
            "time": datetime.now(UTC).isoformat(),
            "statement": statement.id,
            "token": statement.owner.id,
            "name": statement.owner.name,
            "request": statement.kind,
            "sql": statement.request.sql,
            "engine": statement.engine,
            "tables": statement.versions,
            "state": statement.state.value,
            "code": None if statement.problem is None else statement.problem.code,
            "rows": statement.rows,
            "bytes": statement.bytes,
            "run_ms": statement.run_ms,
            "tags": dict(statement.request.tags),
        }
        try:
            self._size += os.write(self._file, f"{json_text(line)}\n".encode(errors="backslashreplace"))
            if self._older is not None and self._size > _TURN_BYTES:
                self._turn()
        except OSError as error:  # the statement has ended: a failure here must not cut off its answer
            _log.error("the audit log misses statement %s: %s", statement.id, error)

    def _turn(self) -> None:
        os.replace(self._path, self._older or self._path)
        self.close()
        self._file, self._size = self._open(), 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
