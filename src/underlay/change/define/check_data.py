"""Checks that a table's existing rows fit its new definition: nulls, checks, and values in wider types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replaced

import pyarrow.compute as pc
from msgspec.structs import replace

from underlay.change.update.edit import FileAccess
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.index.root import Definition
from underlay.index.segment.segment import Segment
from underlay.prune import TRUE, IsNull, Predicate
from underlay.prune.predicates.operand import format_column
from underlay.runtime.locks import cached_property
from underlay.scan.query import Query, RestFilter, count_matches
from underlay.schema.cast.conform import conform
from underlay.schema.record import from_record, to_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind
from underlay.table.versions.snapshot import Snapshot

ReadCondition = Callable[[str, Snapshot], tuple[Predicate, pc.Expression | RestFilter | None, tuple[str, ...]]]
"""Reads a condition: returns its predicate for the planner, the rest for an engine to apply, and the columns of the
rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """What reading the rows takes."""

    files: FileAccess
    read_condition: ReadCondition


class _Preview(Snapshot):
    """The files of a version with other columns; the bounds of its tail still have the old types."""

    def __init__(self, given: Snapshot, definition: Definition) -> None:
        super().__init__(given.store, given.keys, replace(given.root, definition=definition), given.load_segment)
        self._given = given

    @cached_property
    def tail(self) -> Segment:
        """The files that are in no segment, unchanged."""
        return self._given.tail


def check_data(check: DataCheck, snapshot: Snapshot, definition: Definition) -> bool:
    """Whether the answer depends on the rows. Raises SchemaMismatch when they do not fit the definition.

    Rows that statistics prove to fit are not read.
    """
    before, after = snapshot.schema, from_record(definition.schema)
    old_checks = snapshot.definition.checks
    new_checks = {name: text for name, text in definition.checks.items() if old_checks.get(name) != text}
    is_file_bound = _check_groups(snapshot, before, after)
    required = [path for path in _newly_required(before, after) if snapshot.root.row_count]
    widened = [field for field in after.fields if _may_overflow(before, field)] if snapshot.root.row_count else []
    preview = _Preview(snapshot, replace(definition, schema=to_record(_relaxed(before, after))))
    for name, text in definition.checks.items() if before != after else new_checks.items():
        _check_condition(check, preview, name, text, is_new=name in new_checks)
    for path in required:
        _check_nulls(check, preview, path, after)
    for field in widened:
        for _ in _query(check, preview, (field.name,)).batches():
            pass  # reading casts every value, and raises for one that does not fit
    return bool(new_checks or required or widened or is_file_bound)


def _check_groups(snapshot: Snapshot, before: TableSchema, after: TableSchema) -> bool:
    """Whether a nested column loses all its current fields, so that files of appends in progress would lack all of
    them.

    A file shows where a struct, list or map is null only through the fields in it: if the table has none of them left,
    its rows would read as null. Raises InvalidRequest when there is such a file.
    """
    leaves = {field.id: _leaf_ids(field) for _, field in _every(before.fields, ())}
    is_bound = False
    for path, field in _every(after.fields, ()):
        had, kept = leaves.get(field.id, frozenset()), _leaf_ids(field)
        if isinstance(field.type, Scalar) or had <= kept:
            continue
        is_bound = is_bound or had.isdisjoint(kept)
        layouts = {
            layout.id
            for layout in snapshot.root.layouts
            if had.intersection(layout.fields) and kept.isdisjoint(layout.fields)
        }
        count = sum(file.layout in layouts for file in snapshot.files()) if layouts else 0
        if count:
            raise InvalidRequest(
                "the last fields of a nested column that a file has cannot be dropped",
                place=format_column(path),
                found=f"{count} {'file has' if count == 1 else 'files have'} no other field of it",
                hint="The column would read as null in that file. Add the new fields, rewrite the rows with "
                "table.overwrite(table.scan()), then drop the old ones.",
            )
    return is_bound


def _leaf_ids(field: Field) -> frozenset[int]:
    return frozenset(part.id for _, part in _every((field,), ()) if isinstance(part.type, Scalar))


def _check_condition(check: DataCheck, preview: Snapshot, name: str, text: str, *, is_new: bool) -> None:
    """Verify that a check parses with these columns and, if it is new, that no row contradicts it; null does not."""
    try:
        predicate, rest, columns = check.read_condition(f"NOT (\n{text}\n)", preview)
    except InvalidRequest as error:
        raise type(error)(f"check {name}: {error.problem}", found=text, hint=error.hint) from error
    if not is_new:
        return
    query = _query(check, preview, (), predicate, rest, columns)
    count = count_matches(query)
    if count:
        raise SchemaMismatch(
            f"{count} {'row contradicts' if count == 1 else 'rows contradict'} the check {name}",
            expected=text,
            hint=f"Correct them first. To find them, scan where not ({text}).",
        )


def _check_nulls(check: DataCheck, preview: Snapshot, path: tuple[str, ...], after: TableSchema) -> None:
    field = after.column(path[0])
    if path == (field.name,) and isinstance(field.type, Scalar):
        count = count_matches(_query(check, preview, (), IsNull(path)))
        if count:
            raise SchemaMismatch(
                "the column has nulls",
                place=format_column(path),
                expected="a value in every row",
                found=f"{count} {'null' if count == 1 else 'nulls'}",
                hint="Fill them, or delete these rows first.",
            )
        return
    wanted = TableSchema(fields=(field,), last_id=after.last_id)
    for batch in _query(check, preview, (field.name,)).batches():
        conform(batch, wanted)


def _query(
    check: DataCheck,
    snapshot: Snapshot,
    columns: tuple[str, ...],
    predicate: Predicate = TRUE,
    rest: pc.Expression | RestFilter | None = None,
    rest_columns: tuple[str, ...] = (),
) -> Query:
    return Query(
        snapshot=snapshot,
        columns=columns,
        stores=check.files.stores,
        cache=check.files.cache,
        predicate=predicate,
        rest=rest,
        rest_columns=rest_columns,
    )


def _newly_required(before: TableSchema, after: TableSchema) -> Iterator[tuple[str, ...]]:
    known = {field.id: field for _, field in _every(before.fields, ())}
    for path, field in _every(after.fields, ()):
        old = known.get(field.id)
        if field.is_required and (not old.is_required if old is not None else field.default is None):
            yield path


def _relaxed(before: TableSchema, after: TableSchema) -> TableSchema:
    """The columns without requirements that did not apply when the rows were written."""
    known = {field.id: field.is_required for _, field in _every(before.fields, ())}
    return replaced(after, fields=tuple(_relax(field, known) for field in after.fields))


def _relax(field: Field, known: dict[int, bool]) -> Field:
    is_required = field.is_required and known.get(field.id, False)
    match field.type:
        case StructOf(fields):
            return replaced(field, is_required=is_required, type=StructOf(tuple(_relax(f, known) for f in fields)))
        case ListOf(element):
            return replaced(field, is_required=is_required, type=ListOf(_relax(element, known)))
        case MapOf(key, value):
            return replaced(field, is_required=is_required, type=MapOf(key, _relax(value, known)))
    return replaced(field, is_required=is_required)


def _may_overflow(before: TableSchema, field: Field) -> bool:
    """Whether a leaf of a column has a finer unit than before, in which distant times may overflow."""
    known = before.leaf_by_id
    for _, part in _every((field,), ()):
        old = known.get(part.id)
        is_time = isinstance(part.type, Scalar) and part.type.kind in (TypeKind.TIMESTAMP, TypeKind.TIME)
        if is_time and old is not None and old.type != part.type:
            return True
    return False


def _every(fields: tuple[Field, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in fields:
        path = (*above, field.name)
        yield path, field
        match field.type:
            case StructOf(inner):
                yield from _every(inner, path)
            case ListOf(element):
                yield from _every((element,), path)
            case MapOf(key, value):
                yield from _every((key, value), path)
