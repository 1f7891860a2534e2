"""Whether a Parquet file's own schema fits a table, and which of its leaves hold which of the table's.

Our own file, or one that carries field ids that we issued, is matched by id: its names may be old. Any other file is
matched by name; upper and lower case differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

import msgspec

from underlay.index.entry import FileLayout
from underlay.index.intake.file_type import can_hold, file_type, is_int96
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.parquet.footer.schema import Schema, read_schema
from underlay.parquet.thrift.tree import parse
from underlay.schema.cast.adapt import SourceField, parts_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind


@dataclass(frozen=True)
class ForeignNames:
    """How files of another system name a table's columns: by ids, or by names where a file has no ids.

    Elements of lists, and keys and values of maps, need no name.
    """

    ids: Mapping[int, int] = field(default_factory=dict)
    """The table's field ids, by those in files; empty if ids in files mean nothing."""
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The names in files, by the table's field ids."""


By = Literal["id", "name"] | ForeignNames
NO_FIELD = -1
_ID_BYTES = 8
_SCHEMA_FIELD = b"\x29"
"""Header of field 2, a list, at the start of a struct."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a file cannot be part of a table: sentences for its user."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """A column that may be null in the file but not in the table: one of the leaves must have no nulls.

    A leaf whose null count is 0 proves that nothing around it is null either.
    """

    path: str
    leaves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A schema that fits if every block of the file meets the demands."""

    layout: FileLayout
    demands: tuple[Demand, ...]


@dataclass(slots=True)
class _Matching:
    """What was found so far. `fields` has the field id of each leaf; `given` are columns that files
    need not have."""

    by: By
    ignore_surplus: bool
    fields: list[int]
    given: frozenset[int] = frozenset()
    by_ids: bool = False
    """Whether the ids in this file say which column is which, not the names."""
    reasons: list[str] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)

    def refuse(self, path: tuple[str, ...], problem: str) -> None:
        self.reasons.append(f"Column {'.'.join(path)} {problem}.")


def match_schema(
    schema: Schema,
    created_by: str | None,
    table: TableSchema,
    *,
    by: By = "name",
    ignore_surplus: bool = False,
    given: frozenset[int] = frozenset(),
) -> Fit | Misfit:
    """How the leaves of a file with this schema hold the table's. Leaves that the table lacks get -1.

    `given` are field ids of columns that have a value although the file lacks them.
    """
    shapes = shapes_of(schema)
    by_ids = by == "id" or (isinstance(by, ForeignNames) and bool(by.ids) and any(map(_has_id, shapes)))
    matching = _Matching(by, ignore_surplus, [NO_FIELD] * len(schema.leaves), given, by_ids)
    if isinstance(by, ForeignNames) and not by_ids and not by.names:
        return Misfit(("Its columns have no field ids, and the source does not name them otherwise.",))
    _match_fields(matching, (), shapes, table.fields)
    if matching.reasons:
        return Misfit(tuple(matching.reasons))
    fields = tuple(matching.fields)
    return Fit(_layout(schema.raw, created_by, fields), tuple(matching.demands))


def with_writer(layout: FileLayout, created_by: str | None) -> FileLayout:
    """The layout of files that another writer made with the same schema."""
    return layout if layout.created_by == created_by else _layout(layout.elements, created_by, layout.fields)


def _layout(elements: bytes, created_by: str | None, fields: tuple[int, ...]) -> FileLayout:
    ident = layout_id(elements, created_by, fields)
    return FileLayout(id=ident, elements=elements, created_by=created_by, fields=fields)


def layout_id(elements: bytes, created_by: str | None, fields: tuple[int, ...]) -> str:
    """The id of a layout: equal for equal content."""
    return blake2b(msgspec.msgpack.encode((elements, created_by, fields)), digest_size=_ID_BYTES).hexdigest()


@lru_cache(maxsize=256)
def schema_of(elements: bytes) -> Schema:
    """The schema in a layout's elements."""
    return read_schema(parse(_SCHEMA_FIELD + elements + b"\x00"))


def _has_id(shape: ColumnShape) -> bool:
    return shape.node.field_id is not None or any(map(_has_id, shape.children))


def _match_fields(
    matching: _Matching, path: tuple[str, ...], shapes: tuple[ColumnShape, ...], fields: tuple[Field, ...]
) -> None:
    """The columns of a file, or the children of one of its structs, with the fields that they may hold."""
    keys = _keys(matching, shapes, fields)
    wanted = {_key(matching, wanted) for wanted in fields}
    counts = Counter(keys)
    for key, shape in zip(keys, shapes, strict=True):
        here = (*path, shape.node.name)
        if key in wanted and counts[key] > 1:
            kind = "id" if matching.by_ids else "name"
            matching.refuse(here, f"is one of {counts[key]} columns of the file with the same {kind}")
        if key not in wanted and not matching.ignore_surplus:
            matching.refuse(here, "is in the file and not in the table")
    by_key = dict(zip(keys, shapes, strict=True))
    for wanted_field in fields:
        here = (*path, wanted_field.name)
        found = by_key.get(_key(matching, wanted_field))
        if found is not None:
            _match(matching, here, found, wanted_field)
        elif wanted_field.is_required and wanted_field.default is None and wanted_field.id not in matching.given:
            matching.refuse(here, "is required in the table and not in the file")


def _key(matching: _Matching, wanted: Field) -> int | str:
    """By what a field of the table is found among `_keys`."""
    return wanted.name if matching.by == "name" else wanted.id


def _keys(matching: _Matching, shapes: tuple[ColumnShape, ...], fields: tuple[Field, ...]) -> list[int | str | None]:
    """What each column of a file is called, in the words of the table; None for one that has no name there."""
    by = matching.by
    if not isinstance(by, ForeignNames):
        return [shape.node.field_id if by == "id" else shape.node.name for shape in shapes]
    if matching.by_ids:
        return [None if shape.node.field_id is None else by.ids.get(shape.node.field_id) for shape in shapes]
    ids = {name: wanted.id for wanted in fields for name in by.names.get(wanted.id, ())}
    return [ids.get(shape.node.name) for shape in shapes]


def _match(
    matching: _Matching, path: tuple[str, ...], shape: ColumnShape, wanted: Field, *, allows_null: bool = False
) -> None:
    if wanted.is_required and not shape.is_required and not allows_null:
        matching.demands.append(Demand(".".join(path), tuple(shape.leaves)))
    match wanted.type, shape.form:
        case Scalar() as scalar, ColumnForm.SCALAR:
            _match_leaf(matching, path, shape, wanted, scalar)
        case StructOf(fields), ColumnForm.STRUCT:
            _match_fields(matching, path, shape.children, fields)
        case ListOf(element), ColumnForm.LIST:
            _match(matching, (*path, element.name), shape.children[0], element)
        case MapOf(key, value), ColumnForm.MAP:
            # Keys are never null; some writers declare them optional all the same.
            _match(matching, (*path, key.name), shape.children[0], key, allows_null=True)
            _match(matching, (*path, value.name), shape.children[1], value)
        case _:
            matching.refuse(path, f"is {wanted.type} in the table and {shape.form.value} in the file")


def _match_leaf(matching: _Matching, path: tuple[str, ...], shape: ColumnShape, wanted: Field, scalar: Scalar) -> None:
    if is_int96(shape.node) and len(path) > 1:
        matching.refuse(path, "is INT96 in the file, which is read only in a column that is not nested")
        return
    if can_hold(shape.node, scalar, is_ours=matching.by == "id"):
        matching.fields[shape.begin] = wanted.id
        return
    if is_int96(shape.node) and scalar.kind is TypeKind.TIMESTAMP:
        matching.refuse(
            path, f"is {scalar} in the table and INT96 in the file, which only microseconds and nanoseconds hold"
        )
        return
    found = file_type(shape.node)
    physical = shape.node.physical_type.name if shape.node.physical_type is not None else "a group"
    kind = shape.node.logical.kind.value
    named = str(found) if found is not None else physical if kind == "none" else f"{physical} ({kind})"
    matching.refuse(path, f"is {scalar} in the table and {named} in the file")


def source_fields(layout: FileLayout, table: TableSchema) -> tuple[SourceField, ...]:
    """For each top-level column of the file, in order, the fields of the table that it and its parts hold now.

    A group holds the field that its leaves are in; one whose leaves the table has all dropped holds none.
    """
    ways = {way[-1]: way for column in table.fields for way in _ways(column)}
    return tuple(_source(shape, layout, ways, 0) for shape in shapes_of(schema_of(layout.elements)))


def _ways(field: Field) -> Iterator[tuple[int, ...]]:
    """For each leaf in a field, the ids from the field down to it."""
    parts = parts_of(field)
    if not parts:
        yield (field.id,)
    for part in parts:
        for way in _ways(part):
            yield (field.id, *way)


def _source(shape: ColumnShape, layout: FileLayout, ways: dict[int, tuple[int, ...]], depth: int) -> SourceField:
    known = [ways[ident] for ident in (layout.fields[leaf] for leaf in shape.leaves) if ident in ways]
    children = tuple(_source(child, layout, ways, depth + 1) for child in shape.children)
    return SourceField(id=known[0][depth] if known else None, children=children)
