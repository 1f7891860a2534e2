"""A QuestDB table's directory at its committed `_txn`: its partitions, and where they lie.

The sizes of `data.parquet` are those that `_txn` names, never those of the files: bytes behind them belong to a write
that was not committed, or is not yet. Nothing is locked and nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from underlay.errors import Damaged, Inconsistent, InvalidRequest, NotFound, Unsupported, from_os_error
from underlay.hot.txn.file import TXN_NAME, read_txn
from underlay.hot.txn.partition_names import Granularity, begins_of, directory_name, partition_name
from underlay.hot.txn.record import TxnPartition
from underlay.pm.file import read_sidecar
from underlay.pm.format.sidecar import Sidecar

DATA_NAME = "data.parquet"
SIDECAR_NAME = "_pm"
_SHOWN = 5
_UNITS = ("us", "ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPartition:
    """A Parquet partition at a committed version."""

    name: str
    """Such as `2023-02-10`."""
    directory: Path
    row_count: int
    size_bytes: int
    """The committed size of its `data.parquet`, which may be longer."""
    sidecar: Sidecar

    @property
    def data(self) -> Path:
        """Its Parquet file."""
        return self.directory / DATA_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestdbTable:
    """A table at one version. `native` are the names of partitions that only QuestDB can read."""

    path: Path
    version: int
    parquet: tuple[ParquetPartition, ...]
    native: tuple[str, ...]

    def need_parquet(self) -> None:
        """Raise Unsupported when the table has rows, but no Parquet partition."""
        if not self.parquet and self.native:
            raise Unsupported(
                "no partition of this QuestDB table is Parquet",
                place=str(self.path),
                found=", ".join(self.native[:_SHOWN]),
                hint=convert_hint(self),
            )


def convert_hint(table: QuestdbTable) -> str:
    """What to do about native partitions."""
    named = ", ".join(f"'{name}'" for name in table.native[:_SHOWN])
    more = ", …" if len(table.native) > _SHOWN else ""
    return (
        f"Convert them in QuestDB: ALTER TABLE {table.path.name.partition('~')[0]} CONVERT PARTITION TO PARQUET LIST "
        f"{named}{more};"
    )


def read_questdb_table(path: str | os.PathLike[str]) -> QuestdbTable:
    """The table in a directory of QuestDB's `db` folder, at its committed version.

    Raises NotFound, InvalidRequest for a directory that is no table, Unsupported for partitions whose data lies
    elsewhere, Damaged and Inconsistent.
    """
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise NotFound("there is no such directory", place=str(path), hint="Name a table's directory in QuestDB's db.")
    try:
        record = read_txn(folder / TXN_NAME)
    except NotFound:
        raise InvalidRequest(
            "this is not the directory of a QuestDB table: it has no _txn",
            place=str(folder),
            hint="Name a table's directory, such as /var/lib/questdb/db/trades~12.",
        ) from None
    if record.is_ours:
        raise InvalidRequest(
            "this is a hot table of Underlay, not one of QuestDB",
            place=str(folder),
            hint='Its rows become files of its table by "underlay hot seal".',
        )
    entries = _names(folder)
    parquet, native = [], []
    for one in record.partitions:
        name = _find(folder, entries, one)
        if one.size_bytes is None:
            native.append(name)
        else:
            parquet.append(_parquet_partition(folder / directory_name(name, one.name_txn), name, one, one.size_bytes))
    return QuestdbTable(path=folder, version=record.version, parquet=tuple(parquet), native=tuple(native))


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError as error:
        raise from_os_error(error, str(folder)) from error


def _find(folder: Path, entries: frozenset[str], one: TxnPartition) -> str:
    """The name of a partition. `_txn` has its first timestamp but neither its unit nor its length, so the directory
    that exists decides: names of different lengths have different forms.
    """
    candidates = dict.fromkeys(_candidates(one.timestamp))
    found = [name for name in candidates if directory_name(name, one.name_txn) in entries]
    if len(found) == 1:
        return found[0]
    tried = ", ".join(directory_name(name, one.name_txn) for name in candidates)
    raise Inconsistent(
        "the directory of a committed partition is missing" if not found else "more than one directory fits",
        place=str(folder),
        expected=tried[:200],
        found=", ".join(found) or None,
        hint="QuestDB may have changed the table meanwhile; try again.",
    )


def _candidates(timestamp: int) -> Iterator[str]:
    for unit in _UNITS:
        for granularity in Granularity:
            if begins_of(np.array([timestamp], np.int64), granularity, unit)[0] == timestamp:
                try:
                    yield partition_name(timestamp, granularity, unit)
                except InvalidRequest:  # in this unit it is beyond the years that have names
                    continue
    yield partition_name(0, Granularity.NONE, "us")


def _parquet_partition(directory: Path, name: str, one: TxnPartition, size_bytes: int) -> ParquetPartition:
    if one.is_remote:
        raise Unsupported(
            "the partition's data lies on another store than its sidecar",
            place=str(directory),
            hint="Bring it back in QuestDB, or register the object by its URL.",
        )
    sidecar = read_sidecar(directory / SIDECAR_NAME, parquet_size=size_bytes)
    rows = int(sidecar.num_rows.sum())
    if rows != one.row_count:
        raise Inconsistent(
            "_txn and the sidecar have different numbers of rows",
            place=str(directory),
            expected=f"{one.row_count} in _txn",
            found=f"{rows} in _pm",
        )
    data = directory / DATA_NAME
    try:
        length = data.stat().st_size
    except OSError as error:
        raise from_os_error(error, str(data)) from error
    if length < size_bytes:
        raise Damaged(
            "the file is shorter than its committed size", place=str(data), expected=f"{size_bytes} bytes", found=length
        )
    return ParquetPartition(name=name, directory=directory, row_count=rows, size_bytes=size_bytes, sidecar=sidecar)
