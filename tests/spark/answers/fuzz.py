"""Random tables and conditions on Spark: what is found by name is what is found in the same rows, unpruned.

python -m tests.spark.answers.fuzz --seconds 300 [--seed N]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import input_file_name

import underlay as ul
from tests.contract.pruning.kinds import KINDS
from tests.contract.worlds import delete_positions
from tests.gate import some
from underlay.prune import Instant
from underlay.spark.ranged.frame import ranged_frame
from underlay.spark.relation.relation import pin, read_table
from underlay.spark.types.spark_types import spark_schema

COLUMNS = tuple(
    name for name in KINDS if not name.startswith(("half", "uuid", "time_")) and not name.endswith(("_s", "_ns"))
)
"""The kinds that Spark's own reader has; the columns are named after them."""
TABLE = "fuzz.rows"
AT_ONCE = 25
"""Scans in one query: Catalyst takes more than twice as long for twice as many."""
_WIDE = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
_PATTERNS = ("%", "a%", "_", "", r"a\\_%", "%b", "\U0010ffff%", "a_", "%é%")
_OPAQUE = (
    "int32 % 3 = 2", "abs(int64 div 2) = 3", "double > float", "length(string) > 60", "upper(string) = 'A'",
    "coalesce(int16, 5) = 5", "date_add(date, 1) = date '1970-01-02'", "if(boolean, int8 > 0, double > 0)",
    "cast(uint32 as string) = '1'", "case when string is null then double < 0 else int8 < 0 end", "int8 = int16",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A condition that found other rows by name than in memory."""

    seed: int
    condition: str
    found: list[int]
    expected: list[int]


def fuzz_table(
    spark: SparkSession, folder: Path, seed: int, conditions: int, *, is_ranged: bool = False
) -> list[Mismatch]:
    """Make a table of this seed in the folder and ask it so many conditions, through Spark or the ranged reader.

    Of the conditions that Spark reads files for itself, `make test` runs some, and checks the choice of files of all.
    """
    pick = random.Random(seed)
    table, rows = _make_table(pick, folder)
    frame = ranged_frame(spark, pin(table)) if is_ranged else read_table(spark, ul.connect(folder / "lake"), TABLE)
    frame.createOrReplaceTempView("fuzz_table")
    wheres = ["true", *(make_condition(pick) for _ in range(conditions - 1))]
    expected = dict(zip(wheres, matching(in_memory(spark, rows, table), wheres), strict=True))
    assert expected["true"] == sorted(rows["n"].to_pylist())
    run = wheres if is_ranged else some(wheres)
    found = dict(zip(run, asked(spark, "fuzz_table", run), strict=True))
    if not is_ranged:
        found |= wrongly_dropped(frame, expected)
    return [
        Mismatch(seed=seed, condition=where, found=ours, expected=expected[where])
        for where, ours in found.items()
        if ours != expected[where]
    ]


def make_condition(pick: random.Random, depth: int = 2) -> str:
    """A leaf, or AND, OR and NOT over some."""
    choice = pick.random() if depth else 1.0
    if choice < 0.15:
        return f"not ({make_condition(pick, depth - 1)})"
    if choice < 0.45:
        word = pick.choice((" and ", " or "))
        return "(" + word.join(make_condition(pick, depth - 1) for _ in range(pick.randint(2, 3))) + ")"
    return pick.choice(_OPAQUE) if choice < 0.5 else _leaf(pick, pick.choice(COLUMNS))


def _leaf(pick: random.Random, column: str) -> str:
    def literal() -> str:
        return _sql(column, pick.choice(KINDS[column].literals))

    some = ", ".join([literal() for _ in range(pick.choice((1, 2, 3, 12)))] + ["null"] * (pick.random() < 0.2))
    forms = [
        *(f"{column} {op} {literal()}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
        f"{literal()} {pick.choice(('<', '>=', '='))} {column}",
        f"{column} in ({some})",
        f"{column} not in ({some})",
        f"{column} between {literal()} and {literal()}",
        f"{column} is null",
        f"{column} is not null",
    ]
    if column == "string":
        forms += [f"string like '{pick.choice(_PATTERNS)}'", f"startswith(string, {literal()})"] * 2
    if column in ("float", "double"):
        forms += [f"isnan({column})", f"{column} = {column}"]
    if column == "boolean":
        forms += ["boolean", "not boolean"]
    return pick.choice(forms)


def _sql(column: str, value: Any) -> str:
    """A literal as SQL has it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{'float' if column == 'float' and value != 0.1 else 'double'}('{value!r}')"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex()}'"
        case Instant(ns=ns):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1000)
            return f"{'timestamp' if 'tz' in column else 'timestamp_ntz'} '{moment.replace(tzinfo=None)}'"
        case date():
            return f"date '{value.isoformat()}'"
    return str(value)


def _make_table(pick: random.Random, folder: Path) -> tuple[ul.Table, pa.Table]:
    """A table of files of few values each, some of them registered, some rows deleted; and the rows that are left."""
    schema = pa.schema([*((name, KINDS[name].type) for name in COLUMNS), ("n", pa.int64())])
    properties = {"block_rows": pick.randint(1, 4)}
    by = [pick.choice([name for name in COLUMNS if name != "fixed"])] if pick.random() < 0.3 else []
    order = [pick.choice(COLUMNS)] if pick.random() < 0.5 else []
    table = ul.connect(folder / "lake").create_table(
        TABLE, schema, partition_by=by, sort_by=order, key=["int64", "string"], properties=properties
    )
    count = 0
    for number in range(pick.randint(2, 6)):
        rows = _rows(pick, count, pick.randint(1, 8))
        count += rows.num_rows
        if not by and pick.random() < 0.4:
            path = folder / f"{number}.parquet"
            pq.write_table(rows, path, **_writer_options(pick))
            table.register(str(path))
        else:
            table.append(rows)
    files = len(list(table.snapshot().files()))
    if pick.random() < 0.5:
        delete_positions(table, {pick.randrange(files): [0]})
    return table, table.to_arrow()


def _rows(pick: random.Random, begin: int, count: int) -> pa.Table:
    arrays = {}
    for name in COLUMNS:
        values = pick.choices(KINDS[name].values, k=pick.randint(1, 3)) + [None] * (pick.random() < 0.4)
        arrays[name] = KINDS[name].array(pick.choices(values, k=count))
    return pa.table({**arrays, "n": pa.array(range(begin, begin + count), pa.int64())})


def _writer_options(pick: random.Random) -> dict[str, Any]:
    return {
        "row_group_size": pick.choice((1, 3, 100)),
        "use_dictionary": pick.random() < 0.6,
        "write_statistics": pick.random() < 0.8,
        "write_page_index": pick.random() < 0.5,
        "data_page_version": pick.choice(("1.0", "2.0")),
        "store_decimal_as_integer": pick.random() < 0.5,
    }


def in_memory(spark: SparkSession, rows: pa.Table, table: ul.Table) -> DataFrame:
    """The rows with the columns of the table. PySpark takes no unsigned numbers."""
    fields = [field.with_type(_WIDE.get(field.type, field.type)) for field in rows.schema]
    return spark.createDataFrame(rows.cast(pa.schema(fields)), spark_schema(table.snapshot().schema)).coalesce(1)


def matching(frame: DataFrame, wheres: Sequence[str], key: str = "n") -> list[list[int]]:
    """The numbers of the rows that meet each condition: conditions are columns here, and nothing is pushed down."""
    rows = frame.selectExpr(key, *(f"({where}) as c{at}" for at, where in enumerate(wheres))).collect()
    return [sorted(row[0] for row in rows if row[at + 1]) for at in range(len(wheres))]


def wrongly_dropped(frame: DataFrame, expected: Mapping[str, Sequence[int]], key: str = "n") -> dict[str, list[int]]:
    """Of the conditions whose files do not hold all the rows that meet them, those rows that they do hold. No job: only
    the choice of files is asked for, which Spark makes when it plans."""
    holders = {row[0]: _name(row[1]) for row in frame.select(key, input_file_name()).collect()}
    wrong = {}
    for where, numbers in expected.items():
        files = chosen_files(frame.where(where))
        kept = [number for number in numbers if holders[number] in files]
        if kept != list(numbers):
            wrong[where] = kept
    return wrong


def chosen_files(frame: DataFrame) -> set[str]:
    """The names of the files that Spark would read."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = [leaf for leaf in map(leaves.apply, range(leaves.size())) if leaf.nodeName().startswith("Scan parquet")]
    found = set()
    for scan in scans:
        found |= {_name(file.filePath().urlEncoded()) for file in scan.selectedPartitions().toPartitionArray()}
    return found


def _name(path: str) -> str:
    return unquote(path).rpartition("/")[2]


def asked(spark: SparkSession, view: str, wheres: Sequence[str]) -> list[list[int]]:
    """The numbers of the rows that meet each condition, each on a scan of its own, some scans in one query."""
    found: list[list[int]] = [[] for _ in wheres]
    for begin in range(0, len(wheres), AT_ONCE):
        some = enumerate(wheres[begin : begin + AT_ONCE], begin)
        parts = [f"select {at} as q, n from {view} where {where}" for at, where in some]
        for at, number in spark.sql(" union all ".join(parts)).collect():
            found[at].append(number)
    return [sorted(numbers) for numbers in found]


def main() -> None:
    """Run for some time and say what was seen."""
    from underlay.spark.start.open_session import open_session

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--conditions", type=int, default=25)
    options = parser.parse_args()
    spark, deadline, seed = open_session(), time.monotonic() + options.seconds, options.seed
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            for mismatch in fuzz_table(spark, Path(folder), seed, options.conditions, is_ranged=seed % 4 == 0):
                print(mismatch, flush=True)
        seed += 1
    print(f"{seed - options.seed} tables of {options.conditions} conditions, seeds from {options.seed}")
    spark.stop()


if __name__ == "__main__":
    main()
