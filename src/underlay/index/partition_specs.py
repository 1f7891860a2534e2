"""The partition specs of a table: how new files are partitioned, and how older ones were.

Each file's entry has the id of the spec that its values follow. A spec with files changes in only one way: when its
column gets a wider type, it remembers the type that its files were written with.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from underlay.index.root import FORMAT, WITH_SPECS, Definition, PartitionFieldRecord, PartitionSpec
from underlay.schema.partitioning.transform import PartitionField, bind_partition
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, parse_scalar

Specs = Mapping[int, tuple[PartitionFieldRecord, ...]]
"""Specs by id."""


def specs_of(definition: Definition) -> dict[int, tuple[PartitionFieldRecord, ...]]:
    """All specs that files of the table may follow."""
    return {**{spec.id: spec.fields for spec in definition.other_specs}, definition.spec: definition.partition_by}


def bind_record(schema: TableSchema, record: PartitionFieldRecord) -> PartitionField:
    """A stored partition field, with the type that its column had when files were written. Raises InvalidRequest."""
    source = parse_scalar(record.source) if record.source else None
    return bind_partition(schema, record.field, record.transform, record.width, hash_name=record.hash, source=source)


def with_spec(definition: Definition, fields: tuple[PartitionFieldRecord, ...]) -> Definition:
    """The definition with another partitioning of new files; itself when it is the same."""
    if fields == definition.partition_by:
        return definition
    known = specs_of(definition)
    return replace(definition, partition_by=fields, spec=max(known) + 1, other_specs=_records(known))


def with_source_type(definition: Definition, field: int, before: Scalar) -> Definition:
    """The definition whose specs remember that a column, about to change its type, had the type `before`."""
    known = {number: tuple(_remembering(one, field, before) for one in spec) for number, spec in _specs(definition)}
    if known == specs_of(definition):
        return definition
    if known[definition.spec] == definition.partition_by:
        others = {number: spec for number, spec in known.items() if number != definition.spec}
        return replace(definition, other_specs=_records(others))
    return replace(definition, spec=max(known) + 1, other_specs=_records(known))


def with_specs_of(definition: Definition, other: Definition) -> Definition:
    """The definition that has the specs of another as well, so that their ids are not reused."""
    known = {**specs_of(other), **specs_of(definition)}
    del known[definition.spec]
    return replace(definition, other_specs=_records(known))


def needed_format(definition: Definition) -> int:
    """The format of roots with this definition: it keeps out readers and writers that do not know everything in it."""
    has_hash = any(one.hash for one in definition.partition_by)
    return WITH_SPECS if has_hash or definition.spec or definition.other_specs or definition.checks else FORMAT


def _specs(definition: Definition) -> list[tuple[int, tuple[PartitionFieldRecord, ...]]]:
    return sorted(specs_of(definition).items())


def _records(specs: Specs) -> tuple[PartitionSpec, ...]:
    return tuple(PartitionSpec(id=number, fields=fields) for number, fields in sorted(specs.items()))


def _remembering(record: PartitionFieldRecord, field: int, before: Scalar) -> PartitionFieldRecord:
    is_meant = record.field == field and not record.source
    return replace(record, source=str(before)) if is_meant else record
