"""Delta tables: written by delta-rs, or action by action where it cannot write what other writers do."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from uuid import UUID

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
from deflate import crc32
from pyroaring import BitMap64

import underlay
from tests.interop.imports.rows import sorted_rows

NAME = "d.t"
NULL = "__HIVE_DEFAULT_PARTITION__"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAPPING = "delta.columnMapping"


def by_duckdb(folder: Path) -> pa.Table:
    """All rows as DuckDB's extension reads them."""
    return _duckdb().sql(f"from delta_scan('{folder}')").to_arrow_table()


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.load_extension(str(next(Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension"))))
    return connection


class HandWritten:
    """A Delta table whose log a test writes."""

    def __init__(self, folder: Path, fields: Sequence[Mapping[str, object]], **options: object) -> None:
        self.folder = folder
        self.version = -1
        (folder / "_delta_log").mkdir(parents=True)
        features = options.get("features", ["columnMapping", "deletionVectors", "timestampNtz"])
        self.commit(
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": features,
                    "writerFeatures": features,
                }
            },
            self.metadata(fields, **options),
        )

    def metadata(self, fields: Sequence[Mapping[str, object]], **options: object) -> dict[str, object]:
        mode = options.get("mode")
        return {
            "metaData": {
                "id": options.get("id", "7e0a1f0c-0000-4000-8000-000000000001"),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
                "partitionColumns": options.get("partition_by", []),
                "configuration": {f"{MAPPING}.mode": mode, f"{MAPPING}.maxColumnId": "99"} if mode else {},
                "createdTime": 0,
            }
        }

    def commit(self, *actions: Mapping[str, object]) -> None:
        self.version += 1
        text = "\n".join(json.dumps(action) for action in actions)
        (self.folder / "_delta_log" / f"{self.version:020}.json").write_text(text + "\n")

    def file(self, name: str, rows: pa.Table) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, row_group_size=4)
        return path

    def add(self, name: str, rows: pa.Table | None = None, **more: object) -> dict[str, object]:
        """The action that adds a file, which is written unless it is there already."""
        path = self.folder / name if rows is None else self.file(name, rows)
        given = {"partitionValues": {}, "modificationTime": 0, "dataChange": True, **more}
        count = pq.read_metadata(path).num_rows
        stats = json.dumps({"numRecords": count})
        return {"add": {"path": more.get("path", name), "size": path.stat().st_size, "stats": stats, **given}}

    def remove(self, name: str, vector: Mapping[str, object] | None = None) -> dict[str, object]:
        extra = {} if vector is None else {"deletionVector": vector}
        return {"remove": {"path": name, "deletionTimestamp": 0, "dataChange": True, **extra}}


def field(name: str, type_: object, ident: int | None = None, physical: str | None = None) -> dict[str, object]:
    """A field of a Delta schema."""
    mapped = {} if ident is None else {f"{MAPPING}.id": ident, f"{MAPPING}.physicalName": physical or name}
    return {"name": name, "type": type_, "nullable": True, "metadata": mapped}


def vector_bytes(rows: Sequence[int]) -> bytes:
    """A deletion vector as Delta Lake stores it."""
    head = struct.pack("<i", 1681511377)
    return head + (BitMap64(rows).serialize() if rows else struct.pack("<Q", 0))


def inline_vector(rows: Sequence[int]) -> dict[str, object]:
    """A deletion vector in the log itself."""
    data = vector_bytes(rows)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data + bytes(-len(data) % 4)),
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


def vector_file(folder: Path, vectors: Sequence[Sequence[int]], prefix: str = "") -> list[dict[str, object]]:
    """A file of deletion vectors, and what a log says of each."""
    name = UUID(int=0x1234_5678_9ABC_4DEF_8123_4567_89AB_CDEF)
    data, found = b"\x01", []
    for rows in vectors:
        body = vector_bytes(rows)
        found.append(
            {
                "storageType": "u",
                "pathOrInlineDv": prefix + z85(name.bytes),
                "offset": len(data),
                "sizeInBytes": len(body),
                "cardinality": len(rows),
            }
        )
        data += struct.pack(">i", len(body)) + body + struct.pack(">I", crc32(body))
    path = folder / prefix / f"deletion_vector_{name}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return found


def z85(data: bytes) -> str:
    """ZeroMQ's letters for bytes, four at a time."""
    text = ""
    for begin in range(0, len(data), 4):
        number = int.from_bytes(data[begin : begin + 4], "big")
        text += "".join(Z85[number // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return text


def numbers(begin: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(begin, end), pa.int64()), "name": [f"n{one}" for one in range(begin, end)]})


def imported(lake: underlay.Lake, folder: Path) -> underlay.Table:
    """The table, whose rows equal those of both other readers."""
    table = lake.import_table(NAME, f"delta:{folder}")
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    return table
