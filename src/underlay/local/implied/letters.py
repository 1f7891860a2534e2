"""Finds the texts that lower() or upper() maps to a given text: a few candidates, letter by letter, as DuckDB maps
them.
"""

from __future__ import annotations

import os
from itertools import product

import duckdb

from underlay.local.implied.syntax import NotUnderstood
from underlay.runtime.locks import ProcessLock

_MOST_CANDIDATES = 64
_CASED_END = 0x20000
"""Characters beyond it have no case: ideographs, tags, private use."""
_CHANGED = (
    "SELECT chr(code::INTEGER), {function}(chr(code::INTEGER)) FROM range(1, $1) AS codes(code)"
    " WHERE code NOT BETWEEN 55296 AND 57343 AND {function}(chr(code::INTEGER)) <> chr(code::INTEGER)"
)
_lock = ProcessLock()
_origins: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {}


def candidates(connection: duckdb.DuckDBPyConnection, function: str, text: str) -> tuple[list[str], int]:
    """All prefixes that texts can begin with which the function maps to `text`, and the prefixes' length in characters.

    Empty when the function maps no text to it. The prefixes are whole texts if there are few, else only first
    characters.
    """
    origins = _read_origins(connection, function)
    choices: list[tuple[str, ...]] = []
    count = 1
    for letter in text:
        found = origins.get(letter, (letter,))
        if count * len(found) > _MOST_CANDIDATES:
            break
        count *= len(found)
        choices.append(found)
    return ["".join(letters) for letters in product(*choices)], len(choices)


def _read_origins(connection: duckdb.DuckDBPyConnection, function: str) -> dict[str, tuple[str, ...]]:
    """For each letter, the letters that are mapped to it. A letter that is not listed comes only from itself."""
    key = os.getpid(), function
    with _lock:
        if key not in _origins:
            rows = connection.execute(_CHANGED.format(function=function), [_CASED_END]).fetchall()
            if any(len(after) != 1 for _, after in rows):
                raise NotUnderstood("a letter that becomes several")
            found: dict[str, list[str]] = {}
            for before, after in rows:
                found.setdefault(after, [after]).append(before)
            changed = {before for before, _ in rows}
            for before in changed:  # it is not mapped to itself
                found[before] = [one for one in found.get(before, []) if one != before]
            _origins[key] = {letter: tuple(sorted(letters)) for letter, letters in found.items()}
        return _origins[key]
