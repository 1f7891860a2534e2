"""The metadata.json of an export: one snapshot, and guards that keep other writers away from our files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from underlay.index.root import Definition, Root
from underlay.interop.iceberg.columns.defaults import default_json
from underlay.interop.iceberg.columns.partition_specs import FIRST_ID, ExportedPartition, ExportedSpecs
from underlay.interop.iceberg.columns.types import V3, Json, field_json
from underlay.schema.table_schema import TableSchema, leaves_in
from underlay.schema.types import Field, TypeKind

READ_ONLY = "read-only://export-of-underlay"
"""Where writers would put their metadata: nobody has this scheme, so their commits fail."""
COMMIT, VERSION, NUMBER, FINGERPRINT = (
    "underlay.commit-id",
    "underlay.version",
    "underlay.export-number",
    "underlay.export-fingerprint",
)
ASKED = "underlay.asked"
"""The settings of the export, to repeat it."""
LEFT_OUT = "underlay.left-out"
"""Columns that are not in the export, as JSON."""
DELETIONS = "underlay.deletions"
"""What the deletions of the export were made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSchema:
    """What the columns are in the export."""

    fields: tuple[Field, ...]
    specs: ExportedSpecs
    mapping: Json | None
    format: int

    @property
    def json(self) -> Json:
        """The schema."""
        default = default_json if self.format >= V3 else _no_default
        return {
            "type": "struct",
            "schema-id": 0,
            "fields": [field_json(field, default) for field in self.fields],
        }

    @property
    def fingerprint(self) -> str:
        """Equal if manifests of one can be used by the other."""
        specs = {spec: [one.json for one in fields] for spec, fields in self.specs.items()}
        text = json.dumps([self.json, specs, self.mapping, self.format])
        return blake2b(text.encode(), digest_size=8).hexdigest()


def _no_default(_: Field) -> Json | None:
    return None


def identifier_ids(definition: Definition, fields: Sequence[Field]) -> list[int]:
    """The key, if Iceberg allows it: all of its columns required, none of them a float."""
    by_id = {field.id: field for field in fields}
    found = [by_id.get(ident) for ident in definition.key]
    floats = (TypeKind.FLOAT32, TypeKind.FLOAT64)
    is_allowed = all(
        one is not None and one.is_required and getattr(one.type, "kind", floats[0]) not in floats for one in found
    )
    return sorted(definition.key) if is_allowed else []


def make_metadata(
    root: Root,
    exported: ExportedSchema,
    schema: TableSchema,
    *,
    table_uuid: str,
    location: str,
    number: int,
    snapshot_id: int,
    manifest_list: str,
    totals: Mapping[str, int],
    properties: Mapping[str, str],
    first_row_id: int,
) -> bytes:
    """The bytes."""
    stamp_ms = root.committed_us // 1000
    definition = root.definition
    columns = {leaf for field in exported.fields for leaf in _ids(field)}
    ids = [FIRST_ID - 1, *(one.id for spec in exported.specs.values() for one in spec)]
    order = [
        {
            "transform": "identity",
            "source-id": one.field,
            "direction": "desc" if one.descending else "asc",
            "null-order": "nulls-last" if one.nulls_last else "nulls-first",
        }
        for one in definition.sort_by
        if one.field in columns
    ]
    snapshot: dict[str, Json] = {
        "sequence-number": number + 1,
        "snapshot-id": snapshot_id,
        "timestamp-ms": stamp_ms,
        "summary": {
            "operation": "overwrite",
            **{name: str(count) for name, count in totals.items()},
            VERSION: str(root.version),
            COMMIT: root.commit_id,
        },
        "manifest-list": manifest_list,
        "schema-id": 0,
    }
    if exported.format >= V3:
        snapshot |= {"first-row-id": 0, "added-rows": first_row_id}
    found: dict[str, Json] = {
        "format-version": exported.format,
        "table-uuid": table_uuid,
        "location": location,
        "last-sequence-number": number + 1,
        "last-updated-ms": stamp_ms,
        "last-column-id": schema.last_id,
        "current-schema-id": 0,
        "schemas": [exported.json | {"identifier-field-ids": identifier_ids(definition, exported.fields)}],
        "default-spec-id": definition.spec,
        "partition-specs": [_spec(spec, fields) for spec, fields in sorted(exported.specs.items())],
        "last-partition-id": max(ids),
        "default-sort-order-id": 1 if order else 0,
        "sort-orders": [{"order-id": 1 if order else 0, "fields": order}],
        "properties": {
            "gc.enabled": "false",
            "write.metadata.path": READ_ONLY,
            "write.data.path": READ_ONLY,
            **({"comment": definition.comment} if definition.comment else {}),
            **({"schema.name-mapping.default": json.dumps(exported.mapping)} if exported.mapping else {}),
            VERSION: str(root.version),
            COMMIT: root.commit_id,
            NUMBER: str(number),
            **properties,
        },
        "current-snapshot-id": snapshot_id,
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "snapshots": [snapshot],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [{"timestamp-ms": stamp_ms, "snapshot-id": snapshot_id}],
        "metadata-log": [],
    }
    if exported.format >= V3:
        found["next-row-id"] = first_row_id
    return json.dumps(found, indent=1).encode()


def _spec(spec: int, fields: Sequence[ExportedPartition]) -> Json:
    return {"spec-id": spec, "fields": [one.json for one in fields]}


def _ids(field: Field) -> set[int]:
    return {leaf.id for leaf in leaves_in(field)}
