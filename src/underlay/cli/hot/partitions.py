"""The Parquet partitions of a directory with a `_txn`, ours or QuestDB's, each with its sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from underlay.cli.hot.choice import txn_folder
from underlay.errors import NotFound
from underlay.hot.files.version import DATA_NAME, SIDECAR_NAME
from underlay.hot.questdb.table_directory import read_questdb_table
from underlay.hot.read.entries import load_hot_footer
from underlay.hot.read.snapshot import PinnedHot
from underlay.hot.txn.file import TXN_NAME, read_txn
from underlay.hot.txn.identity import need_identity
from underlay.pm.file import read_sidecar
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.read.file_schema import FileSchema


@dataclass(frozen=True, kw_only=True)
class SidecarPartition:
    """A Parquet partition as it is committed. `schema` is known for partitions of ours."""

    name: str
    directory: Path
    row_count: int
    size_bytes: int

    @property
    def data(self) -> Path:
        """Its Parquet file."""
        return self.directory / DATA_NAME

    def sidecar(self) -> Sidecar:
        """The version of its sidecar that is committed. Raises NotFound, Damaged, VersionNotFound."""
        return read_sidecar(self.directory / SIDECAR_NAME, parquet_size=self.size_bytes)

    def schema(self, *, is_ours: bool) -> FileSchema | None:
        """The types that a sidecar does not have."""
        return FileSchema.of_footer(load_hot_footer(self.data, self.size_bytes)) if is_ours else None


def partitions_in(path: Path, name: str | None = None) -> tuple[bool, list[SidecarPartition], tuple[str, ...]]:
    """Whether the table is ours, its Parquet partitions, and the names of those that only QuestDB can read. Raises
    NotFound when there is no partition of this name."""
    folder = txn_folder(path)
    record = read_txn(folder / TXN_NAME)
    native: tuple[str, ...] = ()
    if record.is_ours:
        pinned = PinnedHot(folder=folder, identity=need_identity(folder), record=record)
        found = [
            SidecarPartition(
                name=pinned.directory(one).name.partition(".")[0],
                directory=pinned.directory(one),
                row_count=one.row_count,
                size_bytes=one.size_bytes or 0,
            )
            for one in record.partitions
        ]
    else:
        table = read_questdb_table(folder)
        native = table.native
        found = [
            SidecarPartition(name=one.name, directory=one.directory, row_count=one.row_count, size_bytes=one.size_bytes)
            for one in table.parquet
        ]
    chosen = list(_named(found, name))
    if name is not None and not chosen:
        raise NotFound("there is no such Parquet partition", place=str(folder), found=name)
    return record.is_ours, chosen, native


def _named(found: list[SidecarPartition], name: str | None) -> Iterator[SidecarPartition]:
    for one in found:
        if name in (None, one.name, one.directory.name):
            yield one
