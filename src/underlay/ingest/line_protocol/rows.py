"""Rows of a table from the lines of one measurement: columns by name, values by the table's types, faults by line.

A table's column takes what can be meant by a form: any number form for a number, exactly, so `7i` fits a double and
`7.5` no bigint. A new column has the type of its first value. In QuestDB's flavour times are cut to the column's unit,
as QuestDB does; in InfluxDB's a time that the column cannot hold is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from underlay.errors import SchemaMismatch
from underlay.ingest.line_protocol.line import LineFault
from underlay.ingest.line_protocol.parse import LineProblem, LinesAlike, problem_at
from underlay.ingest.line_protocol.values import Flavour, Form
from underlay.ingest.rows.misfits import null_rows
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.cast.conform import conform, unfit_rows
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import ListOf, Scalar, Type, TypeKind
from underlay.values.no_rows import no_rows

_WHOLE = (
    TypeKind.INT8,
    TypeKind.INT16,
    TypeKind.INT32,
    TypeKind.INT64,
    TypeKind.UINT8,
    TypeKind.UINT16,
    TypeKind.UINT32,
    TypeKind.UINT64,
)
_REAL = (TypeKind.FLOAT32, TypeKind.FLOAT64, TypeKind.DECIMAL)
_TAKEN: dict[Form, tuple[TypeKind, ...]] = {
    Form.TAG: (TypeKind.STRING,),
    Form.TEXT: (TypeKind.STRING,),
    Form.FLOAT: (TypeKind.FLOAT32, TypeKind.FLOAT64),
    Form.BINARY_FLOAT: (TypeKind.FLOAT32, TypeKind.FLOAT64),
    Form.INTEGER: (*_WHOLE, *_REAL),
    Form.UNSIGNED: (*_WHOLE, *_REAL),
    Form.BOOLEAN: (TypeKind.BOOLEAN,),
    Form.MICROSECONDS: (TypeKind.TIMESTAMP,),
    Form.NANOSECONDS: (TypeKind.TIMESTAMP,),
    Form.DECIMAL: (TypeKind.DECIMAL,),
    Form.BINARY_DECIMAL: (TypeKind.DECIMAL,),
}
"""The kinds of columns that take values of a form; an array needs a list."""
_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRows:
    """The rows of a measurement in the order of its lines, and why some do not fit."""

    rows: pa.Table
    problems: tuple[LineProblem, ...]


def needed_columns(
    groups: Sequence[LinesAlike], known: Sequence[str], time_name: str, *, is_new: bool
) -> dict[str, pa.DataType]:
    """The columns that a table with these names lacks, by name, with the type of the first value of each."""
    found: dict[str, pa.DataType] = {}
    for group in sorted(groups, key=lambda one: one.starts[0]):
        for name in group.rows.column_names:
            if name not in known and name not in found and name != time_name:
                found[name] = _column_type(group.rows.column(name).type)
    if is_new:
        found = {time_name: _time_type(groups), **found}
    return found


def _column_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind) or pa.types.is_decimal256(kind):  # only nulls, or more digits than tables have
        return pa.decimal128(_DIGITS, 18)
    if pa.types.is_decimal(kind):  # later values have other numbers of digits
        return pa.decimal128(_DIGITS, max(kind.scale, 0))
    return kind


def _time_type(groups: Sequence[LinesAlike]) -> pa.DataType:
    """Nanoseconds if a time has them, else microseconds, which more engines read."""
    for group in groups:
        if group.times is not None and group.times.type.unit == "ns":
            numbers = group.times.cast(pa.int64()).to_numpy()
            if (numbers % 1000 != 0).any():
                return pa.timestamp("ns", "UTC")
    return pa.timestamp("us", "UTC")


def measurement_rows(
    body: bytes, groups: Sequence[LinesAlike], schema: TableSchema, time_name: str, now_ns: int, flavour: Flavour
) -> MeasurementRows:
    """The rows for a table, by its columns. A line without a time has `now_ns`. Names that the table lacks are
    faults."""
    problems: list[LineProblem] = []
    parts: list[pa.Table] = []
    starts: list[int] = []
    for group in groups:
        faults = list(_form_faults(body, group, schema, time_name))
        rows = _with_time(group, time_name, now_ns)
        if not faults:
            rows = _cut_times(rows, schema) if flavour is Flavour.QUESTDB else rows
            rows = _stored_types(rows, schema)
            faults = list(_value_faults(body, group, rows, schema))
        problems += [problem_at(body, start, fault) for start, fault in faults]
        if not problems:
            parts.append(conform(rows, schema))
        starts += group.starts
    problems.sort(key=lambda one: (one.line, one.column))
    if problems:
        return MeasurementRows(rows=no_rows(pa.schema([])), problems=tuple(problems))
    rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
    order = np.argsort(np.array(starts, np.int64), kind="stable")
    if (np.diff(order) < 0).any():
        rows = rows.take(order)
    return MeasurementRows(rows=rows, problems=())


def _with_time(group: LinesAlike, time_name: str, now_ns: int) -> pa.Table:
    times: AnyArray
    if group.times is None:
        times = pa.array([now_ns // 1000] * len(group.starts), pa.int64()).cast(pa.timestamp("us", "UTC"))
    else:
        times = group.times
    if not group.rows.num_columns:
        return pa.table({time_name: times})
    return group.rows.append_column(time_name, times)


def _cut_times(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Nanoseconds as whole microseconds where the column has no finer ones, rounded down."""
    for at, field in enumerate(rows.schema):
        column = next((one for one in schema.fields if one.name == field.name), None)
        if column is None or not isinstance(column.type, Scalar) or column.type.unit in (None, "ns"):
            continue
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            rows = rows.set_column(at, field.name, _floor(rows.column(at)))
    return rows


def _floor(column: AnyChunks) -> AnyArray:
    numbers = column.cast(pa.int64()).to_numpy()
    return pa.array(np.floor_divide(numbers, 1000), mask=column.is_null().to_numpy()).cast(pa.timestamp("us", "UTC"))


def _stored_types(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Columns without any value, and times in a column without a zone, with the table's type."""
    for at, field in enumerate(rows.schema):
        wanted = to_arrow_type(schema.column(field.name).type)
        is_plain_time = pa.types.is_timestamp(wanted) and wanted.tz is None and pa.types.is_timestamp(field.type)
        if pa.types.is_null(field.type):
            rows = rows.set_column(at, field.name, rows.column(at).cast(wanted))
        elif is_plain_time:  # line protocol counts from 1970 in UTC
            rows = rows.set_column(at, field.name, rows.column(at).cast(pa.timestamp(field.type.unit)))
    return rows


def _form_faults(
    body: bytes, group: LinesAlike, schema: TableSchema, time_name: str
) -> Iterator[tuple[int, LineFault]]:
    """Columns whose type takes no value of the form in which the group has them. The first line stands for all."""
    start = group.starts[0]
    known = {field.name: field.type for field in schema.fields}
    for name, form in group.forms.items():
        what = "tag" if name in group.tags else "field"
        if name == time_name:
            problem = f"the {what} {name} has the name of the table's time, which stands at the end of the line"
            yield start, _fault(body, start, name, problem)
        elif name not in known:
            yield start, _fault(body, start, name, f"the table has no column {name}")
        elif not _takes(known[name], form):
            problem = f"the {what} {name} is {_article(form)} here, and the table's column is {known[name]}"
            yield start, _fault(body, start, name, problem)


def _takes(kind: Type, form: Form) -> bool:
    if form is Form.ARRAY:
        return isinstance(kind, ListOf)
    return isinstance(kind, Scalar) and kind.kind in _TAKEN[form]


def _article(form: Form) -> str:
    return f"{'an' if form.value[0] in 'aeiou' else 'a'} {form.value}"


def _value_faults(
    body: bytes, group: LinesAlike, rows: pa.Table, schema: TableSchema
) -> Iterator[tuple[int, LineFault]]:
    """Values that the table's type cannot hold, and required columns without a value."""
    for field in schema.fields:
        if field.is_required and field.default is None and field.name not in rows.column_names:
            start = group.starts[0]
            yield start, LineFault(start, f"the table requires a value for {field.name}", "missing field")
    reasons = null_rows(rows, schema)
    try:
        reasons |= unfit_rows(rows, schema)
    except SchemaMismatch as error:
        reasons |= {0: error.problem if error.found is None else f"{error.problem} ({error.found})"}
    for row, reason in sorted(reasons.items()):
        start = group.starts[row]
        marks = {one: (f"column {one}:", f"column {format_column((one,))}:") for one in rows.column_names}
        name = next((one for one, mark in marks.items() if reason.startswith(mark)), None)
        yield start, _fault(body, start, name, reason)


def _fault(body: bytes, start: int, name: str | None, problem: str) -> LineFault:
    """At the first place in the line where the name stands; its escapes may hide it, then at the line's beginning."""
    end = body.find(b"\n", start)
    line = body[start : len(body) if end < 0 else end]
    found = [] if name is None else [line.find(mark + name.encode() + b"=") for mark in (b",", b" ")]
    places = [one + 1 for one in found if one >= 0]
    return LineFault(start + min(places, default=0), problem, "field type conflict")
