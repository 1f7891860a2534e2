"""Checkpoints of a log: its whole state in Parquet, so that readers, and the next export, need only what came after."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import NotFound
from underlay.interop.delta.log import ExportLog, ExportState
from underlay.interop.iceberg.columns.types import Json

EVERY = 20
"""Entries between two checkpoints."""
_LAST = "_last_checkpoint"
_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("deletionVector", _VECTOR),
                ]
            ),
        ),
        ("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)


def write_checkpoint(log: ExportLog, state: ExportState) -> int:
    """Put a checkpoint, if one is due; how many objects were put. A checkpoint is the same whoever puts it."""
    if state.number == 0 or state.number % EVERY:
        return 0
    rows: list[Json] = [{"protocol": state.protocol}, {"metaData": _with_pairs(state.metadata or {})}]
    rows += [{"add": {**add, "partitionValues": [], "dataChange": False}} for add in state.files.values()]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), out, compression="snappy")
    log.store.put(_key(log, state.number), out.getvalue())
    log.store.put(f"{log.folder}/{_LAST}", json.dumps({"version": state.number, "size": len(rows)}).encode())
    return 2


def read_checkpoint(log: ExportLog) -> ExportState | None:
    """The state at the last checkpoint; None without one."""
    try:
        number = json.loads(bytes(log.store.get(f"{log.folder}/{_LAST}")[0]))["version"]
        data = log.store.get(_key(log, number))[0]
        rows = pq.read_table(pa.BufferReader(pa.py_buffer(data))).to_pylist()
    except (NotFound, ValueError, KeyError, TypeError, pa.ArrowException):
        return None
    state = ExportState(number=number)
    for row in rows:
        if row["add"] is not None:
            add = _without_nulls(row["add"]) | {"partitionValues": {}}
            state.files[add["path"]] = add
        if row["protocol"] is not None:
            state.protocol = _without_nulls(row["protocol"])
        if row["metaData"] is not None:
            state.metadata = _without_pairs(row["metaData"])
    return state


def _key(log: ExportLog, number: int) -> str:
    return f"{log.folder}/{number:020}.checkpoint.parquet"


def _with_pairs(metadata: Json) -> Json:
    """Arrow has maps as pairs."""
    return {**metadata, "configuration": [], "format": {**metadata.get("format", {}), "options": []}}


def _without_pairs(metadata: Json) -> Json:
    found = _without_nulls(metadata)
    return {**found, "configuration": {}, "format": {"provider": found["format"]["provider"], "options": {}}}


def _without_nulls(row: Json) -> Json:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in row.items()
        if value is not None
    }
