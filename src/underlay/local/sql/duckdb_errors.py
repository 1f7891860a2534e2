"""Translates DuckDB's errors to our own."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

import duckdb

from underlay.errors import InvalidRequest, TableNotFound, Unavailable, UnderlayError

_NO_TABLE = re.compile(r"Table with name (.+?) does not exist")
_NO_FILE = re.compile(r'Cannot access file "(.+?)"')
_FILE_HINT = "SQL reads tables of the lake: append or ingest the file, or query both with lake.duckdb() in Python."
_ENVIRONMENT = (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.InternalException, duckdb.FatalException)


def from_duckdb(error: Exception, tables: Collection[str], named: Collection[str]) -> UnderlayError:
    """Our error with DuckDB's message, which shows the position in the text. `named` are the names a.b in the query."""
    message, _ = read_message(error)
    missing = _NO_TABLE.search(message)
    if isinstance(error, duckdb.CatalogException) and missing:
        name = missing[1].strip('"')
        return no_table(next((one for one in named if one.casefold().endswith(name.casefold())), name), tables)
    if isinstance(error, duckdb.PermissionException) and (file := _NO_FILE.search(message)):
        if file[1].casefold() in {one.casefold() for one in named}:  # DuckDB takes a.csv for a file
            return no_table(file[1], tables)
        return InvalidRequest("files cannot be read here", found=file[1], hint=_FILE_HINT)
    if isinstance(error, _ENVIRONMENT):
        return Unavailable(message)
    return InvalidRequest(message)


def read_message(error: BaseException) -> tuple[str, int | None]:
    """DuckDB's message, and the byte offset in the text, if the engine reports positions."""
    message = str(error)
    kind, found, rest = message.partition("{")
    if not found or not rest.startswith('"exception_type"'):
        return message, None
    try:
        told = json.loads(f"{{{rest}")
    except json.JSONDecodeError:
        return message, None
    if not isinstance(told, dict) or not isinstance(told.get("exception_message"), str):
        return message, None
    place = told.get("position")
    return f"{kind or told['exception_type'] + ' Error: '}{told['exception_message']}", int(place) if isinstance(
        place, str
    ) and place.isdecimal() else None


def no_table(name: str, tables: Collection[str]) -> TableNotFound:
    """The error for a missing table, with the most similar names."""
    from difflib import get_close_matches  # only here: most queries find their tables

    by_fold = {one.casefold(): one for one in tables} | {one.casefold().partition(".")[2]: one for one in tables}
    near = list(dict.fromkeys(by_fold[one] for one in get_close_matches(name.casefold(), by_fold)))
    hint = f"Did you mean {' or '.join(near)}?" if near else "Run SHOW TABLES to list the tables."
    return TableNotFound(f"there is no table {name}", hint=hint)
