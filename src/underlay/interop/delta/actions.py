"""The actions of Delta's log, as JSON: files with statistics and deletion vectors.

A file with deleted rows has no bounds: Spark answers min() and max() from bounds, and a deleted row may have been the
least (X4). A deletion vector holds our bytes as they are.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import FileEntry
from underlay.index.segment.segment import Segment
from underlay.index.state import count_rows
from underlay.interop.iceberg.columns.types import IcebergType, Json, scalar_type
from underlay.interop.iceberg.objects.bounds import LeafMetrics, leaf_metrics
from underlay.interop.iceberg.objects.deletions import vector_content
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, TypeKind

_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85 = bytes.maketrans(_B85, _Z85)
_EPOCH = datetime(1970, 1, 1)
_MS = 1000
_EXACT_DIGITS = 15
_WHOLE = ("int", "long", "date", "timestamp", "timestamptz")


def deletion_vector(bits: bytes) -> Json:
    """A deletion vector, inline."""
    content = vector_content(bits)
    padded = content + bytes(-len(content) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": base64.b85encode(padded).translate(_TO_Z85).decode(),
        "sizeInBytes": len(content),
        "cardinality": bitmaps.count(bits),
    }


def add_actions(
    files: Sequence[FileEntry],
    leaves: Sequence[LeafColumn],
    schema: TableSchema,
    *,
    folder: str,
    stamp_ms: int,
) -> Iterator[Json]:
    """The actions that add files. `folder` is that of their revision, below the table's."""
    arrays = Segment.of_entries(files, schema)
    metrics = [(leaf, found) for leaf in leaves if (found := leaf_metrics(arrays, leaf)) is not None]
    for at, file in enumerate(files):
        added: dict[str, Json] = {
            "path": f"{folder}/{file.location}",
            "partitionValues": {},
            "size": file.size_bytes,
            "modificationTime": stamp_ms,
            "dataChange": True,
            "stats": json.dumps(_statistics(file, metrics, at)),
        }
        if file.deletes:
            added["deletionVector"] = deletion_vector(file.deletes)
        yield {"add": added}


def remove_action(path: str, vector: Json | None, *, stamp_ms: int) -> Json:
    """The action that removes a file with this deletion vector."""
    removed: dict[str, Json] = {"path": path, "deletionTimestamp": stamp_ms, "dataChange": True}
    if vector is not None:
        removed["deletionVector"] = vector
    return {"remove": removed}


def _statistics(file: FileEntry, metrics: Sequence[tuple[LeafColumn, LeafMetrics]], at: int) -> Json:
    found: dict[str, Json] = {"numRecords": count_rows(file)}
    lows, highs, nulls = dict[str, Json](), dict[str, Json](), dict[str, Json]()
    for leaf, known in metrics:
        if (count := known.nulls[at]) is not None:
            _set(nulls, leaf.path, count)
        if not file.deletes:
            low, high = known.lows[at], known.highs[at]
            if low is not None and (value := _shown(low, leaf.type, is_low=True)) is not None:
                _set(lows, leaf.path, value)
            if high is not None and (value := _shown(high, leaf.type, is_low=False)) is not None:
                _set(highs, leaf.path, value)
    found |= {"minValues": lows, "maxValues": highs, "nullCount": nulls}
    if file.deletes:
        found["tightBounds"] = False
    return found


def _set(into: dict[str, Json], path: tuple[str, ...], value: Json) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value


def _shown(packed: bytes, scalar: Scalar, *, is_low: bool) -> Json | None:
    """A bound as JSON; None for one that JSON or a reader would not keep exactly."""
    type_ = scalar_type(scalar)
    if not isinstance(type_, IcebergType):
        return None
    match scalar.kind:
        case TypeKind.STRING:
            return packed.decode(errors="replace") if _is_text(packed) else None
        case TypeKind.FLOAT32 | TypeKind.FLOAT64:
            number = float(struct.unpack("<f" if scalar.kind is TypeKind.FLOAT32 else "<d", packed)[0])
            return number if abs(number) != float("inf") else None
        case TypeKind.DECIMAL:
            return _decimal(int.from_bytes(packed, "big", signed=True), scalar.scale)
        case _ if type_.text not in _WHOLE:
            return None
    number = int.from_bytes(packed, "little", signed=True)
    try:
        match scalar.kind:
            case TypeKind.DATE:
                return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
            case TypeKind.TIMESTAMP:
                return _timestamp(number, scalar, is_low=is_low)
    except OverflowError:
        return None
    return number


def _timestamp(micros: int, scalar: Scalar, *, is_low: bool) -> str:
    """Whole milliseconds, rounded away from the values: readers cut off the rest."""
    millis = micros // _MS if is_low else -(-micros // _MS)
    moment = _EPOCH + timedelta(milliseconds=millis)
    return f"{moment.isoformat(timespec='milliseconds')}{'Z' if scalar.zone else ''}"


def _decimal(unscaled: int, scale: int) -> Json | None:
    number = unscaled / 10**scale if scale else unscaled
    is_kept = len(str(abs(unscaled))) <= _EXACT_DIGITS and "e" not in repr(number)
    return number if is_kept else None


def _is_text(packed: bytes) -> bool:
    try:
        packed.decode()
    except UnicodeDecodeError:
        return False
    return True
