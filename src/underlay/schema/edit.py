"""A table's columns with one of them added, renamed, dropped, moved or changed. Fields of structs go by their path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from underlay.errors import InvalidRequest, UnknownColumn, name_hint
from underlay.prune.predicates.operand import format_column
from underlay.schema.ids import number_fields
from underlay.schema.names import check_names, parse_path
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type

Path = tuple[str, ...]
Fields = tuple[Field, ...]


def read_path(schema: TableSchema, name: str) -> Path:
    """The path that a name means: a column's exact name, or else a path such as `a.b`. Raises InvalidRequest."""
    if not isinstance(name, str):
        raise InvalidRequest("the name of a column must be text", found=repr(name))
    return (name,) if name in schema.names else parse_path(name)


def field_at(schema: TableSchema, path: Path) -> Field:
    """The column, or the field in it. Raises UnknownColumn."""
    fields: Fields = schema.fields
    found: Field | None = None
    for depth, name in enumerate(path, start=1):
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            above = path[: depth - 1]
            known = [format_column((*above, field.name)) for field in fields]
            place = format_column(path[:depth])
            raise UnknownColumn(f"there is no column {place}", hint=name_hint(place, known))
        fields = _parts(found.type)
    if found is None:
        raise InvalidRequest("the name of a column is empty")
    return found


def ids_in(field: Field) -> frozenset[int]:
    """The ids of a field and of all that is in it."""
    return frozenset({field.id}).union(*(ids_in(part) for part in _parts(field.type)))


def change_field(schema: TableSchema, path: Path, change: Callable[[Field], Field]) -> TableSchema:
    """The columns with one field replaced. Raises UnknownColumn."""
    field_at(schema, path)
    return replace(schema, fields=_changed(schema.fields, path, change))


def change_siblings(schema: TableSchema, parent: Path, change: Callable[[Fields], Fields]) -> TableSchema:
    """The columns, or the fields of the struct at `parent`, changed. Raises UnknownColumn, and InvalidRequest when
    it is not a struct."""
    if not parent:
        return replace(schema, fields=change(schema.fields))

    def inside(field: Field) -> Field:
        if not isinstance(field.type, StructOf):
            raise InvalidRequest(
                "the column is not a struct, so it has no named fields",
                place=format_column(parent),
                found=field.type,
                hint="Items of a list are at .element, those of a map at .key and .value.",
            )
        return replace(field, type=StructOf(change(field.type.fields)))

    return change_field(schema, parent, inside)


def add_field(schema: TableSchema, path: Path, field: Field, after: str | None) -> TableSchema:
    """The columns with a new one, with new ids, after its sibling `after`, or last.

    Raises SchemaMismatch for a name that is taken or invalid, UnknownColumn.
    """
    numbered = number_fields([replace(field, name=path[-1])], first_id=schema.last_id + 1)
    (new,) = numbered.fields

    def grown(siblings: Fields) -> Fields:
        _check_new_name(path, siblings)
        at = len(siblings) if after is None else _place(siblings, after, path[:-1]) + 1
        return (*siblings[:at], new, *siblings[at:])

    return replace(change_siblings(schema, path[:-1], grown), last_id=numbered.last_id)


def rename_field(schema: TableSchema, path: Path, name: str) -> TableSchema:
    """The columns with one renamed. Raises as `add_field`."""
    field_at(schema, path)

    def renamed(siblings: Fields) -> Fields:
        others = tuple(field for field in siblings if field.name != path[-1])
        _check_new_name((*path[:-1], name), others)
        return tuple(replace(field, name=name) if field.name == path[-1] else field for field in siblings)

    return change_siblings(schema, path[:-1], renamed)


def drop_field(schema: TableSchema, path: Path) -> TableSchema:
    """The columns without one. Raises UnknownColumn, and InvalidRequest for the last of its siblings."""
    field_at(schema, path)

    def shrunk(siblings: Fields) -> Fields:
        if len(siblings) == 1:
            what = "a struct needs at least one field" if path[1:] else "a table needs at least one column"
            raise InvalidRequest(what, place=format_column(path), hint="Add another one first, or drop all of it.")
        return tuple(field for field in siblings if field.name != path[-1])

    return change_siblings(schema, path[:-1], shrunk)


def move_field(schema: TableSchema, path: Path, after: str | None) -> TableSchema:
    """The columns with one moved after its sibling `after`, or before all siblings. Raises UnknownColumn."""
    moved = field_at(schema, path)

    def ordered(siblings: Fields) -> Fields:
        others = tuple(field for field in siblings if field.name != path[-1])
        at = 0 if after is None else _place(others, after, path[:-1]) + 1
        return (*others[:at], moved, *others[at:])

    return change_siblings(schema, path[:-1], ordered)


def _parts(type_: Type) -> Fields:
    match type_:
        case StructOf(fields):
            return fields
        case ListOf(element):
            return (element,)
        case MapOf(key, value):
            return (key, value)
        case Scalar():
            return ()


def _changed(fields: Fields, path: Path, change: Callable[[Field], Field]) -> Fields:
    name, *rest = path

    def inside(field: Field) -> Field:
        return change(field) if not rest else replace(field, type=_rebuilt(field.type, tuple(rest), change))

    return tuple(inside(field) if field.name == name else field for field in fields)


def _rebuilt(type_: Type, path: Path, change: Callable[[Field], Field]) -> Type:
    match type_:
        case StructOf(fields):
            return StructOf(_changed(fields, path, change))
        case ListOf(element):
            return ListOf(*_changed((element,), path, change))
        case MapOf(key, value):
            return MapOf(*_changed((key, value), path, change))
        case Scalar():
            return type_


def _check_new_name(path: Path, siblings: Fields) -> None:
    *above, name = path
    names = [field.name for field in siblings]
    check_names([*names, name], tuple(above))
    alike = [other for other in names if other.lower() == name.lower()]
    if alike:
        raise InvalidRequest(
            "two columns differ only in case",
            place=format_column(path),
            found=", ".join(alike),
            hint="They are the same to Spark and others. Choose another name.",
        )


def _place(siblings: Fields, name: str, parent: Path) -> int:
    """The position of the sibling that `after` gives by its name or its path."""
    names = [field.name for field in siblings]
    if name not in names:
        path = parse_path(name)
        if path[:-1] == parent and path[-1] in names:
            return names.index(path[-1])
        place = format_column((*parent, name))
        known = [format_column((*parent, one)) for one in names]
        raise UnknownColumn(f"there is no column {place} to move it after", hint=name_hint(place, known))
    return names.index(name)
