"""Which text becomes a given text by lower() or upper(): few candidates, letter by letter, as DuckDB maps them."""

from __future__ import annotations

import os
from itertools import product

import duckdb

from underlay.local.implied.syntax import NotUnderstood
from underlay.runtime.locks import ProcessLock

_MOST_CANDIDATES = 64
_CASED_END = 0x20000
"""Letters beyond it have no case: ideographs, tags, private use."""
_CHANGED = (
    "SELECT chr(code::INTEGER), {function}(chr(code::INTEGER)) FROM range(1, $1) AS codes(code)"
    " WHERE code NOT BETWEEN 55296 AND 57343 AND {function}(chr(code::INTEGER)) <> chr(code::INTEGER)"
)
_lock = ProcessLock()
_origins: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {}


def candidates(connection: duckdb.DuckDBPyConnection, function: str, text: str) -> tuple[list[str], int]:
    """Every way in which text begins that the function turns into `text`, and how many characters that is.

    None when no text becomes it. All of them when they are few, else the ways of its first characters.
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
    """The letters that become each letter. Letters that are not in it come from themselves only."""
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
            for before in changed:  # does not stay itself
                found[before] = [one for one in found.get(before, []) if one != before]
            _origins[key] = {letter: tuple(sorted(letters)) for letter, letters in found.items()}
        return _origins[key]
