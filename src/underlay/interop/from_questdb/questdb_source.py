"""A QuestDB table as a source: its Parquet partitions, through their sidecars. No footer is read."""

from __future__ import annotations

import os
from collections.abc import Mapping

from underlay.change.register.find_files import find_files
from underlay.hot.questdb.register import read_questdb_tables
from underlay.hot.questdb.table_directory import QuestdbTable, convert_hint, read_questdb_table
from underlay.interop.from_hive.file_columns import Columns, columns_of_schema, distinct_schemas, numbered, together
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceMark, SourceTable
from underlay.interop.imports.take_files import not_importable
from underlay.runtime.locks import cached_property
from underlay.scan.read.file_stores import FileStores
from underlay.schema.table_schema import TableSchema


class QuestdbSource:
    """The table in a directory of QuestDB's `db` folder. Each of its commits is a version."""

    kind = "questdb"

    def __init__(self, address: str, stores: FileStores) -> None:
        self.url = os.path.realpath(os.path.expanduser(address))
        self._stores = stores

    @cached_property
    def _table(self) -> QuestdbTable:
        return read_questdb_table(self.url)

    def newest(self) -> SourceMark:
        """See TableSource."""
        return SourceMark(self._table.version, f"version {self._table.version}")

    def contradiction(self, known: SourceMark) -> str | None:
        """See TableSource."""
        if self._table.version < known.version:
            return "was rolled back: its version is older than the one that was imported"
        return None

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """See TableSource. Partitions that are not Parquet are refused: their rows would be missing."""
        if self._table.native:
            names = [f"Partition {name} is not Parquet." for name in self._table.native]
            raise not_importable(names, convert_hint(self._table))
        reads, _ = read_questdb_tables([self.url], self._stores)
        problems: list[str] = []
        found: Columns = ()
        for one, place in distinct_schemas(reads):
            found = together(found, columns_of_schema(one, problems), problems, place)
        if problems:
            raise not_importable(list(dict.fromkeys(problems)))
        by_location = {
            file.location: file for file in find_files([str(one.data) for one in self._table.parquet], self._stores)
        }
        files = [
            SourceFile(found=by_location[read.place.location], size_bytes=read.place.size_bytes, etag=read.place.etag)
            for read in reads
        ]
        return SourceTable(
            table_id="",
            mark=self.newest(),
            columns=numbered(found),
            files=files,
            constants=ConstantRule.EQUALS,
            by_ids=False,
            by_names=True,
            load_deletes=lambda _: {},
            reads={read.place.location: read for read in reads},
        )
