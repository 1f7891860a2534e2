"""The columns of Parquet files, by their own schemas, and those that hold the columns of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from underlay.change.register.read_footers import ReadFile
from underlay.index.intake.file_type import file_type, holds_only_nulls, is_int96
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.interop.imports.source_columns import ELEMENT, KEY, VALUE, ColumnName, SourceColumns
from underlay.parquet.footer.schema import Schema, read_schema
from underlay.parquet.thrift.tree import parse
from underlay.schema.cast.widen import is_widening
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

_SCHEMA_BEGINS = 16
"""A footer begins with a version and its schema."""

Columns = tuple[Field, ...]
"""Columns without ids."""


def distinct_schemas(reads: Iterable[ReadFile]) -> Iterator[tuple[Schema, str]]:
    """Each schema that files have, with the location of the first file that has it."""
    beginnings: list[bytes] = []
    for read in reads:
        if read.footer.startswith(tuple(beginnings)):
            continue
        schema = read_schema(parse(read.footer))
        begin = read.footer.find(schema.raw, 0, _SCHEMA_BEGINS + len(schema.raw))
        if begin >= 0:
            beginnings.append(read.footer[: begin + len(schema.raw)])
        yield schema, read.place.location


def columns_of_schema(schema: Schema, problems: list[str]) -> Columns:
    """The columns; those without any value and any type are left out."""
    found = (_field(shape, (shape.node.name,), problems) for shape in shapes_of(schema))
    return tuple(one for one in found if one is not None)


def _field(shape: ColumnShape, path: Sequence[str], problems: list[str]) -> Field | None:
    type_: Type | None = None
    match shape.form:
        case ColumnForm.SCALAR if not holds_only_nulls(shape.node):
            type_ = file_type(shape.node)
            if is_int96(shape.node):  # what Hive and Spark write: microseconds
                type_ = Scalar(TypeKind.TIMESTAMP, unit="us")
            if type_ is None:
                problems.append(f"Column {'.'.join(path)}: Underlay has no type for it.")
        case ColumnForm.STRUCT:
            parts = [_field(child, (*path, child.node.name), problems) for child in shape.children]
            type_ = StructOf(tuple(part for part in parts if part is not None))
        case ColumnForm.LIST:
            element = _part(shape.children[0], ELEMENT, path, problems)
            type_ = None if element is None else ListOf(element)
        case ColumnForm.MAP:
            key = _part(shape.children[0], KEY, path, problems)
            value = _part(shape.children[1], VALUE, path, problems)
            type_ = None if key is None or value is None else MapOf(key, value)
        case ColumnForm.UNREADABLE:
            problems.append(f"Column {'.'.join(path)}: it is a group that no reader understands.")
    return None if type_ is None else Field(id=0, name=shape.node.name, type=type_)


def _part(shape: ColumnShape, name: str, path: Sequence[str], problems: list[str]) -> Field | None:
    found = _field(shape, (*path, name), problems)
    return None if found is None else Field(id=0, name=name, type=found.type, is_required=name == KEY)


def together(one: Columns, other: Columns, problems: list[str], place: str, above: str = "") -> Columns:
    """The columns of both, each with a type that holds the values of both; new ones last."""
    theirs = {column.name: column for column in other}
    found = []
    for column in one:
        met = theirs.pop(column.name, None)
        found.append(column if met is None else _both(column, met, problems, place, f"{above}{column.name}"))
    return (*found, *theirs.values())


def _both(one: Field, other: Field, problems: list[str], place: str, path: str) -> Field:
    match one.type, other.type:
        case Scalar() as mine, Scalar() as theirs:
            if is_widening(theirs, mine):
                return one
            if is_widening(mine, theirs):
                return other
        case StructOf(mine), StructOf(theirs):
            return Field(id=0, name=one.name, type=StructOf(together(mine, theirs, problems, place, f"{path}.")))
        case ListOf(mine), ListOf(theirs):
            return Field(id=0, name=one.name, type=ListOf(_both(mine, theirs, problems, place, f"{path}.{ELEMENT}")))
        case MapOf() as mine, MapOf() as theirs:
            key = _both(mine.key, theirs.key, problems, place, f"{path}.{KEY}")
            value = _both(mine.value, theirs.value, problems, place, f"{path}.{VALUE}")
            return Field(id=0, name=one.name, type=MapOf(key, value))
    problems.append(f"{place}: Column {path} is {other.type} there and {one.type} in other files.")
    return one


def without_ids(column: Field) -> Field:
    """A column of a table, to compare with those of files."""
    match column.type:
        case StructOf(fields):
            type_: Type = StructOf(tuple(map(without_ids, fields)))
        case ListOf(element):
            type_ = ListOf(without_ids(element))
        case MapOf(key, value):
            type_ = MapOf(without_ids(key), without_ids(value))
        case scalar:
            type_ = scalar
    return Field(id=0, name=column.name, type=type_, is_required=column.is_required)


def numbered(fields: Sequence[Field]) -> SourceColumns:
    """The columns of a source that knows them by their names."""
    columns = SourceColumns()
    columns.fields = [_numbered(columns, one, "") for one in fields]
    return columns


def _numbered(columns: SourceColumns, one: Field, above: str) -> Field:
    path = f"{above}{one.name}"
    number = columns.number(ColumnName(key=path, names=(one.name,)))
    type_: Type = one.type
    match type_:
        case StructOf(fields):
            type_ = StructOf(tuple(_numbered(columns, part, f"{path}.") for part in fields))
        case ListOf(element):
            type_ = ListOf(_numbered(columns, element, f"{path}."))
        case MapOf(key, value):
            type_ = MapOf(_numbered(columns, key, f"{path}."), _numbered(columns, value, f"{path}."))
    return Field(id=number, name=one.name, type=type_, is_required=one.is_required)
