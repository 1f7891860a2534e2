"""Deleted rows: as position deletes in Parquet for format 2, as deletion vectors in Puffin for format 3.

A Puffin blob holds our bytes as they are: they are the portable form of a 32-bit Roaring bitmap, which is one container
of Iceberg's 64-bit form.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.index import deletion_vectors as bitmaps
from underlay.interop.iceberg.columns.types import Json
from underlay.interop.iceberg.objects.avro import Record
from underlay.interop.iceberg.objects.data_manifest import EXISTING

PATH_ID, POSITION_ID = 2147483546, 2147483545
_PUFFIN = b"PFA1"
_VECTOR = b"\xd1\xd3\x39\x64"
_ONE_CONTAINER = struct.pack("<QI", 1, 0)
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRows:
    """The deleted rows of one file."""

    url: str
    bits: bytes
    count: int
    spec: int
    partition: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObject:
    """An object of an export."""

    name: str
    data: bytes


def vector_content(bits: bytes) -> bytes:
    """A deletion vector with its magic: our bytes as the only container of Iceberg's and Delta's 64-bit form."""
    return _VECTOR + _ONE_CONTAINER + bits


def vector_bytes(bits: bytes) -> bytes:
    """The blob of a deletion vector."""
    content = vector_content(bits)
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def puffin(
    deleted: Sequence[DeletedRows], *, name: str, url: str, snapshot_id: int, sequence: int
) -> tuple[NewObject, list[tuple[int, Record]]]:
    """One Puffin file with all vectors, and for each its spec and manifest entry."""
    parts, blobs, places = [_PUFFIN], list[Json](), list[tuple[int, int]]()
    at = len(_PUFFIN)
    for one in deleted:
        blob = vector_bytes(one.bits)
        parts.append(blob)
        places.append((at, len(blob)))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": at,
                "length": len(blob),
                "properties": {"referenced-data-file": one.url, "cardinality": str(one.count)},
            }
        )
        at += len(blob)
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "Underlay"}}).encode()
    parts += [_PUFFIN, payload, struct.pack("<iI", len(payload), 0), _PUFFIN]
    data = b"".join(parts)
    records = []
    for one, (begin, length) in zip(deleted, places, strict=True):
        file = {
            "content": 1,
            "file_path": url,
            "file_format": "PUFFIN",
            "partition": one.partition,
            "record_count": one.count,
            "file_size_in_bytes": len(data),
            "referenced_data_file": one.url,
            "content_offset": begin,
            "content_size_in_bytes": length,
        }
        records.append((one.spec, delete_entry(file, snapshot_id, sequence)))
    return NewObject(name=name, data=data), records


def delete_entry(file: Record, snapshot_id: int, sequence: int) -> Record:
    """The manifest entry of a file with deletions."""
    return {
        "status": EXISTING,
        "snapshot_id": snapshot_id,
        "sequence_number": sequence,
        "file_sequence_number": sequence,
        "data_file": file,
    }


@dataclass(frozen=True, slots=True)
class PositionGroup:
    """The deleted rows of the files of one partition, for one file of position deletes. Equal rows have equal keys."""

    deleted: Sequence[DeletedRows]
    key: str


def position_groups(deleted: Iterable[DeletedRows]) -> list[PositionGroup]:
    """The deleted rows by partition: Iceberg applies position deletes within one."""
    groups: dict[tuple[int, str], list[DeletedRows]] = {}
    for one in deleted:
        groups.setdefault((one.spec, json.dumps(one.partition)), []).append(one)
    found = []
    for some in groups.values():
        some.sort(key=lambda one: one.url.encode())
        digest = blake2b(digest_size=8)
        for one in some:
            digest.update(f"{one.url}\0{one.spec}\0{len(one.bits)}\0".encode() + one.bits)
        found.append(PositionGroup(some, digest.hexdigest()))
    return found


def position_deletes(group: PositionGroup, *, name: str, url: str) -> tuple[NewObject, Record]:
    """The Parquet file of paths and positions of a group, and how a manifest describes it."""
    some = group.deleted
    data = _encode_positions(some)
    file: Record = {
        "content": 1,
        "file_path": url,
        "file_format": "PARQUET",
        "partition": some[0].partition,
        "record_count": sum(one.count for one in some),
        "file_size_in_bytes": len(data),
        "lower_bounds": [{"key": PATH_ID, "value": some[0].url.encode()}],
        "upper_bounds": [{"key": PATH_ID, "value": some[-1].url.encode()}],
        "referenced_data_file": some[0].url if len(some) == 1 else None,
    }
    return NewObject(name=name, data=data), file


def _encode_positions(deleted: Sequence[DeletedRows]) -> bytes:
    schema = pa.schema([_column("file_path", pa.string(), PATH_ID), _column("pos", pa.int64(), POSITION_ID)])
    out = BytesIO()
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in _batches(deleted, schema):
            writer.write_table(batch)
    return out.getvalue()


def _batches(deleted: Sequence[DeletedRows], schema: pa.Schema) -> Iterator[pa.Table]:
    """About a million rows at a time."""
    some, row_count = list[pa.Table](), 0
    for one in deleted:
        positions = bitmaps.unpack(one.bits)
        paths = pa.repeat(pa.scalar(one.url, pa.string()), len(positions))
        some.append(pa.Table.from_arrays([paths, pa.array(positions)], schema=schema))
        row_count += len(positions)
        if row_count >= _AT_ONCE:
            yield pa.concat_tables(some).combine_chunks()
            some, row_count = [], 0
    if some:
        yield pa.concat_tables(some).combine_chunks()


def _column(name: str, type_: pa.DataType, ident: int) -> pa.Field[pa.DataType]:
    return pa.field(name, type_, nullable=False, metadata={"PARQUET:field_id": str(ident)})
