"""What the processes of a storm do to one table: append, upsert, compact, or expire and sweep, until a file is there.

    python -m tests.maintain.care.storm_program LAKE ROLE STOP

Prints when each step began and the seconds it took, as JSON. Any error ends the process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import underlay as ul
from underlay.api.table import Table

NAME = "shop.sales"
SCHEMA = "id bigint not null, step bigint"
PROPERTIES = {"care.reader_age": "10s"}
GRACE = "10s"
_APPENDED, _UPSERTED, _KEYS = 10, 20, 200
_FIRST = 1_000_000
"""Appended ids begin here; smaller ones are upserted."""

Steps = list[tuple[float, float]]


def _rows(ids: range, step: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "step": pa.array([step] * len(ids), pa.int64())})


def _upserted(step: int) -> range:
    begin = step * _UPSERTED % _KEYS
    return range(begin, begin + _UPSERTED)


def append(table: Table, step: int) -> None:
    first = _FIRST + step * _APPENDED
    table.append(_rows(range(first, first + _APPENDED), step))


def upsert(table: Table, step: int) -> None:
    table.upsert(_rows(_upserted(step), step))


def compact(table: Table, step: int) -> None:
    table.compact()


def clean(table: Table, step: int) -> None:
    table.expire("1s", 20, dry_run=False)
    table.vacuum("1s", 20, GRACE, dry_run=False)


ROLES: dict[str, tuple[Callable[[Table, int], None], float]] = {
    "append": (append, 0.1),
    "upsert": (upsert, 1),
    "compact": (compact, 0),
    "clean": (clean, 1),
}
"""What each does, and every how many seconds at most."""


def expected(appends: int, upserts: int) -> dict[int, int]:
    """The rows after so many steps."""
    found = {_FIRST + number: number // _APPENDED for number in range(appends * _APPENDED)}
    for step in range(upserts):
        found |= dict.fromkeys(_upserted(step), step)
    return found


def main(url: str, role: str, stop: Path) -> None:
    do, pause = ROLES[role]
    steps: Steps = []
    with ul.connect(url) as lake:
        table = lake.table(NAME)
        while not stop.exists():
            begun = time.monotonic()
            do(table, len(steps))
            seconds = time.monotonic() - begun
            steps.append((begun, seconds))
            time.sleep(max(pause - seconds, 0))
    print(json.dumps(steps))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
