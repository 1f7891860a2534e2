"""Seeded rows of 20 columns with ascending ids, as the benchmark of changes writes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DOUBLES = tuple(f"d{number}" for number in range(9))
INTEGERS = tuple(f"n{number}" for number in range(5))
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "ts": pa.timestamp("us"),
    **dict.fromkeys(DOUBLES, pa.float64()),
    **dict.fromkeys(INTEGERS, pa.int64()),
    **dict.fromkeys(("zone", "vendor", "note", "flag"), pa.string()),
}
SCHEMA = pa.schema([pa.field(name, type_, nullable=name != "id") for name, type_ in _TYPES.items()])
_ZONES = pa.array([f"zone {number}" for number in range(200)])
_FLAGS = pa.array(["Y", "N"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Files × blocks × rows, and how many rows a change has."""

    files: int = 20
    blocks: int = 5
    block_rows: int = 100_000
    changed: int = 1000
    rounds: int = 5

    @property
    def file_rows(self) -> int:
        """Rows of one file."""
        return self.blocks * self.block_rows

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.files * self.file_rows


def make_rows(ids: np.ndarray, seed: int) -> pa.Table:
    """A row for each id; other columns are random, by the seed."""
    chance = np.random.default_rng(seed)
    count = len(ids)
    columns: dict[str, object] = {"id": ids, "ts": pa.array(1_700_000_000_000_000 + ids * 1000, pa.timestamp("us"))}
    columns |= {name: np.round(chance.random(count) * 100, 2) for name in DOUBLES}
    columns |= {name: chance.integers(0, 10 ** (number + 1), count) for number, name in enumerate(INTEGERS)}
    columns["zone"] = _ZONES.take(chance.integers(0, len(_ZONES), count))
    columns["vendor"] = _ZONES.take(chance.integers(0, 7, count))
    columns["note"] = pa.array(np.char.add("note ", chance.integers(0, 10**6, count).astype(str)))
    columns["flag"] = _FLAGS.take(chance.integers(0, 2, count))
    return pa.table(columns, schema=SCHEMA)


def file_rows(scale: Scale, number: int) -> pa.Table:
    """The rows of one file."""
    first = number * scale.file_rows
    return make_rows(np.arange(first, first + scale.file_rows, dtype=np.int64), number)


def adjacent(scale: Scale, number: int) -> pa.Table:
    """The rows of a change that lie side by side; another place for each number."""
    first = (scale.rows * (2 * number + 1)) // 64 % (scale.rows - scale.changed)
    return make_rows(np.arange(first, first + scale.changed, dtype=np.int64), 10_000 + number)


def spread(scale: Scale, number: int) -> pa.Table:
    """The rows of a change that lie all over the table; other ones for each number."""
    step = scale.rows // scale.changed
    return make_rows(np.arange(scale.changed, dtype=np.int64) * step + number * 7 % step, 20_000 + number)
