"""The names and types, column by column, by which Spark's own reader reads files of a layout.

One of our own files that is older than a change of columns, or another writer's file, is read under its own names and
types; `projection` turns these into the table's columns. Parts of a column that the table lacks are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType

from underlay.errors import Unsupported
from underlay.index.entry import FileLayout
from underlay.index.intake.file_type import file_type, is_int96
from underlay.index.intake.schema_match import schema_of, source_fields
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.parquet.footer.logical import LogicalKind
from underlay.prune.predicates.operand import ColumnPath
from underlay.schema.cast.adapt import SourceField
from underlay.schema.convert.file_columns import COARSE, STORED
from underlay.schema.table_schema import TableSchema, leaves_in
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf
from underlay.spark.types.spark_types import spark_type
from underlay.values.physical import PhysicalType

# Whether Spark's reader, which finds columns by name, reads files of a layout right under the table's own names.
#
# It does not after a column was renamed, widened or given a default, nor when a name was used again for another column;
# `read_schema` says how such files are read.

_LONG_DIGITS = 18
"""The number of decimal digits that fit into 64 bits."""


@lru_cache(maxsize=1024)
def reads_by_name(layout: FileLayout, schema: TableSchema) -> bool:
    """Whether, in files of this layout, every column of the table has its own name, or is absent and null.

    Spark may ignore case in names: a column of the file that the table lacks must differ by more than case.
    """
    columns = {shape.node.name: shape for shape in shapes_of(schema_of(layout.elements))}
    surplus = {name.lower() for name in columns.keys() - set(schema.names)}
    return surplus.isdisjoint(name.lower() for name in schema.names) and all(
        _is_same(columns[field.name], field, layout) if field.name in columns else _is_absent(field, layout)
        for field in schema.fields
    )


def _is_absent(field: Field, layout: FileLayout) -> bool:
    """Whether files contain no part of a column, so that it is null."""
    held = set(layout.fields)
    return field.default is None and not any(leaf.id in held for leaf in leaves_in(field))


def _is_same(shape: ColumnShape, field: Field, layout: FileLayout) -> bool:
    match field.type, shape.form:
        case Scalar() as scalar, ColumnForm.SCALAR:
            return layout.fields[shape.begin] == field.id and _is_same_type(shape, scalar)
        case StructOf(fields), ColumnForm.STRUCT if not is_variant(shape):
            return _are_same(shape.children, fields, layout)
        case ListOf(element), ColumnForm.LIST if is_usual_list(shape):
            return _is_same(shape.children[0], element, layout)
        case MapOf(key, value), ColumnForm.MAP:
            return _is_same(shape.children[0], key, layout) and _is_same(shape.children[1], value, layout)
    return False


def is_usual_list(shape: ColumnShape) -> bool:
    """Whether a list has Parquet's current form, with two groups. Readers disagree on older forms."""
    repeated = shape.node.children[0] if len(shape.node.children) == 1 else None
    return (
        repeated is not None
        and len(repeated.children) == 1
        and repeated.name != "array"
        and not repeated.name.endswith("_tuple")
    )


def is_variant(shape: ColumnShape) -> bool:
    """Whether a group is marked as a variant, which Spark can read only as a variant."""
    return shape.node.logical.kind is LogicalKind.VARIANT


def is_short_in_bytes(shape: ColumnShape) -> bool:
    """Whether a leaf has short decimals in byte arrays, on which Spark's reader fails."""
    node = shape.node
    is_bytes = node.logical.kind is LogicalKind.DECIMAL and node.physical_type is PhysicalType.BYTE_ARRAY
    return is_bytes and (node.logical.precision or 0) <= _LONG_DIGITS


def _are_same(shapes: tuple[ColumnShape, ...], fields: tuple[Field, ...], layout: FileLayout) -> bool:
    """Whether a struct has exactly these fields. A struct with absent fields is not left to Spark, whose versions
    disagree on whether it is then null.
    """
    by_name = {shape.node.name: shape for shape in shapes}
    return by_name.keys() == {field.name for field in fields} and all(
        _is_same(by_name[field.name], field, layout) for field in fields
    )


def _is_same_type(shape: ColumnShape, scalar: Scalar) -> bool:
    found = file_type(shape.node)
    if found is None or is_short_in_bytes(shape):
        return False
    # In files of ours seconds and milliseconds are microseconds; in older ones, and others', milliseconds.
    is_coarse = scalar.unit in COARSE and found.unit in ("ms", STORED)
    stored = replace(scalar, unit=found.unit) if is_coarse else scalar
    return replace(found, zone=None) == replace(stored, zone=None) and (found.zone is None) == (stored.zone is None)


_WRITES_MICROSECONDS = "parquet-mr"
"""Writers of this name store INT96 no finer than Spark's microseconds. Others may, and Spark would truncate their
values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadColumn:
    """A column of the table, or a part of one, as stored in files.

    `parts` are parallel to the parts of the table's field; None for a part that files lack.
    """

    name: str
    type: DataType
    parts: tuple[ReadColumn | None, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether no part is missing."""
        return all(part is not None and part.is_whole for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadColumns:
    """The columns of the table as stored in files; None for columns that files lack.

    Without `columns`, files are read by the table's own names and types.
    """

    columns: tuple[ReadColumn | None, ...] = ()

    @property
    def is_by_name(self) -> bool:
        """Whether files are read by the table's own names and types."""
        return not self.columns

    @property
    def schema(self) -> StructType:
        """The schema with which files are read."""
        return _struct(self.columns)

    def names(self, schema: TableSchema) -> dict[ColumnPath, ColumnPath]:
        """Maps each column, and each field of a struct, in the files to the table's."""
        return dict(_names(self.columns, schema.fields, (), ()))


BY_NAME = ReadColumns()


class _Unreadable(Exception):
    """Spark's reader would read this differently from ours."""


@lru_cache(maxsize=1024)
def reading_of(layout: FileLayout, schema: TableSchema) -> ReadColumns | None:
    """How to read the table's columns from files of a layout; None when Spark's reader cannot, or would return other
    values.
    """
    return BY_NAME if reads_by_name(layout, schema) else reading_beside(layout, schema)


@lru_cache(maxsize=1024)
def reading_beside(layout: FileLayout, schema: TableSchema) -> ReadColumns | None:
    """The same for some columns, when the others do not come from the files."""
    shapes = shapes_of(schema_of(layout.elements))
    try:
        columns = _take_fields(shapes, source_fields(layout, schema), schema.fields, layout)
    except (_Unreadable, Unsupported):
        return None
    return ReadColumns(columns=columns) if any(columns) else None


def _take_fields(
    shapes: tuple[ColumnShape, ...], sources: tuple[SourceField, ...], fields: tuple[Field, ...], layout: FileLayout
) -> tuple[ReadColumn | None, ...]:
    """Columns of a file, or fields of a struct. Spark may ignore case, and then refuses duplicate names."""
    known = {source.id: (shape, source) for shape, source in zip(shapes, sources, strict=True) if source.id is not None}
    counts = Counter(shape.node.name.lower() for shape in shapes)
    taken: list[ReadColumn | None] = []
    for field in fields:
        if field.id not in known:
            taken.append(None)
            continue
        shape, source = known[field.id]
        if counts[shape.node.name.lower()] > 1:
            raise _Unreadable
        taken.append(_take(shape, source, field, layout))
    return tuple(taken)


def _take(shape: ColumnShape, source: SourceField, field: Field, layout: FileLayout) -> ReadColumn:
    name = shape.node.name
    match field.type, shape.form:
        case Scalar() as scalar, ColumnForm.SCALAR:
            return ReadColumn(name=name, type=_stored_type(shape, scalar, layout))
        case StructOf(fields), ColumnForm.STRUCT if not is_variant(shape):
            taken = _take_fields(shape.children, source.children, fields, layout)
            return ReadColumn(name=name, type=_struct(taken), parts=taken)
        case ListOf(element), ColumnForm.LIST if is_usual_list(shape):
            part = _take(shape.children[0], source.children[0], element, layout)
            return ReadColumn(name=name, type=ArrayType(part.type), parts=(part,))
        case MapOf(key, value), ColumnForm.MAP if all(child.id is not None for child in source.children):
            first, second = (
                _take(shape.children[at], source.children[at], part, layout) for at, part in enumerate((key, value))
            )
            if first.is_whole:
                return ReadColumn(name=name, type=MapType(first.type, second.type), parts=(first, second))
    raise _Unreadable


def _stored_type(shape: ColumnShape, wanted: Scalar, layout: FileLayout) -> DataType:
    """The type that Spark reads a leaf as."""
    if is_int96(shape.node):
        if wanted.zone is None or not (layout.created_by or "").startswith(_WRITES_MICROSECONDS):
            raise _Unreadable
        return TimestampType()
    found = file_type(shape.node)
    if found is None or is_short_in_bytes(shape):
        raise _Unreadable
    return spark_type(found)


def _struct(parts: tuple[ReadColumn | None, ...]) -> StructType:
    return StructType([StructField(part.name, part.type) for part in parts if part is not None])


def _names(
    taken: tuple[ReadColumn | None, ...], fields: tuple[Field, ...], above: ColumnPath, table_above: ColumnPath
) -> Iterator[tuple[ColumnPath, ColumnPath]]:
    for part, field in zip(taken, fields, strict=True):
        if part is None:
            continue
        path, table_path = (*above, part.name), (*table_above, field.name)
        yield path, table_path
        if isinstance(field.type, StructOf):
            yield from _names(part.parts, field.type.fields, path, table_path)
