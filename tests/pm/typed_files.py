"""Parquet files with a column of every type, written by pyarrow and by DuckDB.

Row groups 0 to 3 are sorted, group 4 mixes values of all of them with the type's edges and nulls, group 5 is all null.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.prune.oracles.duckdb_sql import duckdb_sql

SORTED, MIXED, NULL = range(4), 4, 5
GROUPS = 6
GROUP_ROWS = {"pyarrow": 24, "duckdb": 2048}
"""Rows of each row group. DuckDB's are whole vectors."""

DUCKDB = {"threads": 1, "autoload_known_extensions": False}
"""Without its extension for zones DuckDB compares times in UTC, whatever the machine is set to."""

EPOCH = datetime(1970, 1, 1)
NAN = float("nan")


@dataclass(frozen=True)
class Kind:
    """A column: `at(x)` grows with x from 0 to 1; `edges` occur in the mixed group; `asked` are further literals."""

    type: pa.DataType
    at: Callable[[float], Any]
    edges: tuple[Any, ...] = ()
    asked: tuple[Any, ...] = ()
    ambiguous: bool = False
    """Whether a sidecar alone does not tell what its order is."""
    holds_nan: bool = False


def integers(bits: int, signed: bool) -> Kind:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return Kind(
        {True: pa.int64, False: pa.uint64}[signed]()
        if bits == 64
        else getattr(pa, f"{'' if signed else 'u'}int{bits}")(),
        lambda x: low + int(x * (1 << 20)) * (high - low) // (1 << 20),
        (low, high, 0, 1),
        (low - 1, high + 1, 1 << 31, (1 << 31) - 1, -1, Decimal("0.5"), 7.0, Decimal("-3.000")),
        ambiguous=bits >= 32 or not signed,
    )


def decimals(precision: int, scale: int) -> Kind:
    top = 10**precision - 1

    def at(x: float) -> Decimal:
        return Decimal(f"{-top + 2 * top * int(x * 10**6) // 10**6}e-{scale}")

    half = Decimal(f"5e-{scale + 1}")
    return Kind(pa.decimal128(precision, scale), at, (at(0), at(1), Decimal(0)), (half, -half, 1, -1, Decimal("1.000")))


def floats(type_: pa.DataType) -> Kind:
    inf = float("inf")
    edges = (NAN, 0.0, -0.0, inf, -inf, 0.1, 1.5)
    return Kind(
        type_, lambda x: int(x * 8192) / 4 - 1024, edges, (0, Decimal("0.1"), 0.1, -0.0, NAN, 1e300), holds_nan=True
    )


def timestamps(unit: str, zone: str | None = None) -> Kind:
    step = timedelta(milliseconds=1) if unit == "ms" else timedelta(microseconds=1)
    origin = EPOCH if zone is None else EPOCH.replace(tzinfo=UTC)

    def at(x: float) -> datetime:
        return origin + timedelta(days=-9000) + int(x * 10**6) * timedelta(seconds=1451) + 7 * step

    near = at(0.4) + timedelta(microseconds=1)
    return Kind(
        pa.timestamp(unit, zone), at, (origin, origin - step), (near, date(1984, 2, 29), "1999-12-31 23:59:59.5")
    )


def clocks(unit: str) -> Kind:
    def at(x: float) -> time:
        return (EPOCH + int(x * 10**6) * timedelta(milliseconds=86)).time()

    noon = time(12, 0, 0, 500 if unit == "us" else 1_000)
    type_ = pa.time32(unit) if unit == "ms" else pa.time64(unit)
    return Kind(type_, at, (time.min, noon), (time.max, time(12, 0, 0, 1), "12:00:00.0015", "23:59"), ambiguous=True)


ALPHABET = ["", "a", "é", "\uffff", "\U00010000", "\U0010ffff", "a\x00", "b" * 100, "zz ", "Z"]

KINDS = {
    "bool": Kind(pa.bool_(), lambda x: x >= 0.5, (True, False)),
    **{
        f"{'' if signed else 'u'}int{bits}": integers(bits, signed)
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    },
    "float": floats(pa.float32()),
    "double": floats(pa.float64()),
    "decimal_int32": decimals(9, 2),
    "decimal_int64": decimals(18, 4),
    "decimal_wide": decimals(30, 3),
    "date": Kind(
        pa.date32(), lambda x: date(1950, 1, 1) + timedelta(days=int(x * 30_000)), asked=(EPOCH, "2001-02-03")
    ),
    "ts_ms": timestamps("ms"),
    "ts_us": timestamps("us"),
    "ts_ns": timestamps("ns"),
    "ts_ms_utc": timestamps("ms", "UTC"),
    "ts_us_utc": timestamps("us", "UTC"),
    "time_ms": clocks("ms"),
    "time_us": clocks("us"),
    "text": Kind(pa.string(), lambda x: f"{int(x * 10**6):07d}", (*ALPHABET,), (*ALPHABET, "0500000x")),
    "long_text": Kind(pa.string(), lambda x: f"{int(x * 10**6):07d}{'é' * 200}", (*ALPHABET,), ("b" * 60, "é" * 33)),
    "binary": Kind(
        pa.binary(), lambda x: int(x * 10**6).to_bytes(3, "big"), (b"", b"\xff" * 40, b"\x00"), (b"\x80", b"\x7f\xff")
    ),
    "fixed": Kind(
        pa.binary(4),
        lambda x: int(x * 10**6 * 4000).to_bytes(4, "big"),
        (bytes(4),),
        (b"\x80", b"\xff" * 5),
        ambiguous=True,
    ),
    "uuid": Kind(pa.uuid(), lambda x: UUID(int=int(x * 10**6) << 108), (UUID(int=0), UUID(int=2**128 - 1))),
}
ORDERED = [name for name in KINDS if name != "bool"]


def column_values(kind: Kind, group_rows: int, seed: int) -> list[Any]:
    """The values of all six row groups."""
    sorted_rows = group_rows * len(SORTED)
    values = [kind.at(row / sorted_rows) for row in range(sorted_rows)]
    chooser = random.Random(seed)
    pool = [*chooser.sample(values, 10), *kind.edges, None]
    mixed = [pool[row] if row < len(pool) else chooser.choice(pool) for row in range(group_rows)]
    return values + mixed + [None] * group_rows


def table(group_rows: int) -> pa.Table:
    columns = {
        name: pa.array(
            [v.bytes if isinstance(v, UUID) else v for v in column_values(kind, group_rows, seed)], kind.type
        )
        for seed, (name, kind) in enumerate(KINDS.items())
    }
    return pa.table(columns)


@dataclass(frozen=True)
class TypedFile:
    path: Path
    group_rows: int

    @cached_property
    def _rows(self) -> duckdb.DuckDBPyConnection:
        """The rows in memory, so that no statistic of the file takes part in an answer."""
        connection = duckdb.connect(config=DUCKDB)
        connection.execute(
            "CREATE TABLE t AS SELECT *, file_row_number // ? AS row_group"
            " FROM read_parquet(?, file_row_number = true)",
            [self.group_rows, str(self.path)],
        )
        return connection

    def matching_groups(self, where: str) -> list[int]:
        """The row groups with a row that matches, by DuckDB."""
        query = f"SELECT DISTINCT row_group FROM t WHERE {duckdb_sql(where)}"
        return sorted(group for (group,) in self._rows.execute(query).fetchall())


def write_typed_file(writer: str, folder: Path, *, blooms: Sequence[str] = ()) -> TypedFile:
    path, rows = folder / f"{writer}.parquet", GROUP_ROWS[writer]
    content = table(rows)
    if writer == "pyarrow":
        options = {name: {"ndv": 64, "fpp": 0.01} for name in blooms}
        pq.write_table(
            content, path, row_group_size=rows, store_decimal_as_integer=True, bloom_filter_options=options or None
        )
    else:
        with duckdb.connect(config=DUCKDB) as connection:
            connection.register("content", content)
            connection.execute(f"COPY content TO '{path}' (FORMAT PARQUET, ROW_GROUP_SIZE {rows})")
    return TypedFile(path, rows)
