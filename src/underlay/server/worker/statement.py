"""Runs one statement from the network on the lake, and reports the versions read and the types of the answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from underlay import __version__
from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.errors import Forbidden, InvalidRequest
from underlay.local.dataset.source import NamedScan
from underlay.local.sql.result import SqlResult
from underlay.local.text.time_travel import quoted
from underlay.server.access.rights import SYSTEM
from underlay.server.common.problem import Problem
from underlay.server.lockdown.check import CheckedStatement, Lockdown
from underlay.server.worker.audit_view import StatementsView
from underlay.server.worker.job import StatementJob, check_type
from underlay.values.no_rows import empty_batch

_LOST_IN_ARROW = re.compile(r"\b(UHUGEINT|TIME WITH TIME ZONE|BIT|BIGNUM|GEOMETRY|VARIANT)\b")
"""DuckDB's types that Arrow represents with fewer digits, or not at all."""
_UNSIGNED = "UHUGEINT"
_ANY_UNSIGNED = pa.decimal256(39, 0)
Parameters = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A statement whose first rows have arrived. `etag` is None for an answer that may differ the next time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    result: SqlResult
    versions: Mapping[str, int]
    etag: str | None
    is_change: bool
    scans: Sequence[NamedScan]


class StatementRunner:
    """Runs statements on one lake, for callers with different rights."""

    def __init__(self, lake: Lake, audits: Sequence[str] = ()) -> None:
        self._audits = audits
        self._lake = lake
        self.lockdown = Lockdown()
        self.lockdown.check("select abs(1)", ())  # loads the engine's list of functions, once
        self.scans: Sequence[NamedScan] = ()
        """The scans of the running statement."""

    def begin(self, job: StatementJob) -> Begun:
        """Check, plan and run a statement up to its first rows. Raises the statement's error."""
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
        parameters = self._parameters(job.parameters)
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
            result=result,
            versions=dict(sorted(limited.read_versions.items())),
            etag=_etag(job, checked, limited.read_versions),
            is_change=checked.is_change,
            scans=limited.scans,
        )

    def _parameters(self, given: Parameters) -> Parameters:
        """Values for placeholders. The engine casts those that name a type."""
        if given is None:
            return None
        if isinstance(given, Mapping):
            return {name: self._value(value) for name, value in given.items()}
        return [self._value(value) for value in given]

    def _value(self, value: object) -> object:
        if not isinstance(value, dict):
            return value
        if set(value) != {"value", "type"}:
            raise InvalidRequest('a parameter is a value, or {"value": …, "type": …}', found=str(sorted(value))[:80])
        kind = check_type(value["type"])
        try:
            return self.lockdown.cast(value["value"], kind)
        except InvalidRequest as error:  # its cause would be mistaken for an error in the statement
            detail = f"{error.problem} (found {error.found})"
            raise Problem(status=400, code="bad_parameter", detail=detail) from None


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


def _etag(job: StatementJob, checked: CheckedStatement, versions: Mapping[str, int]) -> str | None:
    """Identifies this answer: the same text on the same versions, in the same format, with the same rights."""
    if not checked.is_stable:
        return None
    known = {
        "underlay": __version__,
        "sql": job.sql,
        "parameters": job.parameters,
        "versions": sorted(versions.items()),
        "limit": job.row_limit,
        "salt": job.salt,
    }
    text = json.dumps(known, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]}"'


def _again(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
