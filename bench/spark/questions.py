"""The queries that `bench.spark` asks. `{table}` stands for the table."""

from __future__ import annotations

from bench.spark.rows import SCHEMA, Dataset

SOME = "select count(*), sum(fare), max(account) from {table} where id between LOW and HIGH"
ROWS = "select id, fare from {table} where id between LOW and HIGH"


def one_block(sql: str, dataset: Dataset, seed: int) -> str:
    """The query, about rows of one row group, another one for each seed."""
    low, high = dataset.ids_within_one_block(seed)
    return sql.replace("LOW", str(low)).replace("HIGH", str(high))


def everything(where: str) -> str:
    """One number of each column."""
    numbers = [_number_of(field.name, str(field.type)) for field in SCHEMA]
    return f"select count(*), {', '.join(numbers)} from {{table}}{where}"


def _number_of(name: str, kind: str) -> str:
    match kind:
        case "string":
            return f"sum(length({name}))"
        case "bool":
            return f"sum(cast({name} as int))"
        case "date32[day]":
            return f"max(unix_date({name}))"
        case "timestamp[us, tz=UTC]":
            return f"max(unix_micros({name}))"
        case "int64":
            return f"max({name})"
    return f"sum({name})"
