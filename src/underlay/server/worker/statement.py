"""Runs one statement from the network on the lake, and reports the versions read and the types of the answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from underlay import __version__
from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.errors import Forbidden
from underlay.local.dataset.source import NamedScan
from underlay.local.text.time_travel import quoted
from underlay.server.access.rights import SYSTEM
from underlay.server.common.problem import Problem
from underlay.server.lockdown.check import CheckedStatement, Lockdown
from underlay.server.worker.audit_view import StatementsView
from underlay.server.worker.engines import (
    NOT_STARTED,
    EngineChoice,
    EngineName,
    agreed,
    as_schema,
    choose_by_size,
    choose_engine,
)
from underlay.server.worker.job import StatementJob
from underlay.server.worker.messages import Message
from underlay.server.worker.parameters import read_parameters
from underlay.server.worker.spark_rows import SparkRows
from underlay.values.no_rows import empty_batch

_LOST_IN_ARROW = re.compile(r"\b(UHUGEINT|TIME WITH TIME ZONE|BIT|BIGNUM|GEOMETRY|VARIANT)\b")
"""DuckDB's types that Arrow represents with fewer digits, or not at all."""
_UNSIGNED = "UHUGEINT"
_ANY_UNSIGNED = pa.decimal256(39, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A statement whose first rows have arrived. `etag` is None for an answer that may differ the next time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    close: Callable[[], None]
    versions: Mapping[str, int]
    etag: str | None = None
    is_change: bool = False
    choice: EngineChoice
    scans: Sequence[NamedScan] = ()
    planned: Message | None = None
    """What Spark says of its scans."""
    packed_scans: bytes = b""
    """The same for block maps."""


class StatementRunner:
    """Runs statements on one lake, for callers with different rights."""

    def __init__(
        self,
        lake: Lake,
        audits: Sequence[str] = (),
        engine: EngineName = EngineName.DUCKDB,
        spark_from_bytes: int = 0,
        ask_for_spark: Callable[[str], str] | None = None,
    ) -> None:
        self._audits = audits
        self._lake = lake
        self._engine = engine
        self._spark_from_bytes = spark_from_bytes
        self._ask_for_spark = ask_for_spark
        self.lockdown = Lockdown()
        self.lockdown.check("select abs(1)", ())  # loads the engine's list of functions, once
        self.scans: Sequence[NamedScan] = ()
        """The scans of the running statement."""
        self.spark: SparkRows | None = None
        """The running statement on Spark, if it runs there."""

    def begin(self, job: StatementJob) -> Begun:
        """Check, plan and run a statement up to its first rows. Raises the statement's error."""
        choice = choose_engine(job, self._engine)
        if choice.engine is EngineName.SPARK:
            return self._begin_on_spark(job, choice)
        limited = LimitedLake(
            self._lake,
            may_read=job.rights.may_read,
            may_write=lambda name: name.partition(".")[0].lower() != SYSTEM and job.rights.may_write(name),
            as_of=job.moment,
            token=job.token,
            views={"statements": StatementsView(self._audits, None if job.rights.is_admin else job.caller)},
        )
        self.scans = limited.scans
        checked = self.lockdown.check(job.sql, limited.names)
        if checked.is_change and not job.is_writable:
            raise Forbidden(
                "this request only reads", hint='Send a change by POST, to a server that was started with "--writable".'
            )
        parameters = read_parameters(self.lockdown, job.parameters)
        if choice.engine is EngineName.AUTO:
            sized = choose_by_size(job, checked, limited, parameters, self._spark_from_bytes)
            choice = sized.choice
            if sized.schema is not None:
                try:
                    asked = replace(job, are_nulls_last=sized.are_nulls_last)
                    return self._begin_on_spark(asked, choice, sized.schema)
                except Problem as problem:
                    if problem.status not in (400, 404) and problem.code != NOT_STARTED:
                        raise
                    choice = EngineChoice(EngineName.DUCKDB, f"{choice.reason}, but Spark refuses: {problem.detail}")
        result = limited.sql(job.sql, parameters)
        unlike = [_LOST_IN_ARROW.search(kind) is not None for kind in result.types or ()]
        casts: list[str] = []
        if any(unlike) and not checked.is_change:
            casts = list(result.types or ())
            text = _with_texts(job.sql, list(result.schema.names), unlike)
            result.close()
            result = limited.sql(text, parameters)
        numbers = {at for at, kind in enumerate(casts) if kind == _UNSIGNED}
        batches = (plain_batch(batch, numbers) for batch in result.to_batches())
        first = next(batches, None)
        schema = plain_batch(empty_batch(result.schema), numbers).schema if first is None else first.schema
        return Begun(
            schema=schema,
            batches=batches if first is None else _again(first, batches),
            close=result.close,
            versions=dict(sorted(limited.read_versions.items())),
            etag=_etag(job, checked, limited.read_versions, limited.hot_versions),
            is_change=checked.is_change,
            choice=choice,
            scans=limited.scans,
        )

    def _begin_on_spark(self, job: StatementJob, choice: EngineChoice, like: pa.Schema | None = None) -> Begun:
        """A statement on Spark; with `like` its answer has this schema. Raises Problem, of status 400 if it has not."""
        if self._ask_for_spark is None:
            raise ValueError("a runner without Spark cannot choose it")
        rows = SparkRows(self._ask_for_spark(choice.reason))
        self.spark = rows
        try:
            told = rows.begin(job)
            packed = rows.take(told["scans_bytes"])
            reader = rows.reader()
            schema = reader.schema if like is None else agreed(reader.schema, like)
            batches = (as_schema(batch, schema) for batch in reader)
            first = next(batches, None)
        except BaseException:
            rows.close()
            raise
        return Begun(
            schema=schema,
            batches=batches if first is None else _again(first, batches),
            close=rows.close,
            versions=dict(sorted(told["versions"].items())),
            choice=choice,
            planned={"sums": told["sums"], "plans": told["plans"]},
            packed_scans=packed,
        )


def plain_batch(batch: pa.RecordBatch, numbers: set[int]) -> pa.RecordBatch:
    """The rows without dictionaries, whose values may change from batch to batch, and with texts turned back into
    numbers.
    """
    columns = []
    for at, column in enumerate(batch.columns):
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        columns.append(pc.cast(column, _ANY_UNSIGNED) if at in numbers else column)
    fields = [pa.field(name, column.type) for name, column in zip(batch.schema.names, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _with_texts(sql: str, names: Sequence[str], unlike: Sequence[bool]) -> str:
    """The same query, with text for columns whose type Arrow lacks."""
    columns = [
        f"CAST(#{at} AS VARCHAR) AS {quoted(name)}" if is_text else f"#{at} AS {quoted(name)}"
        for at, (name, is_text) in enumerate(zip(names, unlike, strict=True), 1)
    ]
    return f"SELECT {', '.join(columns)} FROM (\n{sql.rstrip().rstrip(';')}\n) AS answer"


def _etag(
    job: StatementJob, checked: CheckedStatement, versions: Mapping[str, int], hot: Mapping[str, int]
) -> str | None:
    """Identifies this answer: the same text on the same versions, in the same format, with the same rights."""
    if not checked.is_stable:
        return None
    known = {
        "underlay": __version__,
        "sql": job.sql,
        "parameters": job.parameters,
        "versions": sorted(versions.items()),
        "hot": sorted(hot.items()),
        "limit": job.row_limit,
        "salt": job.salt,
    }
    text = json.dumps(known, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]}"'


def _again(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
