"""Small sources with rows that add up, and some that are none."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from underlay.api.lake import Lake

ROWS = 50
BAD = 2
"""Rejected rows of each source."""
COLUMNS = "id bigint not null, name string"


def write_sources(folder: Path, count: int) -> list[str]:
    """CSV, compressed CSV and JSON lines in turn; ids go on from source to source."""
    folder.mkdir()
    return [_write(folder, number) for number in range(count)]


def _write(folder: Path, number: int) -> str:
    ids = range(number * ROWS, (number + 1) * ROWS)
    if number % 3 == 2:
        path = folder / f"{number:03}.jsonl"
        lines = [json.dumps({"id": id_, "name": f"n{id_}"}) for id_ in ids]
        path.write_text("\n".join([*lines, '{"id": "x"}', "{"]))
        return os.fspath(path)
    text = "\n".join(["id,name", *(f"{id_},n{id_}" for id_ in ids), "x,bad", "1,2,3"])
    path = folder / f"{number:03}.csv{'.gz' * (number % 3)}"
    path.write_bytes(gzip.compress(text.encode()) if number % 3 else text.encode())
    return os.fspath(path)


def check_once(lake: Lake, name: str, count: int) -> None:
    """Every row of so many sources is in the table once, and every rejected one beside it."""
    ids = sorted(lake.table(name).scan(["id"]).to_arrow()["id"].to_pylist())
    assert ids == list(range(count * ROWS))
    rejected = lake.table(f"{name}_rejected").to_arrow()
    places = set(zip(rejected["source"].to_pylist(), rejected["line"].to_pylist(), strict=True))
    assert len(places) == rejected.num_rows == count * BAD
