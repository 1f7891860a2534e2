"""Which engine runs a statement, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from underlay.api.limited.limited_lake import LimitedLake
from underlay.errors import UnderlayError
from underlay.local.sql.run import is_change
from underlay.local.text.words import words_of
from underlay.schema.arrow_aliases import AnyType
from underlay.server.common.problem import Problem
from underlay.server.lockdown.agreement import agreement_of, tables_of
from underlay.server.lockdown.check import CheckedStatement
from underlay.server.worker.job import StatementJob
from underlay.server.worker.parameters import Parameters
from underlay.server.worker.scans import planned, sums_of

NOT_STARTED = "engine_unavailable"
"""The code of the problem that Spark does not start."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_TYPES: Mapping[str, AnyType] = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "HUGEINT": pa.decimal128(38, 0), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(),
    "BLOB": pa.binary(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}  # fmt: skip
_QUERIES = frozenset(("select", "with", "from", "values", "table", "("))


class EngineName(Enum):
    """An engine. `auto`: the server chooses."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


class EngineChoice(NamedTuple):
    """What runs a statement."""

    engine: EngineName
    reason: str


class SizedChoice(NamedTuple):
    """The same, and what the answer of Spark must be like: DuckDB's columns, and its order of nulls."""

    choice: EngineChoice
    schema: pa.Schema | None = None
    are_nulls_last: bool = False


def choose_engine(job: StatementJob, of_server: EngineName) -> EngineChoice:
    """The engine of a statement; `of_server` is what the server was started with. Raises Problem for one that it does
    not have."""
    asked = EngineName(job.engine)
    if asked is EngineName.SPARK and of_server is EngineName.DUCKDB:
        raise Problem(
            status=400, code="no_engine", detail="this server has no Spark", hint="Leave engine out, or ask for duckdb."
        )
    if asked is EngineName.DUCKDB:
        return EngineChoice(EngineName.DUCKDB, "asked for")
    if of_server is EngineName.DUCKDB:
        return EngineChoice(EngineName.DUCKDB, "this server has no other engine")
    if _changes(job.sql):
        return EngineChoice(EngineName.DUCKDB, "changes do not run on Spark")
    if asked is EngineName.SPARK:
        return EngineChoice(EngineName.SPARK, "asked for")
    if of_server is EngineName.SPARK:
        if _first_word(job.sql) in _QUERIES:
            return EngineChoice(EngineName.SPARK, "this server runs queries on Spark")
        return EngineChoice(EngineName.DUCKDB, "Spark runs queries only")
    return EngineChoice(EngineName.AUTO, "")


def choose_by_size(
    job: StatementJob, checked: CheckedStatement, limited: LimitedLake, parameters: Parameters, from_bytes: int
) -> SizedChoice:
    """The engine of a query for which the server chooses: Spark, if its plan reads much and both answer it alike."""
    if checked.tree is None:
        return SizedChoice(EngineChoice(EngineName.DUCKDB, "Spark runs queries only"))
    limit = _shown(from_bytes)
    known = {name.lower(): name for name in limited.names}
    named = [limited.table(known[name]) for name in tables_of(checked.tree) if name in known]
    whole = sum(table.snapshot().root.data_bytes for table in named)
    if not named or whole < from_bytes:
        return SizedChoice(EngineChoice(EngineName.DUCKDB, f"its tables have {_shown(whole)}, below {limit}"))
    columns = limited.plan_sql(job.sql, parameters)
    size = sums_of(planned(limited.scans))["bytes_read"]
    reads = f"its plan reads {_shown(size)}"
    if size < from_bytes:
        return SizedChoice(EngineChoice(EngineName.DUCKDB, f"{reads}, below {limit}"))
    found = agreement_of(job.sql, checked.tree)
    types = {name: _arrow_of(kind) for name, kind in columns.items()}
    unlike = next((columns[name] for name, kind in types.items() if kind is None), None)
    why_not = found.why_not or (f"Spark has no {unlike}" if unlike else None if types else "columns share a name")
    if why_not is not None:
        return SizedChoice(EngineChoice(EngineName.DUCKDB, f"{reads}, at least {limit}, but {why_not}"))
    schema = pa.schema([(name, kind) for name, kind in types.items() if kind is not None])
    choice = EngineChoice(EngineName.SPARK, f"{reads}, at least {limit}")
    return SizedChoice(choice, schema, found.are_nulls_last)


def agreed(found: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    """DuckDB's columns, if Spark's values are exact as them. Raises Problem."""
    if len(found) != len(wanted) or not all(map(_can_be, found.types, wanted.types)):
        detail = f"its columns are {', '.join(map(str, found.types))}"
        raise Problem(status=400, code="unlike_on_spark", detail=detail)
    return wanted


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows under these names and types."""
    if batch.schema == schema:
        return batch
    return pa.RecordBatch.from_arrays(list(map(pc.cast, batch.columns, schema.types)), schema=schema)


def _can_be(found: AnyType, wanted: AnyType) -> bool:
    if found == wanted:
        return True
    if isinstance(wanted, pa.Decimal128Type):
        if isinstance(found, pa.Decimal128Type):
            return bool(found.scale == wanted.scale and found.precision <= wanted.precision)
        return pa.types.is_integer(found) and wanted.scale == 0
    are_integers = pa.types.is_integer(found) and pa.types.is_integer(wanted)
    return bool(are_integers and found.bit_width <= wanted.bit_width)


def _arrow_of(kind: str) -> AnyType | None:
    """A type of DuckDB that Spark has too, as Arrow's."""
    decimal = _DECIMAL.fullmatch(kind)
    return _TYPES.get(kind) if decimal is None else pa.decimal128(int(decimal[1]), int(decimal[2]))


def _shown(size_bytes: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.1f} {name}"
    return f"{size_bytes} bytes"


def _changes(text: str) -> bool:
    try:
        return is_change(text)
    except UnderlayError:  # no text of DuckDB, perhaps one of Spark
        return False


def _first_word(text: str) -> str:
    try:
        return next((word.text.lower() for word in words_of(text)), "")
    except UnderlayError:
        return ""
