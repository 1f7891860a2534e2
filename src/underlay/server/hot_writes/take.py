"""Takes the rows of one request: parsed, checked as a whole, then committed to each of its tables.

Nothing is written before everything is checked. Each table's rows are one append, so they are committed all or none; if
the disk fails between two tables, the answer says which of them have their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa

from underlay.change.files.row_checks import checks_of
from underlay.errors import InvalidRequest, NewColumn, SchemaMismatch, UnderlayError
from underlay.index.catalog import split_name
from underlay.ingest.json.read import read_json
from underlay.ingest.line_protocol.line import LineFault
from underlay.ingest.line_protocol.parse import LineProblem, LinesAlike, parse_lines, problem_at
from underlay.ingest.line_protocol.rows import measurement_rows, needed_columns
from underlay.ingest.line_protocol.values import Flavour
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.work.new_columns import new_columns_of_json
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.names import check_names
from underlay.schema.table_schema import TableSchema
from underlay.server.common.hot_settings import HotSettings
from underlay.server.common.problem import Problem, problem_of
from underlay.server.hot_writes.writers import HotWriters, OpenHotTable

_BODY = "the request"
_MOST_SHOWN = 100
MayWrite = Callable[[str], bool]


class LinesRefused(Exception):  # what happened
    """Some lines are wrong, so that none was taken."""

    def __init__(self, problems: Sequence[LineProblem]) -> None:
        super().__init__(problems[0].problem)
        self.problems = problems[:_MOST_SHOWN]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measurement:
    """The lines of one measurement, and the table that they go to: None before it is created."""

    table: str
    groups: list[LinesAlike]
    opened: OpenHotTable | None


class RowTaker:
    """Takes rows for one server. Its methods wait for the disk, so they run in threads."""

    def __init__(self, writers: HotWriters, settings: HotSettings) -> None:
        self._writers = writers
        self._settings = settings

    def take_lines(
        self, body: bytes, flavour: Flavour, precision: str, dataset: str | None, may_write: MayWrite, now_ns: int
    ) -> int:
        """Commit the rows of line protocol. Returns their number. Raises LinesRefused, Problem and UnderlayError."""
        parsed = parse_lines(body, flavour, precision, line_bytes=self._settings.line_bytes)
        if parsed.problems:
            raise LinesRefused(parsed.problems)
        found = [
            self._measurement(body, measurement, groups, dataset, may_write)
            for measurement, groups in parsed.measurements.items()
        ]
        ready: list[tuple[OpenHotTable, pa.Table]] = []
        problems: list[LineProblem] = []
        # tables that exist are checked before any is created or changed
        for one in sorted(found, key=lambda one: one.opened is None):
            if one.opened is None and problems:
                break
            if one.opened is not None:
                self._check_fit(body, one.opened, one.groups, now_ns, flavour, problems)
        if problems:
            raise LinesRefused(sorted(problems, key=lambda one: (one.line, one.column)))
        for one in found:
            opened, groups = self._with_columns(body, one)
            rows = measurement_rows(body, groups, opened.schema(), opened.time_name, now_ns, flavour)
            if rows.problems:
                problems += rows.problems
            else:
                ready.append((opened, rows.rows))
        if problems:
            raise LinesRefused(sorted(problems, key=lambda one: (one.line, one.column)))
        self._commit(ready)
        return parsed.row_count

    def take_json(self, body: bytes, table: str, may_write: MayWrite) -> int:
        """Commit objects, one in a line, to a table. Returns their number. Raises LinesRefused, Problem and
        UnderlayError."""
        _check_right(table, may_write)
        opened = self._writers.open(table) or self._create_for_json(body, table)
        for _ in range(2):
            try:
                rows, count = self._json_rows(body, opened)
                break
            except NewColumn:
                if self._settings.new_columns != "add":
                    raise
                reading = RowRules(schema=opened.schema(0.0), new_columns="add")
                self._writers.add_columns(opened, new_columns_of_json(Plain(BytesIO(body), _BODY), reading))
        else:
            raise SchemaMismatch("the columns of the table change too often", place=table, hint="Try again.")
        if count:
            self._commit([(opened, rows)])
        return count

    def _measurement(
        self, body: bytes, measurement: str, groups: list[LinesAlike], dataset: str | None, may_write: MayWrite
    ) -> _Measurement:
        table = table_name(measurement, dataset, self._settings.dataset)
        start = min(group.starts[0] for group in groups)
        try:
            split_name(table)
        except InvalidRequest as error:
            fault = LineFault(start, f"{table!r} is not a name for a table. {error.hint}", "invalid measurement")
            raise LinesRefused([problem_at(body, start, fault)]) from None
        _check_right(table, may_write)
        return _Measurement(table=table, groups=groups, opened=self._writers.open(table))

    def _check_fit(
        self,
        body: bytes,
        opened: OpenHotTable,
        groups: list[LinesAlike],
        now_ns: int,
        flavour: Flavour,
        problems: list[LineProblem],
    ) -> None:
        """Check the values of the columns that the table has."""
        schema, time_name = opened.schema(), opened.time_name
        known = [_only(group, set(schema.names)) for group in groups]
        problems += measurement_rows(body, known, schema, time_name, now_ns, flavour).problems

    def _with_columns(self, body: bytes, one: _Measurement) -> tuple[OpenHotTable, list[LinesAlike]]:
        """The table, created if need be, and with the columns that the lines need; or the lines without them."""
        if one.opened is None:
            time_name = self._settings.time_column
            columns = needed_columns(one.groups, (), time_name, is_new=True)
            self._check_new_names(body, one.groups, list(columns))
            from_arrow(pa.schema(list(columns.items())))
            opened = self._writers.create(one.table, pa.schema(list(columns.items())))
        else:
            opened = one.opened
        schema = opened.schema()
        new = needed_columns(one.groups, schema.names, opened.time_name, is_new=False)
        if not new:
            return opened, one.groups
        match self._settings.new_columns:
            case "ignore":
                return opened, [_only(group, set(schema.names)) for group in one.groups]
            case "add":
                self._check_new_names(body, one.groups, [*schema.names, *new])
                self._writers.add_columns(opened, pa.schema(list(new.items())))
        return opened, one.groups

    def _check_new_names(self, body: bytes, groups: list[LinesAlike], names: list[str]) -> None:
        """Names that a table can have, and that differ not only in case."""
        folded: dict[str, str] = {}
        start = min(group.starts[0] for group in groups)
        for name in names:
            other = folded.setdefault(name.casefold(), name)
            if other != name:
                problem = f"the columns {other} and {name} differ only in case"
                raise LinesRefused([problem_at(body, start, LineFault(start, problem, "invalid field"))])
        try:
            check_names(names, ())
        except SchemaMismatch as error:
            fault = LineFault(start, f"{error.place}: {error.problem}", "invalid field")
            raise LinesRefused([problem_at(body, start, fault)]) from None

    def _create_for_json(self, body: bytes, table: str) -> OpenHotTable:
        reading = RowRules(schema=TableSchema(fields=(), last_id=0), new_columns="add")
        columns = new_columns_of_json(Plain(BytesIO(body), _BODY), reading)
        time_name = self._settings.time_column
        if time_name not in columns.names or not pa.types.is_timestamp(columns.field(time_name).type):
            raise InvalidRequest(
                f"a new hot table needs a timestamp called {time_name}",
                place=table,
                found=", ".join(columns.names[:20]),
                hint='Send one in every object, such as "2026-11-19T12:00:00Z"; or create the table first.',
            )
        first = columns.field(time_name)
        rest = [field for field in columns if field.name != time_name]
        return self._writers.create(table, pa.schema([first, *rest]))

    def _json_rows(self, body: bytes, opened: OpenHotTable) -> tuple[pa.Table, int]:
        definition = opened.table.writable().head(0.0).root.definition
        reading = RowRules(
            schema=opened.schema(0.0), checks=checks_of(definition), new_columns=self._settings.new_columns
        )
        taken = list(read_json(Plain(BytesIO(body), _BODY), reading))
        problems = [
            LineProblem(
                line=one.line,
                column=1,
                problem=one.reason,
                reason=one.reason,
                text=one.raw[:200].decode(errors="replace"),
            )
            for part in taken
            for one in part.rejected
        ]
        if problems:
            raise LinesRefused(problems)
        rows = [part.rows for part in taken if part.rows.num_rows]
        return (pa.concat_tables(rows) if rows else pa.table({})), sum(part.num_rows for part in rows)

    def _commit(self, ready: list[tuple[OpenHotTable, pa.Table]]) -> None:
        failed = self._writers.append(ready)
        first = next((error for error in failed if error is not None), None)
        if first is None:
            return
        done = [opened.table.name for (opened, _), error in zip(ready, failed, strict=True) if error is None]
        if not done:
            raise first
        problem = problem_of(first)
        problem.detail = f"{problem.detail}; the rows of {', '.join(done)} were committed"
        raise problem


def table_name(measurement: str, dataset: str | None, default: str) -> str:
    """The table of a measurement: in the dataset of the request, else in its own, else in the server's."""
    if dataset:
        return f"{dataset}.{measurement}"
    return measurement if "." in measurement else f"{default}.{measurement}"


def _check_right(table: str, may_write: MayWrite) -> None:
    if not may_write(table):
        raise Problem(status=403, code="forbidden", detail=f"the token may not write to {table}")


def _only(group: LinesAlike, names: set[str]) -> LinesAlike:
    """The lines with these columns only."""
    kept = [name for name in group.rows.column_names if name in names]
    if len(kept) == len(group.rows.column_names):
        return group
    rows = group.rows.select(kept) if kept else pa.table({})
    return LinesAlike(
        starts=group.starts,
        tags=tuple(name for name in group.tags if name in names),
        forms={name: form for name, form in group.forms.items() if name in names},
        rows=rows,
        times=group.times,
    )


def error_of(error: BaseException) -> Problem:
    """Any error but LinesRefused, as a problem."""
    if isinstance(error, UnderlayError | Problem):
        return problem_of(error)
    raise error
