"""Columns of a table of another system, and the field ids that they get in ours.

A column keeps its field id as long as its `key` stays, which survives renames where the source has ids or physical
names. If the source has ids of its own, ours are the same wherever possible: then other engines can read the files by
them through an export.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from underlay.index.intake.schema_match import ForeignNames
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

ELEMENT, KEY, VALUE = "element", "key", "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName:
    """What a column is called: `key` for ever, `source_id` and `names` in files."""

    key: str
    source_id: int | None = None
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class SourceColumns:
    """Columns as they are built, depth first: fields with provisional ids, their names by these ids, and what cannot be
    a column of ours."""

    fields: list[Field] = field(default_factory=list)
    names: dict[int, ColumnName] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def number(self, name: ColumnName) -> int:
        """A provisional id."""
        self.names[len(self.names) + 1] = name
        return len(self.names)

    def refuse(self, path: str, problem: str) -> Type:
        """Note a column that cannot be one of ours; returns a type that stands in for it."""
        self.problems.append(f"Column {path}: {problem}.")
        return Scalar(TypeKind.BOOLEAN)

    def by_name(self) -> dict[str, Field]:
        """The top-level columns by name."""
        return {one.name: one for one in self.fields}


@dataclass(frozen=True, kw_only=True)
class NumberedColumns:
    """The table's columns. `ids` are the final field ids by provisional ones, `known` those by key."""

    schema: TableSchema
    ids: Mapping[int, int]
    known: Mapping[str, int]
    naming: ForeignNames


def number_columns(
    columns: SourceColumns, known: Mapping[str, int], last_id: int, *, by_ids: bool, by_names: bool
) -> NumberedColumns:
    """Give each column the id that its key had before, else the source's own, else a new one."""
    found, ids = dict(known), {}
    taken = set(known.values())
    theirs = [one.source_id for one in columns.names.values() if one.source_id is not None]
    next_id = max([last_id, *taken, *theirs], default=0) + 1
    for provisional, one in columns.names.items():
        ident = found.get(one.key)
        if ident is None and one.source_id is not None and one.source_id > 0 and one.source_id not in taken:
            ident = one.source_id
        if ident is None:
            ident, next_id = next_id, next_id + 1
        taken.add(ident)
        found[one.key] = ids[provisional] = ident
    fields = tuple(_renumbered(one, ids) for one in columns.fields)
    return NumberedColumns(
        schema=TableSchema(fields=fields, last_id=max([last_id, *taken])),
        ids=ids,
        known=found,
        naming=ForeignNames(
            ids={one.source_id: ids[at] for at, one in columns.names.items() if one.source_id is not None}
            if by_ids
            else {},
            names={ids[at]: one.names for at, one in columns.names.items() if one.names} if by_names else {},
        ),
    )


def _renumbered(one: Field, ids: Mapping[int, int]) -> Field:
    type_ = one.type
    match type_:
        case StructOf(fields):
            type_ = StructOf(tuple(_renumbered(part, ids) for part in fields))
        case ListOf(element):
            type_ = ListOf(_renumbered(element, ids))
        case MapOf(key, value):
            type_ = MapOf(_renumbered(key, ids), _renumbered(value, ids))
    return replace(one, id=ids[one.id], type=type_)


def described(schema: TableSchema) -> Iterator[str]:
    """The columns as text, without comments: equal texts mean equal columns."""
    for one in schema.fields:
        yield from _described(one, "")


def _described(one: Field, above: str) -> Iterator[str]:
    path = f"{above}{one.name}"
    match one.type:
        case StructOf(fields):
            yield f"{one.id} {path} struct {one.is_required}"
            for part in fields:
                yield from _described(part, f"{path}.")
        case ListOf(element):
            yield f"{one.id} {path} list {one.is_required}"
            yield from _described(element, f"{path}.")
        case MapOf(key, value):
            yield f"{one.id} {path} map {one.is_required}"
            yield from _described(key, f"{path}.")
            yield from _described(value, f"{path}.")
        case Scalar():
            yield f"{one.id} {path} {one.type} {one.is_required} {one.default!r}"
