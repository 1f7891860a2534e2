"""The files of a snapshot, from its manifests."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from underlay.errors import Damaged, Malformed, NotFound, Unsupported
from underlay.interop.imports.source_folder import locate_uri
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import FileStores, ObjectPlace

DATA, POSITION_DELETES, EQUALITY_DELETES = range(3)
_DELETED = 2
_READERS = 8

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A live entry of a manifest. `partition` has values by the ids of partition fields."""

    content: int
    path: str
    format: str
    size_bytes: int
    record_count: int
    spec: int
    sequence: int
    partition: Mapping[int, object]
    referenced: str | None
    offset: int | None
    length: int | None


def need_fastavro() -> None:
    """Raise Unsupported with what to install, unless it is there."""
    try:
        import fastavro  # noqa: F401  # slow to import, and only for Iceberg
    except ImportError:
        raise Unsupported(
            "tables of Iceberg need fastavro", hint='Install it: pip install "underlay[iceberg]".'
        ) from None


def place_of(uri: str, stores: FileStores) -> ObjectPlace:
    """Where an object is. Raises Malformed for a relative path, which Iceberg does not have."""
    found = locate_uri(uri, stores)
    if found is None:
        raise Malformed("not an absolute path", place=uri)
    return found


def read_object(uri: str, stores: FileStores) -> memoryview:
    """An object's bytes. Raises NotFound with what it may mean."""
    place = place_of(uri, stores)
    try:
        return place.store.get(place.key)[0]
    except NotFound as error:
        error.problem = f"metadata of the source is missing: {error.problem}"
        error.hint = "The source may have expired the snapshot meanwhile. Try again."
        raise


def live_files(manifest_list: str, stores: FileStores) -> list[IcebergFile]:
    """All files of a snapshot, deletes too. Raises Malformed, Damaged, NotFound."""
    need_fastavro()
    manifests = [record for record, _ in _records(manifest_list, stores)]

    def read(manifest: Record) -> list[IcebergFile]:
        try:
            return list(_entries(manifest, stores))
        except (KeyError, TypeError, ValueError) as error:
            raise Malformed(f"not a manifest of Iceberg: {error!r}", place=str(manifest)) from error

    return [one for some in side_by_side(read, manifests, _READERS) for one in some]


def _entries(manifest: Record, stores: FileStores) -> Iterator[IcebergFile]:
    inherited = manifest.get("sequence_number") or 0
    names: dict[str, int] | None = None
    for record, schema in _records(manifest["manifest_path"], stores):
        if record["status"] == _DELETED:
            continue
        file = record["data_file"]
        if names is None:
            names = _partition_names(schema)
        sequence = record.get("sequence_number")
        partition = {names[name]: value for name, value in file["partition"].items()}
        yield IcebergFile(
            content=file.get("content") or DATA,
            path=file["file_path"],
            format=str(file["file_format"]).upper(),
            size_bytes=file["file_size_in_bytes"],
            record_count=file["record_count"],
            spec=manifest.get("partition_spec_id") or 0,
            sequence=inherited if sequence is None else sequence,
            partition=partition,
            referenced=file.get("referenced_data_file"),
            offset=file.get("content_offset"),
            length=file.get("content_size_in_bytes"),
        )


def _records(uri: str, stores: FileStores) -> list[tuple[Record, Any]]:
    import fastavro  # slow, and only for Iceberg

    data = read_object(uri, stores)
    try:
        reader = fastavro.reader(io.BytesIO(data))
        return [(dict(one), reader.writer_schema) for one in reader if isinstance(one, dict)]
    except (ValueError, TypeError, KeyError, EOFError, IndexError, OverflowError) as error:
        raise Damaged(f"not an Avro file: {error!r}", place=uri) from error


def _partition_names(schema: Mapping[str, Any]) -> dict[str, int]:
    """The field ids of a manifest's partition values by their names there, which may be altered for Avro."""
    file = _record_of(_field_of(schema, "data_file")["type"])
    partition = _record_of(_field_of(file, "partition")["type"])
    return {one["name"]: int(one["field-id"]) for one in partition["fields"]}


def _field_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in record["fields"] if one["name"] == name)
    return found


def _record_of(type_: object) -> Mapping[str, Any]:
    kinds: Sequence[object] = type_ if isinstance(type_, list) else [type_]
    found = next((one for one in kinds if isinstance(one, dict)), None)
    if found is None:
        raise TypeError("a record is missing")
    return found
