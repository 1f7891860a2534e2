"""Whether Spark's reader, which finds columns by name, reads files of a layout right under the table's own names.

It does not after a column was renamed, widened or given a default, nor when a name was used again for another column;
`read_schema` says how such files are read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from underlay.index.entry import FileLayout
from underlay.index.intake.file_type import file_type
from underlay.index.intake.schema_match import schema_of
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.parquet.footer.logical import LogicalKind
from underlay.scan.query import leaf_ids
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf
from underlay.values.physical import PhysicalType

_LONG_DIGITS = 18
"""As many as 64 bits hold."""


@lru_cache(maxsize=1024)
def reads_by_name(layout: FileLayout, schema: TableSchema) -> bool:
    """Whether every column of the table is, in files of this layout, the column of its name, or absent and null.

    Spark may compare names without case: a column of the file that the table does not have must differ by more.
    """
    columns = {shape.node.name: shape for shape in shapes_of(schema_of(layout.elements))}
    surplus = {name.lower() for name in columns.keys() - set(schema.names)}
    return surplus.isdisjoint(name.lower() for name in schema.names) and all(
        _is_same(columns[field.name], field, layout) if field.name in columns else _is_absent(field, layout)
        for field in schema.fields
    )


def _is_absent(field: Field, layout: FileLayout) -> bool:
    """Whether files have nothing of a column, so that it is null."""
    held = set(layout.fields)
    return field.default is None and not any(part in held for part in leaf_ids(field))


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
    """Whether a list lies as Parquet has it today, in two groups. Readers differ in what older forms mean."""
    repeated = shape.node.children[0] if len(shape.node.children) == 1 else None
    return (
        repeated is not None
        and len(repeated.children) == 1
        and repeated.name != "array"
        and not repeated.name.endswith("_tuple")
    )


def is_variant(shape: ColumnShape) -> bool:
    """Whether a group is marked as a variant, which Spark reads as nothing else."""
    return shape.node.logical.kind is LogicalKind.VARIANT


def is_short_in_bytes(shape: ColumnShape) -> bool:
    """Whether a leaf has decimals of few digits in byte arrays, at which Spark's reader fails."""
    node = shape.node
    is_bytes = node.logical.kind is LogicalKind.DECIMAL and node.physical_type is PhysicalType.BYTE_ARRAY
    return is_bytes and (node.logical.precision or 0) <= _LONG_DIGITS


def _are_same(shapes: tuple[ColumnShape, ...], fields: tuple[Field, ...], layout: FileLayout) -> bool:
    """Whether a struct has these fields and no others. A struct with absent fields is not left to Spark, whose
    versions differ in whether it is null then."""
    by_name = {shape.node.name: shape for shape in shapes}
    return by_name.keys() == {field.name for field in fields} and all(
        _is_same(by_name[field.name], field, layout) for field in fields
    )


def _is_same_type(shape: ColumnShape, scalar: Scalar) -> bool:
    found = file_type(shape.node)
    if found is None or is_short_in_bytes(shape):
        return False
    stored = replace(scalar, unit="ms") if scalar.unit == "s" else scalar
    return replace(found, zone=None) == replace(stored, zone=None) and (found.zone is None) == (stored.zone is None)
