"""The log of a Delta table: which commits and checkpoints it has, and their actions.

_delta_log/00000000000000000007.json                            commit 7: one action a line
_delta_log/00000000000000000010.checkpoint.parquet              all actions up to commit 10
_delta_log/00000000000000000010.checkpoint.<part>.<parts>.parquet
_delta_log/00000000000000000010.checkpoint.<uuid>.json|parquet  may refer to files in _delta_log/_sidecars
_delta_log/_last_checkpoint                                     the version of a recent checkpoint
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deflate import crc32

from underlay.errors import Damaged, Malformed, NotFound
from underlay.index.sealed_json import UNDECODED
from underlay.interop.imports.source_folder import SourceFolder
from underlay.runtime.threads import side_by_side

LOG = "_delta_log"
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(?:\.([0-9]{10})\.([0-9]{10})|\.([^.]+))?\.(parquet|json)")
_READERS = 8


class DeletionVector(msgspec.Struct, frozen=True, rename="camel"):
    """Where the deleted rows of a file are noted."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What distinguishes it from others."""
        return f"{self.storage_type}{self.path_or_inline_dv}@{self.offset}"


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """A file becomes part of the table."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    deletion_vector: DeletionVector | None = None


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A file is no longer part of the table."""

    path: str
    deletion_vector: DeletionVector | None = None


class Format(msgspec.Struct, frozen=True):
    """How data files are encoded."""

    provider: str = "parquet"


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What the table is."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    format: Format = Format()
    description: str | None = None


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What a reader must know."""

    min_reader_version: int
    reader_features: tuple[str, ...] | None = None


class CheckpointPart(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a checkpoint."""

    path: str


class LogAction(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a commit. Actions that do not matter here decode as empty ones."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    sidecar: CheckpointPart | None = None


_DECODER = msgspec.json.Decoder(LogAction)


class _Hint(msgspec.Struct, frozen=True):
    version: int


@dataclass(frozen=True, kw_only=True)
class LogState:
    """A version of the table: its metadata, and its files in the order in which they came."""

    version: int
    protocol: Protocol
    metadata: Metadata
    files: Sequence[Add]


class DeltaLog:
    """The log below a table's folder, as it is when this is made: its names are listed once."""

    def __init__(self, folder: SourceFolder) -> None:
        self._folder = folder
        commits, checkpoints = self._list(self._hint())
        if not commits and not checkpoints:
            commits, checkpoints = self._list(None)
        if not commits and not checkpoints:
            raise NotFound(
                "no Delta table is here", place=folder.url, hint=f"A Delta table's folder has a folder {LOG}."
            )
        self._commits, self._checkpoints = commits, checkpoints

    @property
    def version(self) -> int:
        """The newest version."""
        return max([*self._commits, *self._checkpoints])

    def stamp(self, version: int) -> str | None:
        """What identifies the bytes of a commit; None when the log does not have it any longer."""
        try:
            return f"crc {crc32(self._folder.get(_commit_path(version))):08x}"
        except NotFound:
            return None

    def read(self) -> LogState:
        """The newest version. Raises Damaged for a gap, Malformed."""
        version = self.version
        begin, files = -1, dict[tuple[str, str | None], Add]()
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        if self._checkpoints:
            begin = max(self._checkpoints)
            actions = self._checkpoint(begin)
        else:
            actions = iter(())
        for action in self._all(actions, range(begin + 1, version + 1)):
            if action.add is not None:
                files[_file_key(action.add)] = action.add
            elif action.remove is not None:
                files.pop(_file_key(action.remove), None)
            protocol, metadata = action.protocol or protocol, action.meta_data or metadata
        if protocol is None or metadata is None:
            raise Malformed("the log has no protocol or no metadata", place=f"{self._folder.url}/{LOG}")
        return LogState(version=version, protocol=protocol, metadata=metadata, files=tuple(files.values()))

    def _all(self, first: Iterator[LogAction], versions: range) -> Iterator[LogAction]:
        yield from first
        missing = [version for version in versions if version not in self._commits]
        if missing:
            raise Damaged(
                "a commit is missing from the log",
                place=f"{self._folder.url}/{_commit_path(missing[0])}",
                hint="The table cannot be read by anyone before its owner repairs it.",
            )
        for version, data in zip(
            versions, side_by_side(lambda one: self._folder.get(_commit_path(one)), versions, _READERS), strict=True
        ):
            # In one commit a file's old entry may go after its new one came: removals first.
            actions = list(_lines(data, f"{self._folder.url}/{_commit_path(version)}"))
            yield from (one for one in actions if one.remove is not None)
            yield from (one for one in actions if one.remove is None)

    def _hint(self) -> int | None:
        try:
            return msgspec.json.decode(self._folder.get(f"{LOG}/_last_checkpoint"), type=_Hint).version
        except (NotFound, *UNDECODED):
            return None  # it is only a hint

    def _list(self, begin: int | None) -> tuple[frozenset[int], Mapping[int, tuple[str, ...]]]:
        """The commits and the whole checkpoints from a version on, by their names."""
        after = None if begin is None else f"{LOG}/{begin:020}"
        commits: set[int] = set()
        parts: dict[tuple[int, str, int], list[str]] = {}
        for path, _ in self._folder.objects(LOG, after=after):
            name = path.removeprefix(f"{LOG}/")
            if (match := _COMMIT.fullmatch(name)) is not None:
                commits.add(int(match[1]))
            elif (match := _CHECKPOINT.fullmatch(name)) is not None:
                kind = "parts" if match[2] else match[4] or ""
                parts.setdefault((int(match[1]), kind, int(match[3] or 1)), []).append(path)
        whole = {version: tuple(sorted(paths)) for (version, _, count), paths in parts.items() if len(paths) == count}
        return frozenset(commits), whole

    def _checkpoint(self, version: int) -> Iterator[LogAction]:
        """The actions of a checkpoint, and of its sidecars."""
        sidecars: list[str] = []
        for path in self._checkpoints[version]:
            for action in self._file(path):
                if action.sidecar is not None:
                    sidecars.append(action.sidecar.path)
                yield action
        for path in sidecars:
            yield from self._file(path if "/" in path else f"{LOG}/_sidecars/{path}")

    def _file(self, path: str) -> Iterator[LogAction]:
        place = f"{self._folder.url}/{path}"
        data = self._folder.get(path)
        return _lines(data, place) if path.endswith(".json") else _rows(data, place)


def _commit_path(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def _file_key(one: Add | Remove) -> tuple[str, str | None]:
    """The same file with other deleted rows is another logical file."""
    return one.path, None if one.deletion_vector is None else one.deletion_vector.unique_id


def _lines(data: memoryview, place: str) -> Iterator[LogAction]:
    try:
        yield from _DECODER.decode_lines(bytes(data))
    except UNDECODED as error:
        raise Malformed(f"not actions of a Delta table: {error}", place=place) from error


_NAMES = {
    "add": ["path", "partitionValues", "size", "deletionVector"],
    "metaData": ["id", "schemaString", "partitionColumns", "configuration", "format", "description"],
    "protocol": ["minReaderVersion", "readerFeatures"],
    "sidecar": ["path"],
}


def _rows(data: memoryview, place: str) -> Iterator[LogAction]:
    """The rows of a Parquet checkpoint: one action each."""
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        wanted = [f"{kind}.{name}" for kind, names in _NAMES.items() for name in names]
        rows = file.read(columns=wanted)
        for kind in rows.column_names:
            column = rows.column(kind).combine_chunks()
            found = column.filter(column.is_valid())
            for value in found.to_pylist():
                yield msgspec.convert({kind: _plain(value or {})}, LogAction)
    except (pa.ArrowException, msgspec.ValidationError, *UNDECODED) as error:
        raise Malformed(f"not a checkpoint of a Delta table: {error}", place=place) from error


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON has it: maps are lists of pairs in Arrow, and absent values are null."""
    found = {name: one for name, one in value.items() if one is not None}
    for name in ("partitionValues", "configuration"):
        if name in found:
            found[name] = dict(found[name])
    return found
