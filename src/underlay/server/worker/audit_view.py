"""`underlay.statements`: the audit log as a system view. Admins see all statements, other callers their own."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

_TEXT, _NUMBER = pa.string(), pa.int64()
_MOST_BYTES = 64 << 20
"""At most this much is read, from the end of a log: it may have grown for years."""


class StatementsView:
    """The newest statements in these logs, which are given oldest first. `caller` restricts them to one token; None
    shows all.
    """

    schema: pa.Schema = pa.schema([
        ("time", pa.timestamp("us", "UTC")), ("statement", _TEXT), ("token", _TEXT), ("name", _TEXT),
        ("request", _TEXT), ("engine", _TEXT), ("sql", _TEXT), ("tables", pa.map_(_TEXT, _NUMBER)), ("state", _TEXT),
        ("code", _TEXT), ("rows", _NUMBER), ("bytes", _NUMBER), ("run_ms", pa.float64()),
        ("tags", pa.map_(_TEXT, _TEXT)),
    ])  # type: ignore[arg-type]  # mypy joins the types of types  # fmt: skip

    def __init__(self, paths: Sequence[str], caller: str | None) -> None:
        self._paths = paths
        self._caller = caller

    def read(self, tables: Sequence[str], columns: Collection[str]) -> pa.Table:
        """All rows: they belong to no table."""
        found = [one for path in self._paths for one in _lines(path)]
        rows = [self._row(one) for one in found if self._caller in (None, one.get("token"))]
        return pa.Table.from_pylist(rows, schema=self.schema)

    def _row(self, line: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        pairs = {name: list((line.get(name) or {}).items()) for name in ("tables", "tags")}
        known = {name: line.get(name) for name in self.schema.names}
        return {**known, **pairs, "time": datetime.fromisoformat(line["time"])}


def _lines(path: str) -> Iterator[dict[str, Any]]:  # Any: JSON
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _MOST_BYTES:
                file.seek(size - _MOST_BYTES)
                file.readline()
            for line in file:
                try:
                    yield json.loads(line)
                except ValueError:  # half a line, as the disk was full
                    continue
    except FileNotFoundError:
        return
