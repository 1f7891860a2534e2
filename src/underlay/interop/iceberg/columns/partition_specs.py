"""Partition specs as Iceberg has them, for the fields whose values mean the same there.

Left out are buckets by another hash than Iceberg's (X10), identity of floats and of types that readers disagree on, and
all fields of columns that are not exported. Data files are not affected; queries prune by bounds instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from underlay.index.partition_specs import bind_record, specs_of
from underlay.index.root import Definition
from underlay.interop.iceberg.columns.types import IcebergType, Json, scalar_type
from underlay.schema.partitioning.bucket import MURMUR3
from underlay.schema.partitioning.transform import BUCKET, DAY, IDENTITY, TRUNCATE, PartitionField
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind

FIRST_ID = 1000
_INTEGERS = (TypeKind.INT8, TypeKind.INT16, TypeKind.INT32, TypeKind.INT64)
_IDENTITY = (*_INTEGERS, TypeKind.BOOLEAN, TypeKind.STRING, TypeKind.DATE)
_AVRO: dict[str, Json] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPartition:
    """A partition field. `place` is its position among the values in the index."""

    id: int
    name: str
    source: int
    transform: str
    type: IcebergType
    scalar: Scalar
    """The type of the values in the index."""
    place: int

    @property
    def json(self) -> Json:
        """As metadata has it."""
        return {"source-id": self.source, "field-id": self.id, "name": self.name, "transform": self.transform}

    @property
    def avro(self) -> Json:
        """As a field of the record of partition values."""
        return {"name": f"f{self.id}", "type": ["null", _AVRO[self.type.text]], "default": None, "field-id": self.id}


ExportedSpecs = Mapping[int, tuple[ExportedPartition, ...]]
"""The fields of each spec, by the table's own id of the spec."""


def exported_specs(definition: Definition, schema: TableSchema, columns: frozenset[int]) -> ExportedSpecs:
    """All specs of the table. `columns` are the ids of the leaves that are exported."""
    ids: dict[tuple[int, str], int] = {}
    names: set[str] = {name.lower() for name in schema.names}
    titles: dict[int, str] = {}
    found: dict[int, tuple[ExportedPartition, ...]] = {}
    for spec, records in sorted(specs_of(definition).items()):
        fields: list[ExportedPartition] = []
        for place, record in enumerate(records):
            if record.field not in columns:
                continue
            field = bind_record(schema, record)
            transform = _transform(field, schema.leaf_by_id[field.field].type)
            if transform is None or any(one.source == field.field and one.transform == transform for one in fields):
                continue
            ident = ids.setdefault((field.field, transform), FIRST_ID + len(ids))
            if ident not in titles:
                titles[ident] = _free_name(field, schema, names)
            current = scalar_type(schema.leaf_by_id[field.field].type)
            is_source = field.transform in (IDENTITY, TRUNCATE)
            result = current if is_source and isinstance(current, IcebergType) else IcebergType("int")
            fields.append(
                ExportedPartition(
                    id=ident,
                    name=titles[ident],
                    source=field.field,
                    transform=transform,
                    type=IcebergType("date") if field.transform == DAY else result,
                    scalar=field.type,
                    place=place,
                )
            )
        found[spec] = tuple(fields)
    return found


def _transform(field: PartitionField, current: Scalar) -> str | None:
    """Iceberg's name of it; None for one that is left out. The column may have been widened since (`current`)."""
    kind = field.source.kind
    if kind is not current.kind and not (kind in _INTEGERS and current.kind in _INTEGERS):
        return None
    match field.transform:
        case "identity":
            return IDENTITY if kind in _IDENTITY else None
        case "bucket":
            is_same = field.hash == MURMUR3 and kind in (*_INTEGERS, TypeKind.STRING, TypeKind.DATE)
            return f"bucket[{field.width}]" if is_same else None
        case "truncate":
            return f"truncate[{field.width}]" if kind in (*_INTEGERS, TypeKind.STRING) else None
    is_date_or_time = kind is TypeKind.DATE or (kind is TypeKind.TIMESTAMP and field.source.unit != "ns")
    return field.transform if is_date_or_time else None


def _free_name(field: PartitionField, schema: TableSchema, taken: set[str]) -> str:
    path = schema.leaf_by_id[field.field].path
    if field.transform == IDENTITY and len(path) == 1:
        return path[0]  # Iceberg wants the column's own name
    base = f"{'_'.join(path)}_{field.transform}"
    if field.transform in (BUCKET, TRUNCATE):
        base = f"{base}_{field.width}"
    name, number = base, 2
    while name.lower() in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name.lower())
    return name
