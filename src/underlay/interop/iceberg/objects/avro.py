"""The Avro files of Iceberg: manifests and manifest lists, written and read by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from underlay.errors import Malformed, Unsupported
from underlay.interop.iceberg.columns.partition_specs import ExportedPartition
from underlay.interop.iceberg.columns.types import V3, Json

Record = dict[str, Any]
"""A record; its values by the schemas below."""


def _required(name: str, type_: Json, ident: int) -> Json:
    return {"name": name, "type": type_, "field-id": ident}


def _optional(name: str, type_: Json, ident: int) -> Json:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": ident}


def _map(name: str, key: int, value: int, type_: str) -> Json:
    fields = [_required("key", "int", key), _required("value", type_, value)]
    record = {"type": "record", "name": f"k{key}_v{value}", "fields": fields}
    return {"type": "array", "items": record, "logicalType": "map"}


def _array(item: Json, ident: int) -> Json:
    return {"type": "array", "items": item, "element-id": ident}


def _entry_schema(partition: Sequence[ExportedPartition]) -> Json:
    """A manifest's entry. Fields of format 3 are optional, so format 2 has them too, as its specification allows."""
    values = {"type": "record", "name": "r102", "fields": [one.avro for one in partition]}
    file = [
        _required("content", "int", 134),
        _required("file_path", "string", 100),
        _required("file_format", "string", 101),
        _required("partition", values, 102),
        _required("record_count", "long", 103),
        _required("file_size_in_bytes", "long", 104),
        _optional("column_sizes", _map("column_sizes", 117, 118, "long"), 108),
        _optional("value_counts", _map("value_counts", 119, 120, "long"), 109),
        _optional("null_value_counts", _map("null_value_counts", 121, 122, "long"), 110),
        _optional("nan_value_counts", _map("nan_value_counts", 138, 139, "long"), 137),
        _optional("lower_bounds", _map("lower_bounds", 126, 127, "bytes"), 125),
        _optional("upper_bounds", _map("upper_bounds", 129, 130, "bytes"), 128),
        _optional("key_metadata", "bytes", 131),
        _optional("split_offsets", _array("long", 133), 132),
        _optional("equality_ids", _array("int", 136), 135),
        _optional("sort_order_id", "int", 140),
        _optional("first_row_id", "long", 142),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    ]
    fields = [
        _required("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _required("data_file", {"type": "record", "name": "r2", "fields": file}, 2),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    ],
}
_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _required("manifest_path", "string", 500),
        _required("manifest_length", "long", 501),
        _required("partition_spec_id", "int", 502),
        _required("content", "int", 517),
        _required("sequence_number", "long", 515),
        _required("min_sequence_number", "long", 516),
        _required("added_snapshot_id", "long", 503),
        _required("added_files_count", "int", 504),
        _required("existing_files_count", "int", 505),
        _required("deleted_files_count", "int", 506),
        _required("added_rows_count", "long", 512),
        _required("existing_rows_count", "long", 513),
        _required("deleted_rows_count", "long", 514),
        _optional("partitions", _array(_SUMMARY, 508), 507),
        _optional("key_metadata", "bytes", 519),
        _optional("first_row_id", "long", 520),
    ],
}


def encode_manifest(
    records: Iterable[Record],
    partition: Sequence[ExportedPartition],
    *,
    schema: Json,
    spec: int,
    content: str,
    format_version: int,
) -> bytes:
    """A manifest with these entries, all of one spec."""
    metadata = {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json.dumps([one.json for one in partition]),
        "partition-spec-id": str(spec),
        "format-version": str(format_version),
        "content": content,
    }
    return _encode(_entry_schema(partition), records, metadata)


def encode_list(manifests: Iterable[Record], *, snapshot_id: int, sequence: int, format_version: int) -> bytes:
    """A manifest list."""
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null",
        "sequence-number": str(sequence),
        "format-version": str(format_version),
    }
    if format_version >= V3:
        metadata["first-row-id"] = "0"
    return _encode(_LIST, manifests, metadata)


def _encode(schema: Json, records: Iterable[Record], metadata: Mapping[str, str]) -> bytes:
    fastavro = _fastavro()
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema, {}), records, codec="deflate", metadata=dict(metadata))
    return out.getvalue()


def decode_records(data: bytes | memoryview, place: str) -> list[Record]:
    """The records of an Avro file. Raises Malformed."""
    fastavro = _fastavro()
    try:
        return cast("list[Record]", list(fastavro.reader(io.BytesIO(bytes(data)))))
    except (ValueError, KeyError, IndexError, EOFError, TypeError, StopIteration) as error:
        raise Malformed(f"not an Avro file: {error}", place=place) from error


def _fastavro() -> Any:  # noqa: ANN401  # a module
    try:
        import fastavro
    except ImportError:
        raise Unsupported(
            "exports to Iceberg need fastavro", hint='Install it: pip install "underlay[export]".'
        ) from None
    return fastavro
