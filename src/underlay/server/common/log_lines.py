"""The log: text for people, or a JSON object a line for programs. No line has SQL, a token or a part of one."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

REQUESTS = "underlay.requests"
"""The logger of requests. The level of its lines is INFO."""
SERVER = "underlay.server"
"""The logger of what the server says of itself."""

_CUT = "ASGI callable returned without completing response."


class JsonLines(logging.Formatter):
    """One JSON object for each record: time, level, logger, message, and the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """A line without its end."""
        found: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


def is_no_cut(record: logging.LogRecord) -> bool:
    """Uvicorn calls it an error that an answer was cut, which is how clients learn of an error after the first rows."""
    return record.getMessage() != _CUT


def json_logging() -> dict[str, Any]:  # Any: as logging.config has it
    """Settings for `logging.config` that send everything to stderr as JSON."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {REQUESTS: {"level": "INFO"}, SERVER: {"level": "INFO"}},
    }
