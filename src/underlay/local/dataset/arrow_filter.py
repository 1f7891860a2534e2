"""An Arrow filter as a predicate and a rest: what the planner and our own rules apply, and what only Arrow can.

Arrow hands out no tree of an expression, but its pickled form is one: a record batch of literals whose schema's
metadata lists calls, fields and literals in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce
from operator import and_
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from underlay.prune import TRUE, Predicate, columns_of, has_opaque
from underlay.prune.parse.arrow import from_arrow
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import And, Compare, Op

_HEADING = "-- schema metadata --\n"
_ENTRY = re.compile(r"(\w+): '(.*)'")
_AND = ("call", "and_kleene")
_NESTED = re.compile(r"\(FieldRef\.Nested\((.*)\) (>=?) [-+.0-9a-z]+\)")
_NAME = re.compile(r"FieldRef\.Name\((.*?)\)")
_BY_NUMBER = "FieldPath("

Entry = tuple[str, str]
_Build = Callable[[pa.Buffer], pc.Expression]


class SplitFilter(NamedTuple):
    """A filter is true where both parts are. NaN is the greatest value to `predicate`, as in DuckDB and Polars."""

    predicate: Predicate
    rest: pc.Expression | None


def split_filter(expression: pc.Expression, schema: pa.Schema) -> SplitFilter:
    """The filter's parts that translate as one predicate, the others as one expression."""
    whole = from_arrow(expression, schema)
    if not has_opaque(whole):
        return SplitFilter(whole, None)
    parts = [(part, _read(part, schema)) for part in conjuncts(expression)]
    known = tuple(predicate for _, predicate in parts if not has_opaque(predicate))
    rest = [part for part, predicate in parts if has_opaque(predicate)]
    return SplitFilter(And(known) if known else TRUE, reduce(and_, rest) if rest else None)


def named_columns(expression: pc.Expression, schema: pa.Schema) -> set[str]:
    """The top-level columns that an expression may need: all of them when it names one by its number."""
    if _BY_NUMBER in str(expression):
        return set(schema.names)
    return {path[0] for path in columns_of(from_arrow(expression, schema))}


def conjuncts(expression: pc.Expression) -> list[pc.Expression]:
    """The parts that AND joins, in order: the expression alone when it is not a conjunction or cannot be read."""
    try:
        build, literals = _pickled(expression)
    except pa.ArrowException:  # a column by its number, or a literal of a type without such a form
        return [expression]
    entries = _entries(literals.schema)
    if entries[:1] != [_AND] or not _is_whole(entries, literals.num_columns):
        return [expression]
    if str(_build(build, literals, entries)) != str(expression):
        return [expression]
    return [_build(build, literals, entries[begin:end]) for begin, end in _joined(entries, 0)]


def _read(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """The predicate of one part: also of a float inside a struct, to which Arrow's own rules for NaN do not fit."""
    found = from_arrow(expression, schema)
    nested = _NESTED.fullmatch(str(expression))
    if not has_opaque(found) or nested is None:
        return found
    path = tuple(_NAME.findall(nested[1]))
    if any(not name.isidentifier() for name in path) or not _is_float(schema, path):
        return found
    _, literals = _pickled(expression)
    return Compare(path, Op(nested[2]), literals.column(0)[0].as_py())


def _pickled(expression: pc.Expression) -> tuple[_Build, pa.RecordBatch]:
    """What makes an expression of its form, and the form. Raises ArrowException when it has none."""
    build, (buffer,) = cast("tuple[_Build, tuple[pa.Buffer]]", expression.__reduce__())
    with pa.ipc.open_file(buffer) as file:
        return build, file.get_batch(0)


def _is_float(schema: pa.Schema, path: ColumnPath) -> bool:
    kind: pa.DataType = pa.struct(list(schema))
    for name in path:
        if not isinstance(kind, pa.StructType) or kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    return pa.types.is_floating(kind)


def _entries(schema: pa.Schema) -> list[Entry]:
    """The pairs of the metadata in order, which `metadata` would not keep; none when a name has a line's end in it."""
    _, _, text = schema.to_string(truncate_metadata=False, show_field_metadata=False).partition(_HEADING)
    found = [_ENTRY.fullmatch(line) for line in text.split("\n")]
    return [(one[1], one[2]) for one in found if one] if all(found) else []


def _is_whole(entries: list[Entry], literal_count: int) -> bool:
    """Whether the pairs are one expression: Arrow reads past the end of what is not."""
    opened: list[str] = []
    for number, (key, value) in enumerate(entries):
        if number and not opened:
            return False
        if key == "call":
            opened.append(value)
        is_stray = key in ("literal", "options") and int(value) >= literal_count
        if is_stray or (key == "end" and opened.pop() != value):
            return False
    return not opened


def _build(build: _Build, literals: pa.RecordBatch, entries: list[Entry]) -> pc.Expression:
    metadata = pa.KeyValueMetadata(entries)  # type: ignore[arg-type]  # pairs keep repeated keys
    schema = literals.schema.with_metadata(metadata)  # type: ignore[arg-type]  # it takes these too
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as file:
        file.write_batch(pa.record_batch(literals.columns, schema=schema))
    return build(sink.getvalue())


def _joined(entries: list[Entry], begin: int) -> Iterator[tuple[int, int]]:
    """Where the parts of the conjunction at `begin` lie."""
    if entries[begin] != _AND:
        yield begin, _end(entries, begin)
        return
    at = begin + 1
    while entries[at][0] != "end":
        yield from _joined(entries, at)
        at = _end(entries, at)


def _end(entries: list[Entry], begin: int) -> int:
    """Where the part that begins here ends."""
    key, value = entries[begin]
    if key == "nested_field_ref":
        return begin + 1 + int(value)
    at = begin + 1
    if key == "call":
        while entries[at][0] != "end":
            at = _end(entries, at)
        at += 1
    return at
