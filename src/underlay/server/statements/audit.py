"""The audit log: who ran what, when, on which versions, and how it ended; one JSON object a line."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from underlay.errors import from_os_error
from underlay.server.formats.encode import json_text
from underlay.server.statements.statement import RunStatement

_log = logging.getLogger(__name__)


class AuditLog:
    """A file that only grows, or None for none. A line is one write, so that several servers may share it."""

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise from_os_error(error, str(path)) from None

    def write(self, statement: RunStatement) -> None:
        """A statement that ended."""
        if self._file is None:
            return
        line = {
            "time": datetime.now(UTC).isoformat(),
            "statement": statement.id,
            "token": statement.owner.id,
            "name": statement.owner.name,
            "request": statement.kind,
            "sql": statement.request.sql,
            "tables": statement.versions,
            "state": statement.state.value,
            "code": None if statement.problem is None else statement.problem.code,
            "rows": statement.rows,
            "bytes": statement.bytes,
            "run_ms": statement.run_ms,
            "tags": dict(statement.request.tags),
        }
        try:
            os.write(self._file, f"{json_text(line)}\n".encode())
        except OSError as error:  # the statement has ended: its answer must not break off for that
            _log.error("the audit log misses statement %s: %s", statement.id, error)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
