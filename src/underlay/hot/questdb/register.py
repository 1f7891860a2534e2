"""Registers the Parquet partitions of a QuestDB table, described by their sidecars: no footer is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike

from underlay.change.register.find_files import find_files
from underlay.change.register.read_footers import ReadFile
from underlay.errors import NotFound
from underlay.hot.questdb.footer import questdb_footer
from underlay.hot.questdb.table_directory import ParquetPartition, QuestdbTable, read_questdb_table
from underlay.index.intake.stack_arrays import FilePlace
from underlay.scan.read.file_stores import FileStores

PREFIX = "questdb:"
"""Before the path of a table's directory, where `register` takes a pattern."""


def split_questdb(patterns: Sequence[str | PathLike[str]]) -> tuple[list[str | PathLike[str]], list[str]]:
    """The patterns of files, and the paths of QuestDB's tables."""
    tables = [one for one in patterns if isinstance(one, str) and one.startswith(PREFIX)]
    return [one for one in patterns if one not in tables], [one.removeprefix(PREFIX) for one in tables]


def read_questdb_tables(paths: Sequence[str], stores: FileStores) -> tuple[list[ReadFile], tuple[str, ...]]:
    """The Parquet partitions of tables at their committed versions, and the names of the native ones.

    Raises Unsupported for a table that has no Parquet partition; NotFound, InvalidRequest, Inconsistent, Damaged.
    """
    found: list[ReadFile] = []
    native: list[str] = []
    for path in paths:
        table = read_questdb_table(path)
        table.need_parquet()
        found += [_described(one, stores) for one in table.parquet]
        native += [_label(table, name) for name in table.native]
    return found, tuple(native)


def _label(table: QuestdbTable, name: str) -> str:
    return f"{table.path.name}{os.sep}{name}"


def _described(partition: ParquetPartition, stores: FileStores) -> ReadFile:
    (file,) = find_files([str(partition.data)], stores)
    stored = file.place.store.head(file.place.key)
    if stored is None:
        raise NotFound("the file of a committed partition is missing", place=str(partition.data))
    grew = stored.size_bytes > partition.size_bytes
    place = FilePlace(
        location=file.location,
        size_bytes=stored.size_bytes,
        etag=stored.etag,
        own_footer_bytes=0 if grew else partition.sidecar.footer.parquet_footer_length,
    )
    return ReadFile(place=place, footer=questdb_footer(partition.sidecar), path="")
