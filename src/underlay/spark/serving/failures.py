"""What Spark says when a statement fails, in words that may be shown: the message of an error that has a condition,
with its place in the text; of all others nothing, since they show paths, hosts and classes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # it has no types

_SAID = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s(.*?)\s*SQLSTATE: (\w{5})", re.DOTALL)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_MARKED = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==\n[^\n]*\n *(\^+)")
_MEMORY = ("OutOfMemoryError", "spark.driver.maxResultSize", "Java heap space", "SparkOutOfMemoryError")
_NO_SUCH_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
_PARAMETERS = ("UNBOUND_SQL_PARAMETER", "INVALID_SQL_ARG")
_NOT_FOR_CLIENTS = ("XX", "58", "KD", "08", "HY")
"""Classes of SQLSTATE that are about the server: internal errors, files, connections."""


class FailureKind(Enum):
    """Whose fault it is."""

    SYNTAX = "syntax_error"
    COLUMN = "unknown_column"
    TABLE = "table_not_found"
    PARAMETER = "bad_parameter"
    QUERY = "invalid_query"
    DATA = "failed_on_data"
    MEMORY = "memory_limit"
    ENGINE = "engine_failed"
    GONE = "engine_gone"


@dataclass(kw_only=True, eq=False)  # not frozen: Python sets the traceback of what is raised
class StatementFailure(Exception):  # what happened
    """A statement that failed on Spark. `line` and `column` count from 1, in the text as Spark was given it."""

    kind: FailureKind
    detail: str
    line: int | None = None
    column: int | None = None


def failure_of(error: Exception) -> StatementFailure:
    """An error that Spark raised."""
    text = str(error)
    if isinstance(error, Py4JNetworkError | OSError) or "CANNOT_OPEN_SOCKET" in text:
        return StatementFailure(kind=FailureKind.GONE, detail="the Spark process ended")
    if any(word in text for word in _MEMORY):
        return StatementFailure(kind=FailureKind.MEMORY, detail="the statement needs more memory than Spark has")
    said = _SAID.search(text)
    if said is None or said[3].startswith(_NOT_FOR_CLIENTS):
        return StatementFailure(kind=FailureKind.ENGINE, detail="Spark could not run the statement")
    place = _PLACE.search(text, said.end())
    marked = _MARKED.search(text, said.end())
    line, column = None, None
    if place is not None:
        line, column = int(place[1]), int(place[2]) + 1
    elif marked is not None:
        line, column = int(marked[1]), int(marked[2])
    return StatementFailure(kind=_kind(said[1], said[3]), detail=said[2].strip(), line=line, column=column)


def _kind(condition: str, state: str) -> FailureKind:
    if condition == "PARSE_SYNTAX_ERROR" or state == "42601":
        return FailureKind.SYNTAX
    if condition.startswith("UNRESOLVED_COLUMN"):
        return FailureKind.COLUMN
    if condition in _PARAMETERS:
        return FailureKind.PARAMETER
    if condition == _NO_SUCH_TABLE:
        return FailureKind.TABLE
    return FailureKind.QUERY if state.startswith(("42", "0A", "54")) else FailureKind.DATA
