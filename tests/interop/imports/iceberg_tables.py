"""Iceberg tables: written by pyiceberg, with deletes added file by file, since it writes none."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deflate import crc32
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record

from tests.interop.imports.delta_tables import vector_bytes

NAME = "ns.t"


def catalog(folder: Path) -> SqlCatalog:
    """A catalog, with a namespace, for tables below this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    found.create_namespace_if_not_exists("ns")
    return found


def data_files(table: Table) -> list[str]:
    """The data files of the newest snapshot."""
    return [str(task.file.file_path) for task in table.scan().plan_files()]


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AddDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec: object) -> ManifestWriterV2:
        return _DeleteManifest(
            spec=spec,
            schema=self._transaction.table_metadata.schema(),
            output_file=self.new_manifest_output(),
            snapshot_id=self._snapshot_id,
            avro_compression="null",
        )


def delete_positions(
    table: Table, rows: Mapping[str, Sequence[int]], *, partition: Record | None = None, equality: bool = False
) -> None:
    """A snapshot with a file of position deletes."""
    pairs = sorted((path, row) for path, some in rows.items() for row in some)
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    sink = io.BytesIO()
    pq.write_table(pa.table([[one for one, _ in pairs], [one for _, one in pairs]], schema), sink)
    path = f"{table.location()}/data/deletes-{len(list(Path(table.location()[7:]).rglob('*')))}.parquet"
    Path(path.removeprefix("file://")).write_bytes(sink.getvalue())
    file = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES if equality else DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition or Record(),
        record_count=len(pairs),
        file_size_in_bytes=len(sink.getvalue()),
        equality_ids=[1] if equality else None,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    file.spec_id = table.metadata.default_spec_id
    with table.transaction() as transaction:
        added = _AddDeletes(operation=Operation.DELETE, transaction=transaction, io=table.io)
        added.append_data_file(file)
        added.commit()


def puffin_blob(rows: Sequence[int]) -> bytes:
    """A deletion vector as Iceberg stores it."""
    body = vector_bytes(rows)
    return struct.pack(">i", len(body)) + body + struct.pack(">I", crc32(body))
