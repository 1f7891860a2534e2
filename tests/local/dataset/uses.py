"""What other libraries do with a table's dataset. Run as a program, so that a crash ends only that.

Prints one JSON object: what each use answered, or its error.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import datafusion
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import acero

import underlay
from underlay.change.define.evolution import add_columns
from underlay.index.operation import Operation
from underlay.table.commit_change import commit_change

FOLDER = Path(tempfile.mkdtemp())
NAN = float("nan")


def table_with_a_past() -> underlay.Table:
    """i = 0 … 9 in three files without the 4; f is NaN for odd i and null for 0; `late` came with the third file."""
    table = underlay.connect(FOLDER / "lake").create_table(
        "a.b", "i bigint, f double, s string", properties={"block_rows": 2}
    )
    for begin, end in ((0, 3), (3, 6)):
        table.append(_rows(begin, end))
    opened = table.writable()
    file = opened.head().root.tail[1].location
    commit_change(opened, Operation.DELETE, lambda change: change.delete_rows(file, [1]))
    add_columns(opened, pa.schema([("late", pa.int64())]))
    table.append(_rows(6, 10).append_column("late", pa.array([1, 2, 3, None], pa.int64())))
    return table


def _rows(begin: int, end: int) -> pa.Table:
    numbers = range(begin, end)
    floats = [None if i == 0 else NAN if i % 2 else float(i) for i in numbers]
    return pa.table({"i": list(numbers), "f": pa.array(floats, pa.float64()), "s": [str(i) for i in numbers]})


ROWS = [0, 1, 2, 3, 5, 6, 7, 8, 9]
INT, FLOAT = pc.field("i"), pc.field("f")
TABLE = table_with_a_past()
DATASET = TABLE.dataset()


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows.column("i").to_pylist())


def written(data: object, name: str, **options: object) -> pa.Table:
    ds.write_dataset(data, FOLDER / name, format="parquet", **options)
    return ds.dataset(FOLDER / name, partitioning=options.get("partitioning")).to_table()


def fused(query: str) -> list[object]:
    context = datafusion.SessionContext()
    context.register_dataset("t", DATASET)
    batches = context.sql(query).collect()
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def ducked(query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("t", DATASET)
        return [list(row) for row in connection.execute(query).fetchall()]


def acero_scan(dataset: ds.Dataset, **options: object) -> pa.Table:
    return acero.Declaration("scan", acero.ScanNodeOptions(dataset, **options)).to_table()


def in_two_scans(scanner: ds.Scanner) -> list[list[int]]:
    return [numbers(scanner.to_table()), numbers(scanner.to_reader().read_all())]


OTHER = ds.dataset(pa.table({"i": [100], "f": [0.5], "s": ["x"], "late": pa.array([None], pa.int64())}))
MORE = pa.table({"i": [1, 2, 7], "z": [10, 20, 70]})

HIVE = ds.partitioning(pa.schema([("s", pa.string())]), flavor="hive")
NARROW = DATASET.scanner(columns=["f"])
LAST = DATASET.scanner(columns=["i"], filter=INT > 6)
BIG = [1, 3, 5, 6, 7, 8, 9]
LAZY = pl.scan_pyarrow_dataset(DATASET)


def polars_join() -> list[int]:
    joined = LAZY.join(pl.from_arrow(MORE).lazy(), on="i").select("z").collect()
    return joined["z"].sort().to_list()


def with_a_column() -> ds.Dataset:
    return DATASET.replace_schema(pa.schema([("i", pa.int64()), ("new", pa.string())]))


def fragments(filter_: pc.Expression | None = None) -> list[list[int]]:
    return [numbers(one.to_table(filter=filter_)) for one in DATASET.get_fragments(filter_)]


def inner_join(left: ds.Dataset, right: ds.Dataset) -> list[int]:
    return numbers(left.join(right, "i", join_type="inner").to_table())


def from_batches() -> pa.Table:
    return ds.Scanner.from_batches(DATASET.to_batches(), schema=DATASET.schema).to_table()


def over_a_scanner() -> object:
    return duckdb.arrow(DATASET.scanner(columns=["i"])).aggregate("sum(i)").fetchall()[0][0]


USES: dict[str, tuple[Callable[[], object], object]] = {
    "write_dataset": (lambda: numbers(written(DATASET, "w1")), ROWS),
    "write_dataset keeps late columns": (
        lambda: written(DATASET, "w1b").sort_by("i").column("late").to_pylist(),
        [None] * 5 + [1, 2, 3, None],
    ),
    "write_dataset of a filtered dataset": (
        lambda: numbers(written(DATASET.filter(FLOAT > 2), "w2")),
        BIG,
    ),
    "write_dataset of a scanner": (
        lambda: numbers(written(DATASET.scanner(columns=["i"], filter=INT > 6), "w3")),
        [7, 8, 9],
    ),
    "write_dataset in partitions": (
        lambda: numbers(
            written(DATASET, "w4", partitioning=ds.partitioning(pa.schema([("s", pa.string())]), flavor="hive"))
        ),
        ROWS,
    ),
    "write_dataset as ipc": (lambda: ds.write_dataset(DATASET, FOLDER / "w5", format="ipc"), None),
    "write_dataset in order": (lambda: written(DATASET, "w6", preserve_order=True).column("i").to_pylist(), ROWS),
    "scanner twice": (lambda: in_two_scans(DATASET.scanner()), [ROWS, ROWS]),
    "scanner counts": (lambda: DATASET.scanner(filter=FLOAT > 2).count_rows(), 7),
    "scanner without columns": (lambda: DATASET.scanner(columns=[]).to_table().num_rows, 9),
    "scanner of no rows": (lambda: DATASET.scanner(filter=INT > 99).to_table().num_rows, 0),
    "scanner with the same column twice": (lambda: DATASET.scanner(columns=["i", "i"]).to_table().num_columns, 2),
    "scanner head": (lambda: DATASET.scanner().head(3).column("i").to_pylist(), [0, 1, 2]),
    "scanner take": (lambda: DATASET.scanner().take([8, 0]).column("i").to_pylist(), [9, 0]),
    "scanner scan_batches": (lambda: sum(one.record_batch.num_rows for one in DATASET.scanner().scan_batches()), 9),
    "scanner of expressions": (
        lambda: DATASET.scanner(columns={"twice": INT * 2}, filter=INT > 7).to_table().to_pydict(),
        {"twice": [16, 18]},
    ),
    "scanner schemas": (
        lambda: [
            DATASET.scanner(columns=["f"]).projected_schema.names,
            DATASET.scanner(columns=["f"]).dataset_schema.names,
        ],
        [["f"], ["i", "f", "s", "late"]],
    ),
    "scanner in small batches": (lambda: max(b.num_rows for b in DATASET.scanner(batch_size=1).to_batches()), 1),
    "Scanner.from_dataset": (lambda: in_two_scans(ds.Scanner.from_dataset(DATASET)), [ROWS, ROWS]),
    "Scanner.from_dataset filters by Arrow's rules": (
        lambda: numbers(ds.Scanner.from_dataset(DATASET, columns=["i"], filter=FLOAT > 2).to_table()),
        [6, 8],
    ),
    "Scanner.from_dataset of a filtered one": (
        lambda: numbers(ds.Scanner.from_dataset(DATASET.filter(FLOAT > 2)).to_table()),
        BIG,
    ),
    "Scanner.from_dataset counts": (lambda: ds.Scanner.from_dataset(DATASET).count_rows(), 9),
    "Scanner.from_batches": (
        lambda: numbers(from_batches()),
        ROWS,
    ),
    "UnionDataset": (lambda: numbers(ds.UnionDataset(DATASET.schema, [DATASET, OTHER]).to_table()), [*ROWS, 100]),
    "ds.dataset of datasets": (lambda: numbers(ds.dataset([DATASET, DATASET]).to_table()), sorted(ROWS + ROWS)),
    "acero": (lambda: numbers(acero_scan(DATASET)), ROWS),
    "acero with columns": (lambda: numbers(acero_scan(DATASET, columns={"i": INT})), ROWS),
    "sort_by": (lambda: DATASET.sort_by([("i", "descending")]).to_table().column("i").to_pylist(), ROWS[::-1]),
    "sort_by of a filtered one": (lambda: numbers(DATASET.filter(INT < 2).sort_by("i").to_table()), [0, 1]),
    "join": (
        lambda: DATASET.join(ds.dataset(MORE), "i", join_type="inner").sort_by("i").to_table(columns=["z"]).to_pydict(),
        {"z": [10, 20, 70]},
    ),
    "join from the other side": (
        lambda: inner_join(ds.dataset(MORE), DATASET),
        [1, 2, 7],
    ),
    "join_asof": (
        lambda: DATASET.join_asof(ds.dataset(MORE), "i", [], 0).to_table().column("z").to_pylist(),
        [None, 10, 20, None, None, None, 70, None, None],
    ),
    "replace_schema": (
        lambda: with_a_column().to_table().num_rows,
        9,
    ),
    "get_fragments": (lambda: sum(one.count_rows() for one in DATASET.get_fragments()), 9),
    "get_fragments with a filter": (
        lambda: fragments(INT > 8),
        [[9]],
    ),
    "fragment scanner": (
        lambda: [numbers(one.scanner().to_table()) for one in DATASET.get_fragments()],
        [ROWS],
    ),
    "C++ fragments": (lambda: sum(one.to_table().num_rows for one in DATASET.children[0].get_fragments()), 9),
    "partition_expression": (lambda: str(DATASET.partition_expression), "true"),
    "take": (lambda: DATASET.take([1, 1], columns=["i"]).to_pydict(), {"i": [1, 1]}),
    "head": (lambda: DATASET.head(2, columns=["s"]).to_pydict(), {"s": ["0", "1"]}),
    "count_rows": (lambda: [DATASET.count_rows(), DATASET.count_rows(filter=FLOAT > 2)], [9, 7]),
    "to_batches": (lambda: numbers(pa.Table.from_batches(DATASET.to_batches())), ROWS),
    "pickle": (lambda: pickle.dumps(DATASET), "Unsupported"),
    "pickle of a union": (lambda: pickle.dumps(ds.dataset([DATASET])), "Unsupported"),
    "InMemoryDataset of batches": (lambda: ds.InMemoryDataset(list(DATASET.to_batches())).count_rows(), 9),
    "pandas": (lambda: pd.DataFrame(DATASET.to_table().to_pandas())["i"].tolist(), ROWS),
    "polars": (
        lambda: LAZY.filter(pl.col("f") > 2).select("i").collect()["i"].to_list(),
        BIG,
    ),
    "polars counts": (lambda: LAZY.select(pl.len()).collect().item(), 9),
    "polars joins": (
        lambda: (
            pl.scan_pyarrow_dataset(DATASET)
            .join(pl.from_arrow(MORE).lazy(), on="i")
            .select("z")
            .collect()["z"]
            .sort()
            .to_list()
        ),
        [10, 20, 70],
    ),
    "duckdb": (lambda: ducked("select i from t where f > 2 order by i"), [[1], [3], [5], [6], [7], [8], [9]]),
    "duckdb counts": (lambda: ducked("select count(*), count(late) from t"), [[9, 3]]),
    "duckdb joins it with itself": (lambda: ducked("select count(*) from t a join t b using (i)"), [[9]]),
    "duckdb over a scanner": (
        over_a_scanner,
        41,
    ),
    "datafusion counts": (lambda: fused("select count(*) from t"), [9]),
    "datafusion filters": (lambda: fused("select i from t where f > 2 order by i"), BIG),
    "datafusion by a late column": (lambda: fused("select i from t where late is not null order by i"), [6, 7, 8]),
    "datafusion text": (lambda: fused("select i from t where s in ('3', '4', '5') order by i"), [3, 5]),
    "datafusion joins": (lambda: fused("select count(*) from t a join t b on a.i = b.i"), [9]),
    "datafusion of no rows": (lambda: fused("select i from t where i > 99"), []),
}


def answers() -> dict[str, object]:
    found: dict[str, object] = {}
    for name, (use, _) in USES.items():
        try:
            found[name] = use()
        except Exception as error:  # noqa: BLE001  # an error is an answer
            found[name] = type(error).__name__ if name.startswith("pickle") else repr(error)
    return found


if __name__ == "__main__":
    print(json.dumps(answers()))
